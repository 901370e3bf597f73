"""Talks to a server by XML for Analysis: Discover, Execute, sessions, basic authentication, timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import httpx

from app.cube.xmla.reading import Dataset, Message, Row, read_dataset, read_message, read_rows
from app.domain.errors import OperatorError

XMLA = "urn:schemas-microsoft-com:xml-analysis"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
#: Bytes of one answer.
MAX_ANSWER = 256 << 20


class Client:
    """A connection to one XMLA endpoint.

    Parameters
    ----------
    url : str
        ``http`` or ``https``; without user and password in it.
    user, password : str
        For basic authentication; empty for none. They are never told in errors.
    properties : mapping
        Sent with each request: ``DataSourceInfo``, ``Catalog`` and whatever the server wants.
    timeout : float
        Seconds that one answer may take.
    transport
        What carries requests instead of the network, for tests.
    """

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        properties: Mapping[str, str] | None = None,
        timeout: float = 300.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._url = url
        self._properties = dict(properties or {})
        self._session = ""
        self._http = httpx.Client(
            auth=(user, password) if user else None,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 30.0)),
            transport=transport,
            follow_redirects=False,
        )

    def set_property(self, name: str, value: str) -> None:
        """Send a property with each request from now on."""
        self._properties[name] = value

    def begin(self) -> None:
        """Open a session; servers without sessions are used without one."""
        header = f'<BeginSession xmlns="{XMLA}" SOAP-ENV:mustUnderstand="1"/>'
        self._session = self._send("Execute", self._execute("", "Multidimensional"), header).session

    def close(self) -> None:
        """End the session and the connection; a server that is gone has ended them itself."""
        try:
            if self._session:
                header, self._session = self._header("EndSession"), ""
                self._send("Execute", self._execute("", "Multidimensional"), header)
        except OperatorError:
            pass
        finally:
            self._http.close()

    def discover(self, rowset: str, restrictions: Mapping[str, str] | None = None) -> tuple[Row, ...]:
        """Rows of a rowset.

        Raises
        ------
        OperatorError
            The server can't be reached, refuses, or says something else than a rowset.
        """
        inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in (restrictions or {}).items())
        body = (
            f'<Discover xmlns="{XMLA}"><RequestType>{escape(rowset)}</RequestType>'
            f"<Restrictions><RestrictionList>{inner}</RestrictionList></Restrictions>"
            f"{self._property_list(Format='Tabular', Content='SchemaData')}</Discover>"
        )
        return read_rows(self._send("Discover", body).root)

    def execute(self, mdx: str) -> Dataset:
        """The multidimensional answer to a query.

        Raises
        ------
        OperatorError
        """
        return read_dataset(self._send("Execute", self._execute(mdx, "Multidimensional")).root)

    def table(self, mdx: str) -> tuple[Row, ...]:
        """The answer to a query as rows.

        Raises
        ------
        OperatorError
        """
        return read_rows(self._send("Execute", self._execute(mdx, "Tabular")).root)

    def _execute(self, mdx: str, form: str) -> str:
        listed = self._property_list(Format=form, Content="SchemaData", AxisFormat="TupleFormat")
        return (
            f'<Execute xmlns="{XMLA}"><Command><Statement>{escape(mdx, quote=False)}</Statement></Command>'
            f"{listed}</Execute>"
        )

    def _header(self, name: str) -> str:
        return f'<{name} xmlns="{XMLA}" SOAP-ENV:mustUnderstand="1" SessionId="{escape(self._session)}"/>'

    def _property_list(self, **more: str) -> str:
        given = {**self._properties, **more}
        inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in given.items())
        return f"<Properties><PropertyList>{inner}</PropertyList></Properties>"

    def _send(self, method: str, body: str, header: str = "") -> Message:
        if not header and self._session:
            header = (
                f'<Session xmlns="{XMLA}" SOAP-ENV:mustUnderstand="1" SessionId="{escape(self._session)}"/>'
            )
        envelope = (
            f'<?xml version="1.0" encoding="utf-8"?><SOAP-ENV:Envelope xmlns:SOAP-ENV="{SOAP}">'
            f"<SOAP-ENV:Header>{header}</SOAP-ENV:Header><SOAP-ENV:Body>{body}</SOAP-ENV:Body>"
            "</SOAP-ENV:Envelope>"
        )
        headers = {"content-type": "text/xml; charset=utf-8", "soapaction": f'"{XMLA}:{method}"'}
        try:
            with self._http.stream("POST", self._url, content=envelope.encode(), headers=headers) as response:
                parts, size = [], 0
                for part in response.iter_bytes():
                    size += len(part)
                    if size > MAX_ANSWER:
                        raise OperatorError("The XMLA server's answer is too large.")
                    parts.append(part)
        except httpx.TimeoutException:
            raise OperatorError("The XMLA server took too long to answer.") from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise OperatorError(f"The XMLA server can't be reached ({type(error).__name__}).") from None
        if response.status_code in (401, 403):
            raise OperatorError("The XMLA server refuses the user or password.")
        text = b"".join(parts)
        if response.status_code != 200 and b"Envelope" not in text:
            raise OperatorError(f"The XMLA server answers with HTTP status {response.status_code}.")
        return read_message(text)
