"""Answers of other XMLA servers in their documented forms: XMLA 1.1, [MS-SSAS], Mondrian."""

#: Mondrian: unprefixed rowset, capitals of its own, a Value with its type, no cell where there is nothing.
MONDRIAN_CELLS = b"""<?xml version="1.0" encoding="UTF-8"?>
<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"
  SOAP-ENV:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">
<SOAP-ENV:Header></SOAP-ENV:Header>
<SOAP-ENV:Body>
<cxmla:ExecuteResponse xmlns:cxmla="urn:schemas-microsoft-com:xml-analysis"><cxmla:return>
<root xmlns="urn:schemas-microsoft-com:xml-analysis:mddataset"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
<OlapInfo><CubeInfo><Cube><CubeName>Shop</CubeName></Cube></CubeInfo>
<AxesInfo><AxisInfo name="Axis0"><HierarchyInfo name="Measures">
<UName name="[Measures].[MEMBER_UNIQUE_NAME]"/></HierarchyInfo></AxisInfo></AxesInfo>
<CellInfo><Value name="VALUE"/><FmtValue name="FORMATTED_VALUE"/></CellInfo></OlapInfo>
<Axes>
<Axis name="Axis0"><Tuples>
<Tuple><Member Hierarchy="Measures"><UName>[Measures].[Sales]</UName><Caption>Sales</Caption>
<LName>[Measures].[MeasuresLevel]</LName><LNum>0</LNum><DisplayInfo>0</DisplayInfo></Member></Tuple>
<Tuple><Member Hierarchy="Measures"><UName>[Measures].[Costs]</UName><Caption>Costs</Caption>
<LName>[Measures].[MeasuresLevel]</LName><LNum>0</LNum><DisplayInfo>131072</DisplayInfo></Member></Tuple>
</Tuples></Axis>
<Axis name="Axis1"><Tuples>
<Tuple><Member Hierarchy="Store"><UName>[Store].[All Stores].[USA]</UName><Caption>USA</Caption>
<LName>[Store].[Store Country]</LName><LNum>1</LNum><DisplayInfo>3</DisplayInfo></Member></Tuple>
<Tuple><Member Hierarchy="Store"><UName>[Store].[All Stores].[Mexico &amp; Co]</UName>
<Caption>Mexico &amp; Co</Caption><LName>[Store].[Store Country]</LName><LNum>1</LNum>
<DisplayInfo>131080</DisplayInfo></Member></Tuple>
</Tuples></Axis>
<Axis name="SlicerAxis"><Tuples><Tuple><Member Hierarchy="Time"><UName>[Time].[2024]</UName>
<Caption>2024</Caption><LName>[Time].[Year]</LName><LNum>0</LNum><DisplayInfo>4</DisplayInfo></Member></Tuple>
</Tuples></Axis>
</Axes>
<CellData>
<Cell CellOrdinal="0"><Value xsi:type="xsd:int">266773</Value><FmtValue>266,773</FmtValue></Cell>
<Cell CellOrdinal="1"><Value xsi:type="xsd:double">225627.2336</Value><FmtValue>225,627.23</FmtValue></Cell>
<Cell CellOrdinal="2"><Value xsi:type="xsd:double">1.5E3</Value><FmtValue>1,500</FmtValue></Cell>
</CellData>
</root></cxmla:return></cxmla:ExecuteResponse>
</SOAP-ENV:Body></SOAP-ENV:Envelope>"""

#: Analysis Services: soap prefix, a session in the header, properties by their whole names, nil values.
SSAS_CELLS = b"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">
<soap:Header><Session xmlns="urn:schemas-microsoft-com:xml-analysis" mustUnderstand="1"
  SessionId="1A2B3C4D-0000-4E5F-8A9B-0C1D2E3F4A5B"/></soap:Header>
<soap:Body><ExecuteResponse xmlns="urn:schemas-microsoft-com:xml-analysis"><return>
<root xmlns="urn:schemas-microsoft-com:xml-analysis:mddataset"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
  xmlns:msxmla="http://schemas.microsoft.com/analysisservices/2003/xmla">
<xsd:schema targetNamespace="urn:schemas-microsoft-com:xml-analysis:mddataset"
  elementFormDefault="qualified"><xsd:complexType name="MemberType"/></xsd:schema>
<OlapInfo><CubeInfo><Cube><CubeName>Adventure</CubeName>
<LastDataUpdate xmlns="http://schemas.microsoft.com/analysisservices/2003/engine">2026-01-31T10:00:00</LastDataUpdate>
</Cube></CubeInfo><AxesInfo/><CellInfo/></OlapInfo>
<Axes><Axis name="Axis0"><Tuples>
<Tuple><Member Hierarchy="[Customer].[City]"><UName>[Customer].[City].&amp;[Berlin]&amp;[BE]</UName>
<Caption>Berlin</Caption><LName>[Customer].[City].[City]</LName><LNum>1</LNum><DisplayInfo>0</DisplayInfo>
<_x005B_Customer_x005D_._x005B_City_x005D_._x005B_City_x005D_._x005B_Size_x005D_>3700000</_x005B_Customer_x005D_._x005B_City_x005D_._x005B_City_x005D_._x005B_Size_x005D_>
</Member></Tuple>
<Tuple><Member Hierarchy="[Customer].[City]"><UName>[Customer].[City].[All]</UName>
<Caption>All</Caption><LName>[Customer].[City].[(All)]</LName><LNum>0</LNum><DisplayInfo>5</DisplayInfo>
</Member></Tuple></Tuples></Axis>
<Axis name="SlicerAxis"><Tuples><Tuple/></Tuples></Axis></Axes>
<CellData><Cell CellOrdinal="0"><Value xsi:nil="true"/></Cell>
<Cell CellOrdinal="1"><Value xsi:type="xsd:long">9007199254740991</Value><FmtValue>9E15</FmtValue></Cell>
</CellData></root></return></ExecuteResponse></soap:Body></soap:Envelope>"""

SSAS_FAULT = b"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>
<soap:Fault xmlns="http://schemas.xmlsoap.org/soap/envelope/"><faultcode>XMLAnalysisError.0xc10e0007</faultcode>
<faultstring>XML for Analysis parser: the request failed.</faultstring><detail>
<Error ErrorCode="3238920199" Description="Query (1, 8) The member was not found." Source="Analysis Services"
 HelpFile=""/></detail></soap:Fault></soap:Body></soap:Envelope>"""

MONDRIAN_FAULT = b"""<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/"><SOAP-ENV:Body>
<SOAP-ENV:Fault><faultcode>SOAP-ENV:Server.00HSBE02</faultcode>
<faultstring>XMLA SOAP Body processing error</faultstring>
<faultactor>Mondrian</faultactor><detail><XA:error xmlns:XA="http://mondrian.sourceforge.net"><code>00HSBE02</code>
<desc>Mondrian Error: MDX object '[Nowhere]' not found</desc></XA:error></detail></SOAP-ENV:Fault>
</SOAP-ENV:Body></SOAP-ENV:Envelope>"""

#: A dataset that broke off while it was written, [MS-SSAS] 2.2.4.1.
BROKEN_OFF = b"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>
<ExecuteResponse xmlns="urn:schemas-microsoft-com:xml-analysis"><return>
<root xmlns="urn:schemas-microsoft-com:xml-analysis:mddataset">
<Exception xmlns="urn:schemas-microsoft-com:xml-analysis:exception"/>
<Messages xmlns="urn:schemas-microsoft-com:xml-analysis:exception">
<Error ErrorCode="1" Description="Memory ran out." Source="Analysis Services" HelpFile=""/></Messages>
</root></return></ExecuteResponse></soap:Body></soap:Envelope>"""

CELL_ERROR = SSAS_CELLS.replace(
    b'<Value xsi:nil="true"/>',
    b"<Value><Error><ErrorCode>1</ErrorCode><Description>Divided.</Description></Error></Value>",
)

ROWS = b"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>
<DiscoverResponse xmlns="urn:schemas-microsoft-com:xml-analysis"><return>
<root xmlns="urn:schemas-microsoft-com:xml-analysis:rowset" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
<xsd:schema targetNamespace="urn:schemas-microsoft-com:xml-analysis:rowset">
<xsd:element name="root"/></xsd:schema>
<row><CUBE_NAME>Sales &amp; more</CUBE_NAME><LAST_x0020_UPDATE>2026</LAST_x0020_UPDATE>
<Restrictions><Name>X</Name></Restrictions></row><row/></root></return></DiscoverResponse>
</soap:Body></soap:Envelope>"""
