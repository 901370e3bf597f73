"""One request to the studio: who asks, in which language, and the ways to answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Protocol
from urllib.parse import quote

from babel.dates import format_datetime, get_timezone
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.domain.errors import CelosiaError, ConflictError, Mistake, UserError
from app.domain.numbers import locale_of
from app.domain.people import Actor, Permission
from app.office.office import Office
from app.web.contexts import LanguageLink, Link
from app.web.language import marked as _
from app.web.language import translations
from app.web.mistakes import in_words_of, translated
from app.web.studio.notices import NOTICES

HTML = "text/html; charset=utf-8"
_HERE = re.compile(r"/studio(?:[/?][A-Za-z0-9/?=&%._~@+,:;-]*)?")


#: Kinds of values of a program's document.
A_TEXT, A_NUMBER, A_LIST, TEXTS = _("a text"), _("a whole number"), _("a list"), _("an object of texts")


class RefusedError(CelosiaError):
    """A request that isn't answered; ``status`` is HTTP's, ``mistakes`` say what is wrong where."""

    def __init__(self, status: int, sentence: str = "", mistakes: tuple[Mistake, ...] = ()) -> None:
        super().__init__(status)
        self.status = status
        self.sentence = sentence
        self.mistakes = mistakes


@dataclass(frozen=True)
class NavItem:
    text: str
    address: str
    current: bool


@dataclass(frozen=True)
class Frame:
    """What surrounds every page of the studio."""

    language: str
    title: str
    site: str
    actor: Actor
    navigation: tuple[NavItem, ...]
    languages: tuple[LanguageLink, ...]
    crumbs: tuple[Link, ...]
    form_token: str
    notice: str
    here: str

    def may(self, permission: str) -> bool:
        """Whether the reader may do something, by the permission's name."""
        return self.actor.may(Permission(permission))


class StudioPage(Protocol):
    """A page's context: a frozen class for each template, as on the public site."""

    template: ClassVar[str]

    @property
    def frame(self) -> Frame: ...


class Renders(Protocol):
    """What turns a page into bytes; ``secure`` says whether cookies travel over HTTPS alone.

    ``actor_of`` says who a request's sender is by now: a citizen once signed out.
    """

    secure: bool

    def render(self, page: StudioPage) -> bytes: ...

    def base(self, visit: Visit) -> str: ...

    def actor_of(self, request: Request) -> Actor: ...

    def navigation(self, visit: Visit) -> tuple[NavItem, ...]: ...

    def languages(self, visit: Visit) -> tuple[LanguageLink, ...]: ...


@dataclass(frozen=True, eq=False)
class Visit:
    """A request, once its sender is known and may ask; ``form`` is empty but for POST."""

    request: Request
    office: Office
    studio: Renders
    actor: Actor
    language: str
    cookie: str
    origin: str
    form: FormData = field(default_factory=FormData)

    # ------------------------------------------------------------------ what was asked

    @property
    def path(self) -> str:
        return self.request.url.path

    @property
    def is_api(self) -> bool:
        """Whether a program asks, which wants JSON."""
        return self.path.startswith("/studio/api/")

    def number(self, name: str) -> int:
        """A number in the path, by the name that the route gives it."""
        found: int = self.request.path_params[name]
        if found >= 1 << 31:
            raise RefusedError(404)
        return found

    def part(self, name: str) -> str:
        """A text in the path."""
        return str(self.request.path_params[name])

    def asked(self, name: str, default: str = "") -> str:
        """A field of the query string."""
        return self.request.query_params.get(name, default)

    def text(self, name: str, default: str = "") -> str:
        """A text field of the form; line breaks as ``\\n``."""
        found = self.form.get(name, default)
        return found.replace("\r\n", "\n") if isinstance(found, str) else default

    def texts(self, name: str) -> tuple[str, ...]:
        """Every text that the form has under a name."""
        return tuple(item for item in self.form.getlist(name) if isinstance(item, str))

    def integer(self, name: str) -> int | None:
        """A whole number of the form; None where the field is empty.

        Raises
        ------
        UserError
            If it is something else.
        """
        text = self.text(name).strip()
        if not text:
            return None
        if not re.fullmatch(r"-?[0-9]{1,9}", text):
            raise UserError(self.say(_("This isn't a whole number: {text}"), text=text[:40]))
        return int(text)

    def file(self, name: str) -> UploadFile | None:
        """An uploaded file, if one was chosen."""
        found = self.form.get(name)
        return found if isinstance(found, UploadFile) and found.filename else None

    def json_body(self) -> Mapping[str, Any]:
        """The document that a program sent, as the shell read it."""
        found: Mapping[str, Any] = self.request.state.document
        return found

    def unread(self, field: str, kind: str) -> RefusedError:
        """What a program is told of a field of its document; ``kind`` is marked for translation."""
        text = _("Field {field} of the document is missing, or isn't {kind}.")
        return RefusedError(400, self.say(text, field=field, kind=self.say(kind)))

    # ------------------------------------------------------------------ words

    def say(self, text: str, /, **fields: object) -> str:
        """A sentence in the reader's language; ``text`` is marked for translation where it is written."""
        found = translations(self.language).gettext(text)
        return found.format(**fields) if fields else found

    def told(self, text: str) -> str:
        """A sentence about a mistake, with what it names, in the reader's language."""
        found = self.say(text)
        return found if found != text else in_words_of(text, self.language)

    def said(self, error: CelosiaError) -> str:
        """What is wrong, in a sentence or more."""
        if not isinstance(error, UserError):
            return self.told(str(error))
        return "\n".join(str(replace(mistake, excerpt="")) for mistake in self.mistakes(error.mistakes))

    def mistakes(self, found: Iterable[Mistake]) -> tuple[Mistake, ...]:
        """Mistakes in the reader's language."""
        return translated(found, self.told)

    def moment(self, moment: datetime | None) -> str:
        """A time as the reader writes it, in UTC; empty for none."""
        if moment is None:
            return ""
        zone = get_timezone("UTC")
        return (
            format_datetime(moment, "d MMM y, HH:mm:ss", tzinfo=zone, locale=locale_of(self.language))
            + " UTC"
        )

    # ------------------------------------------------------------------ answers

    def frame(self, title: str, *crumbs: Link) -> Frame:
        """The surroundings of a page."""
        notice = NOTICES.get(self.asked("said"), "")
        return Frame(
            language=self.language,
            title=title,
            site=self.say(_("Studio")),
            actor=self.actor,
            navigation=self.studio.navigation(self),
            languages=self.studio.languages(self),
            crumbs=crumbs,
            form_token=self.office.people.form_token(self.cookie),
            notice=self.say(notice) if notice else "",
            here=quote(self.path),
        )

    def page(self, page: StudioPage, status: int = 200) -> Response:
        """A page."""
        return Response(self.studio.render(page), status_code=status, headers={"content-type": HTML})

    def json(self, value: object, status: int = 200) -> Response:
        """A document."""
        body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        return Response(body, status_code=status, headers={"content-type": "application/json"})

    def redirect(self, path: str, said: str = "") -> Response:
        """On to another page of the studio, which begins with the notice ``said``."""
        if said:
            path += ("&" if "?" in path else "?") + f"said={said}"
        return RedirectResponse(path, status_code=303)

    def attachment(self, body: bytes, media_type: str, name: str) -> Response:
        """A file to keep."""
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)
        headers = {"content-type": media_type, "content-disposition": f'attachment; filename="{safe}"'}
        return Response(body, headers=headers)


def status_of(error: UserError) -> int:
    """HTTP's status for what can't be done: 409 when somebody changed meanwhile what it was decided on."""
    return 409 if isinstance(error, ConflictError) else 422


def inside(path: str, default: str = "/studio") -> str:
    """A path of the studio to go on to; ``default`` when the one wished for leads anywhere else."""
    return path if _HERE.fullmatch(path) and "//" not in path and "/.." not in path else default


def quoted(path: str) -> str:
    """A path as a part of an address."""
    return quote(path, safe="/")
