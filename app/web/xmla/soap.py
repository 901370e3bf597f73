"""SOAP messages of XML for Analysis: what a request asks, and what answers and faults look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from lxml import etree

from app.domain.errors import CelosiaError
from app.domain.texts import printable

MEDIA_TYPE = "text/xml; charset=utf-8"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
XMLA = "urn:schemas-microsoft-com:xml-analysis"
ROWSET = f"{XMLA}:rowset"
DATASET = f"{XMLA}:mddataset"
EMPTY = f"{XMLA}:empty"
EXCEPTION = f"{XMLA}:exception"

#: Elements within one another that a request may have.
_DEEPEST = 32
#: Elements that a request may have.
_MOST = 20_000
#: A whole number as messages have it.
NUMBER = re.compile("[0-9]{1,9}")


class FaultError(CelosiaError):
    """A request that has no answer: ``code`` as in a SOAP fault, and one plain sentence for the client."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    def told(self, say: Callable[[str], str]) -> FaultError:
        """The same fault in the words of ``say``, which says a sentence in the client's language."""
        return FaultError(self.code, say(self.text))


def client_fault(text: str) -> FaultError:
    """The fault of a request that is wrong."""
    return FaultError("Client", text)


@dataclass(frozen=True)
class Request:
    """What a client asks.

    Attributes
    ----------
    method : str
        ``Discover`` or ``Execute``.
    request_type : str
        The rowset that Discover wants, in capitals.
    statement : str
        The command of Execute.
    restrictions : mapping of name, in capitals, to tuple of str
    properties : mapping of name, in lower case, to str
    begins_session, ends_session : bool
    session : str
        The session that it belongs to; empty for none.
    """

    method: str
    request_type: str = ""
    statement: str = ""
    restrictions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    begins_session: bool = False
    ends_session: bool = False
    session: str = ""


def read_request(body: bytes) -> Request:
    """What a body asks.

    Raises
    ------
    FaultError
        When it is no request, or XML that nobody needs to write: with a DTD, too deep, too many elements.
    """
    envelope = _parsed(body)
    if _local(envelope) != "Envelope":
        raise client_fault("The request is no SOAP envelope.")
    header, content = _child(envelope, "Header"), _child(envelope, "Body")
    if content is None:
        raise client_fault("The SOAP envelope has no body.")
    asked = next(iter(content), None)
    if asked is None or _local(asked) not in ("Discover", "Execute"):
        raise client_fault("The SOAP body asks neither Discover nor Execute.")
    heads = {_local(item): item for item in header} if header is not None else {}
    session = heads.get("Session", heads.get("EndSession"))
    parts: dict[str, object] = {
        "properties": _properties(asked),
        "begins_session": "BeginSession" in heads,
        "ends_session": "EndSession" in heads,
        "session": str(session.get("SessionId", "")) if session is not None else "",
    }
    if _local(asked) == "Discover":
        kind = _text(_child(asked, "RequestType")).upper()
        return Request("Discover", request_type=kind, restrictions=_restrictions(asked), **parts)  # type: ignore[arg-type]
    return Request("Execute", statement=_statement(asked), **parts)  # type: ignore[arg-type]


def _parsed(body: bytes) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise client_fault("The request is no well-formed XML.") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise client_fault("The request has a document type declaration, which nothing here needs.")
    n, pending = 0, [(root, 0)]
    while pending:
        element, depth = pending.pop()
        n += 1
        if n > _MOST or depth > _DEEPEST:
            raise client_fault("The request has too many elements, or too many within one another.")
        pending.extend((child, depth + 1) for child in element)
    return root


def _local(element: etree._Element) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def _child(element: etree._Element | None, name: str) -> etree._Element | None:
    return next((item for item in element if _local(item) == name), None) if element is not None else None


def _text(element: etree._Element | None) -> str:
    return "".join(element.itertext()).strip() if element is not None else ""


def _statement(asked: etree._Element) -> str:
    command = _child(asked, "Command")
    if command is None:
        raise client_fault("Execute has no Command.")
    for inner in command:
        if _local(inner) != "Statement":
            raise client_fault(f"The command {_local(inner)} isn't offered here; only a Statement is.")
    statements = list(command)
    outside = [command.text, *(inner.tail for inner in statements)]
    if len(statements) > 1 or any(text and text.strip() for text in outside):
        raise client_fault("A Command has one Statement, and no text beside it.")
    statement = statements[0] if statements else None
    if statement is not None and len(statement):
        raise client_fault("A Statement has no elements within, only its text.")
    # Without one it does nothing, which clients ask to see whether somebody answers.
    return _text(statement)


def _restrictions(asked: etree._Element) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    listed = _child(_child(asked, "Restrictions"), "RestrictionList")
    for item in listed if listed is not None else ():
        # A list stands as values within the restriction, or as the restriction said twice.
        values = [_text(value) for value in item] if len(item) else [_text(item)]
        name = _local(item).upper()
        found[name] = (*found.get(name, ()), *values)
    return found


def _properties(asked: etree._Element) -> dict[str, str]:
    listed = _child(_child(asked, "Properties"), "PropertyList")
    return {_local(item).lower(): _text(item) for item in listed} if listed is not None else {}


def quoted(text: object) -> str:
    """A text as it may stand in XML, also in an attribute; what XML can't hold is left out."""
    return escape(printable(str(text)))


def encoded(name: str) -> str:
    """A name as an element's: every other character as ``_xHHHH_``, as XMLA writes column names."""
    found = []
    for place, character in enumerate(name):
        plain = (
            character.isalpha()
            or character == "_"
            or (place > 0 and (character.isdigit() or character in "-."))
        )
        found.append(character if plain and ord(character) < 0x3000 else f"_x{ord(character):04X}_")
    return "".join(found)


def answer(method: str, root: str, session: str = "") -> bytes:
    """The message that answers a request; ``root`` is the rowset or dataset."""
    header = (
        f'<SOAP-ENV:Header><Session xmlns="{XMLA}" SOAP-ENV:mustUnderstand="1" '
        f'SessionId="{quoted(session)}"/></SOAP-ENV:Header>'
        if session
        else ""
    )
    return _envelope(
        f'{header}<SOAP-ENV:Body><{method}Response xmlns="{XMLA}"><return>{root}</return>'
        f"</{method}Response></SOAP-ENV:Body>"
    )


def fault(error: FaultError) -> bytes:
    """The message that says why there is no answer."""
    text = quoted(error.text)
    return _envelope(
        f"<SOAP-ENV:Body><SOAP-ENV:Fault><faultcode>SOAP-ENV:{error.code}</faultcode>"
        f"<faultstring>{text}</faultstring><faultactor>Celosia</faultactor><detail>"
        f'<Error ErrorCode="3238658121" Description="{text}" Source="Celosia" HelpFile=""/>'
        "</detail></SOAP-ENV:Fault></SOAP-ENV:Body>"
    )


def _envelope(inner: str) -> bytes:
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return f'{head}<SOAP-ENV:Envelope xmlns:SOAP-ENV="{SOAP}">{inner}</SOAP-ENV:Envelope>'.encode()
