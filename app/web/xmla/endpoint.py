"""``POST /xmla``: one message in, one message out."""

from __future__ import annotations

import re
import secrets
from functools import partial

from app.domain.catalogue import Catalogue
from app.domain.errors import UserError
from app.domain.patience import OverdueError, Patience
from app.serve.answer import LiveReader
from app.serve.stamp import Stamp
from app.web.gate import too_long
from app.web.language import preferred
from app.web.mistakes import in_words_of, translated
from app.web.xmla.dataset import dataset_xml, table_xml
from app.web.xmla.discover import content_of, discover, language_of
from app.web.xmla.rowset import empty_xml
from app.web.xmla.soap import FaultError, Request, answer, client_fault, fault, read_request
from app.web.xmla.structures import CATALOG

#: Bytes of a request.
MAX_BODY = 1 << 20
_COMMENTS = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_WHOLE = re.compile("(-?)0*([0-9]+)")
#: Letters of a statement's first word that are said back.
_VERB = 20
_REFUSED = {
    "DRILLTHROUGH": "Single records are not shown, so there is no drillthrough.",
    "EXPLAIN": "Plans of queries are not shown.",
}


def respond(
    body: bytes, reader: LiveReader, release_id: str, languages: str, patience: Patience
) -> tuple[int, bytes, tuple[Stamp, ...]]:
    """Status, body and stamps of the answer to a message; what can't be answered gets a SOAP fault.

    Parameters
    ----------
    languages : str
        The request's ``Accept-Language``, for those that have no LocaleIdentifier.

    Raises
    ------
    ReleaseMovedError
        ``release_id`` isn't to be read any more.
    AbandonedError
        ``patience`` is at its end.
    """
    catalogue = reader.catalogue(release_id)
    try:
        request = read_request(body)
    except FaultError as error:
        return (
            400,
            fault(error.told(partial(in_words_of, language=preferred(languages, catalogue.languages)))),
            (),
        )
    session = (
        secrets.token_hex(16) if request.begins_session else "" if request.ends_session else request.session
    )
    language = language_of(request)
    if language not in catalogue.languages:
        language = preferred(languages, catalogue.languages)
    try:
        if request.method == "Discover":
            return 200, answer("Discover", discover(request, catalogue, language), session), ()
        return _execute(request, reader, catalogue, language, session, patience)
    except FaultError as error:
        return 200, fault(error.told(partial(in_words_of, language=language))), ()


def _execute(
    request: Request,
    reader: LiveReader,
    catalogue: Catalogue,
    language: str,
    session: str,
    patience: Patience,
) -> tuple[int, bytes, tuple[Stamp, ...]]:
    statement = request.statement
    content, form = content_of(request), (request.properties.get("format") or "Multidimensional").lower()
    if form not in ("multidimensional", "tabular", "native"):
        raise client_fault("Format is Multidimensional or Tabular.")
    if (request.properties.get("catalog") or CATALOG) != CATALOG:
        raise client_fault(f"There is no catalog but {CATALOG}.")
    if not statement:
        return 200, answer("Execute", empty_xml(), session), ()
    start = _COMMENTS.match(statement)
    word = re.split(r"\W", statement[start.end() if start else 0 :], maxsplit=1)[0].upper()
    if word not in ("SELECT", "WITH"):
        raise client_fault(_REFUSED.get(word) or _unoffered(word))
    cells = _range(request, "beginrange"), _range(request, "endrange")
    try:
        served = reader.ask(catalogue.release_id, statement, patience)
        cube = catalogue.cubes[served.asked.cube]
        if content == "None":
            root = empty_xml()
        elif form == "tabular":
            root = table_xml(served.asked, cube, language, content, patience)
        else:
            root = dataset_xml(served.asked, cube, language, content, patience, cells)
    except UserError as error:
        told = translated(error.mistakes, partial(in_words_of, language=language))
        raise client_fault("\n".join(map(str, told))) from None
    except OverdueError as error:
        raise client_fault(too_long(error).sentence(language)) from None
    return 200, answer("Execute", root, session), (served.stamp,)


def _unoffered(word: str) -> str:
    if not word.isascii() or not 1 < len(word) <= _VERB:
        return "Only queries are answered here: a statement starts with SELECT or WITH."
    return f"{word} isn't offered here: only queries are answered, which start with SELECT or WITH."


def _range(request: Request, name: str) -> int:
    found = _WHOLE.fullmatch(request.properties.get(name) or "-1")
    if found is None:
        raise client_fault(f"{name} is a whole number.")
    # There are fewer cells than that, however many digits a client writes.
    number = int(found[2]) if len(found[2]) <= 9 else 10**9
    return -number if found[1] else number
