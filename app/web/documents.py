"""JSON that programs send: what is wrong with it is said with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from app.domain.errors import CelosiaError, Mistake
from app.web.language import marked as _
from app.web.language import translations

_NO_JSON = _("The request isn't JSON at line %(line)s, column %(column)s: %(cause)s.")
_NO_BODY = _("The request has no body.")
_NO_TEXT = _("The request isn't UTF-8: byte %(byte)s begins no letter.")
HALF_A_LETTER = _("A text has half of a character (\\ud800 to \\udfff), which is no text.")
_NO_OBJECT = _('The JSON is no object, which begins with {"name": …}.')
_TOO_DEEP = _("The JSON has too many lists or objects within one another.")
_NO_NUMBER = _("The JSON has a number that it can't have: NaN, Infinity, or one of thousands of digits.")
_ENDS = _("the document ends before it is complete")
#: What the parser says, and how we say it.
_CAUSES = {
    "Expecting value": _("a value is missing; texts stand in double quotes"),
    "Expecting property name enclosed in double quotes": _("a field's name is missing, in double quotes"),
    "Illegal trailing comma before end of object": _("a field's name is missing, in double quotes"),
    "Illegal trailing comma before end of array": _("a value is missing; texts stand in double quotes"),
    "Expecting ':' delimiter": _("a colon is missing"),
    "Expecting ',' delimiter": _("a comma or a closing bracket is missing"),
    "Unterminated string starting at": _("a text begins that has no closing quote"),
    "Invalid control character at": _("a text has a control character; a line break is written \\n"),
    "Invalid \\escape": _("a backslash escapes nothing; it is written twice"),
    "Invalid \\uXXXX escape": _("a backslash escapes nothing; it is written twice"),
    "Extra data": _("the document has already ended"),
}
_OTHER = _("nothing like this stands in JSON")


class DocumentError(CelosiaError):
    """A body that is no JSON object; ``line`` and ``column`` are 0 where it is wrong as a whole."""

    def __init__(self, text: str, line: int = 0, column: int = 0, cause: str = "", byte: int = 0) -> None:
        super().__init__(text)
        self._text, self._cause, self._byte = text, cause, byte
        self.line, self.column = line, column

    def sentence(self, language: str) -> str:
        """What is wrong and where."""
        say = translations(language).gettext
        cause = say(self._cause) if self._cause else ""
        told = {"line": self.line, "column": self.column, "cause": cause, "byte": self._byte}
        return say(self._text) % told

    def mistake(self, language: str, remedy: str = "") -> Mistake:
        """The same for a program."""
        return Mistake("", self.line, self.column, self.sentence(language), remedy)


def read_document(body: bytes) -> Mapping[str, Any]:
    """The JSON object in a body.

    Raises
    ------
    DocumentError
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(_NO_TEXT, byte=error.start + 1) from None
    if not text.strip():
        raise DocumentError(_NO_BODY)
    try:
        found = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        cause = _ENDS if error.pos >= len(text.rstrip()) else _CAUSES.get(error.msg, _OTHER)
        raise DocumentError(_NO_JSON, error.lineno, error.colno, cause) from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    except ValueError:
        raise DocumentError(_NO_NUMBER) from None
    if not isinstance(found, dict):
        raise DocumentError(_NO_OBJECT)
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
