"""Readers' own queries: a form that writes MDX, and what a query's answer is as a page or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode

import numpy as np

from app.domain.cube import Cube, Hierarchy, text_in
from app.domain.observations import observations_of
from app.domain.patience import Patience
from app.serve.port import Asked
from app.web.contexts import BuilderPage, BuilderPart, Chooser, Link, Option, QueryAnswer
from app.web.fields import Known
from app.web.finder import LONGEST, MOST, Look, finder, listing, offered, part_of
from app.web.formats.download import TableDownload
from app.web.formats.registry import FORMATS
from app.web.language import marked as _
from app.web.language import translations
from app.web.pages import Site
from app.web.refusals import RefusalError
from app.web.tables import lay_out, level_text, signs_of
from app.web.windows import window
from app.web.words import by_figures_note, file_words

#: Formats of a reader's own query: tables and lists, not drawings.
QUERY_FORMATS = tuple(form for form in FORMATS if "table" in form.views)

_PLACES = ("rows", "columns", "filter")
#: Fields of the search in long lists.
_SEARCH = ("find", "looked", "at", "look", "part")
#: What the form's addresses may say.
FIELDS = Known(
    frozenset({"cube", "fresh", "build", "measure", "mdx"}),
    frozenset({"place", "level", "member", *_SEARCH}),
)


NO_CUBE = _("There is no cube “%(name)s” here.")
NO_MEMBER = _("There is no “%(name)s” to choose here.")
ONE_FILTER = _("A filter takes one member of “%(name)s”.")
NO_PLACE = _("Members of “%(name)s” are chosen, but not where they go.")


@dataclass(frozen=True)
class _Part:
    """What a reader chose of one hierarchy."""

    place: str
    level: str
    members: tuple[str, ...]


def written(cube: Cube, pairs: Sequence[tuple[str, str]], language: str) -> str:
    """The query in MDX that the form's fields describe.

    Raises
    ------
    RefusalError
        400 for a choice that the form doesn't offer, or that says nothing by itself.
    """
    names = {measure.unique_name for measure in cube.measures}
    measures = [value for name, value in pairs if name == "measure"]
    for name in measures:
        if name not in names:
            raise RefusalError(400, NO_MEMBER, name=name)
    axes: dict[str, list[str]] = {"columns": [_set(measures or [cube.measures[0].unique_name])], "rows": []}
    slicer: list[str] = []
    for name, value in pairs:
        kind, _, place = name.partition(".")
        if kind in ("place", "level", "member") and value and int(place) >= len(cube.hierarchies):
            raise RefusalError(400, NO_MEMBER, name=value)
    for number, hierarchy in enumerate(cube.hierarchies):
        part = _chosen(pairs, number)
        if part.place not in ("", *_PLACES):
            raise RefusalError(400, NO_MEMBER, name=part.place)
        for name in part.members:
            if name not in hierarchy.index_of:
                raise RefusalError(400, NO_MEMBER, name=name)
        if part.level and part.level not in [level.unique_name for level in hierarchy.levels]:
            raise RefusalError(400, NO_MEMBER, name=part.level)
        if part.members and not part.place:
            raise RefusalError(400, NO_PLACE, name=_named(hierarchy, language))
        if part.place == "filter":
            if len(part.members) != 1:
                raise RefusalError(400, ONE_FILTER, name=_named(hierarchy, language))
            slicer += part.members
        elif part.place:
            axes[part.place].append(_members(hierarchy, part))
        elif hierarchy.time and not hierarchy.has_all and not hierarchy.default_member:
            # Left out, it would be the first period that there is; who doesn't say expects the last one.
            slicer.append(_latest(hierarchy))
    lines = [f"SELECT {' * '.join(axes['columns'])} ON COLUMNS"]
    if axes["rows"]:
        lines[0] += ","
        lines.append(f"  {' * '.join(axes['rows'])} ON ROWS")
    lines.append(f"FROM [{cube.name.replace(']', ']]')}]")
    if slicer:
        lines.append(f"WHERE ({', '.join(slicer)})")
    return "\n".join(lines)


def _named(hierarchy: Hierarchy, language: str) -> str:
    return text_in(hierarchy.captions, language) or hierarchy.name


def _chosen(pairs: Sequence[tuple[str, str]], number: int) -> _Part:
    fields = dict(pairs)
    members = tuple(value for name, value in pairs if name == f"member.{number}" and value)
    return _Part(fields.get(f"place.{number}", ""), fields.get(f"level.{number}", ""), members)


def _members(hierarchy: Hierarchy, part: _Part) -> str:
    if part.members:
        return _set(part.members)
    levels = [level.unique_name for level in hierarchy.levels]
    level = part.level or levels[min(1 if hierarchy.has_all else 0, len(levels) - 1)]
    return f"{level}.Members"


def _latest(hierarchy: Hierarchy) -> str:
    """The last member of the level that the default member is of."""
    return hierarchy.unique_names[int(np.flatnonzero(hierarchy.depth == 0)[-1])]


def _set(names: Sequence[str]) -> str:
    return f"{{{', '.join(names)}}}"


def builder_page(
    site: Site,
    cube: Cube | None,
    pairs: Sequence[tuple[str, str]],
    mdx: str,
    asked: Asked | None,
    mistakes: Sequence[str],
) -> BuilderPage:
    """The form, the query, and its answer or what is wrong with it."""
    _ = translations(site.language).gettext
    catalogue = site.contents.catalogue
    address = f"{site.root}/query"
    lasting = [pair for pair in pairs if pair[0].partition(".")[0] not in _SEARCH]
    cubes = Chooser(
        "cube",
        _("Cube"),
        tuple(
            Option(name, text_in(other.captions, site.language) or name, 0, other is cube)
            for name, other in catalogue.cubes.items()
        ),
    )
    return BuilderPage(
        frame=site.frame(_("Ask your own question"), "query", urlencode(lasting), crumbs=()),
        address=address,
        cubes=cubes,
        measures=_measures(cube, pairs, site.language) if cube is not None else (),
        parts=tuple(_part(h, n, pairs, site.language) for n, h in enumerate(cube.hierarchies))
        if cube
        else (),
        mdx=mdx,
        mistakes=tuple(mistakes),
        answer=_answer(site, asked, mdx, address) if asked is not None else None,
    )


def _measures(cube: Cube, pairs: Sequence[tuple[str, str]], language: str) -> tuple[Option, ...]:
    chosen = [value for name, value in pairs if name == "measure"] or [cube.measures[0].unique_name]
    return tuple(
        Option(m.unique_name, text_in(m.captions, language) or m.name, 0, m.unique_name in chosen)
        for m in cube.measures
    )


def _part(hierarchy: Hierarchy, number: int, pairs: Sequence[tuple[str, str]], language: str) -> BuilderPart:
    _ = translations(language).gettext
    chosen = _chosen(pairs, number)
    places = {"": _("Not used"), "rows": _("Rows"), "columns": _("Columns"), "filter": _("Filter")}
    depths = hierarchy.depth.tolist()
    members = tuple(
        Option(name, hierarchy.caption(code, language) or name, depths[code], name in chosen.members)
        for code, name in enumerate(hierarchy.unique_names)
    )
    search = None
    look = _look(pairs, number)
    if len(members) > MOST:
        found = listing([option.text for option in members], look)
        search = finder(str(number), f"look.{number}", look, found, language)
        members = offered(members, found)
    levels = [
        level for level in hierarchy.levels if not hierarchy.has_all or level is not hierarchy.levels[0]
    ]
    return BuilderPart(
        name=_named(hierarchy, language),
        place=Chooser(
            f"place.{number}",
            _("Where"),
            tuple(Option(key, text, 0, key == chosen.place) for key, text in places.items()),
        ),
        level=Chooser(
            f"level.{number}",
            _("Members"),
            tuple(
                Option(
                    level.unique_name,
                    _("All of: %(level)s") % {"level": level_text(hierarchy, level, language)},
                    0,
                    level.unique_name == chosen.level,
                )
                for level in levels
            ),
        ),
        members=Chooser(f"member.{number}", _("Or only these"), members, search),
        chosen=len(chosen.members),
        is_open=bool(chosen.members or chosen.level or look.words or look.part),
    )


def _look(pairs: Sequence[tuple[str, str]], number: int) -> Look:
    """What a hierarchy's list is searched for; another search begins at its first part."""
    fields = dict(pairs)
    words = " ".join(fields.get(f"find.{number}", "").split())
    same = words == " ".join(fields.get(f"looked.{number}", "").split())
    return Look(words[:LONGEST], part_of(fields, f"part.{number}", f"at.{number}") if same else 0)


def _answer(site: Site, asked: Asked, mdx: str, address: str) -> QueryAnswer:
    _ = translations(site.language).gettext
    download = query_download(site, asked, mdx, Patience())
    shown = window(asked.masked, (1, 1))[0]
    said = urlencode({"mdx": mdx})
    return QueryAnswer(
        id="answer",
        title=_("Answer"),
        table=lay_out(shown, _captions(site, asked), site.language),
        context=download.context,
        signs=signs_of(shown, download.words),
        note=by_figures_note(site.language) if asked.masked.by_figures else "",
        whole=shown.status.size == asked.masked.status.size,
        link=f"{site.base}{address}?{said}",
        downloads=tuple(Link(form.name, f"{address}.{form.extension}?{said}") for form in QUERY_FORMATS),
    )


def _captions(site: Site, asked: Asked) -> dict[str, dict[str, str]]:
    cube = site.contents.catalogue.cubes[asked.cube]
    return {hierarchy.unique_name: dict(hierarchy.captions) for hierarchy in cube.hierarchies}


def _notes(asked: Asked, language: str) -> str:
    """How the answer came to be, and what the figures are that it hides; each format has its own signs."""
    meanings = (meaning for _, meaning in signs_of(asked.masked, file_words(language)))
    return " ".join([*([by_figures_note(language)] if asked.masked.by_figures else []), *meanings])


def query_download(site: Site, asked: Asked, mdx: str, patience: Patience) -> TableDownload:
    """The answer to a reader's query, for files, which are made as long as ``patience`` lasts."""
    _ = translations(site.language).gettext
    catalogue, language = site.contents.catalogue, site.language
    cube = catalogue.cubes[asked.cube]
    captions = _captions(site, asked)
    context = tuple(
        (
            text_in(captions.get(member.hierarchy, {}), language),
            text_in(member.captions, language) or member.unique_name,
        )
        for member in asked.masked.slicer
    )
    caption = text_in(cube.captions, language) or cube.name
    return TableDownload(
        cells=observations_of(asked.masked),
        masked=asked.masked,
        cube=cube,
        language=language,
        number="",
        title=_("Own query of “%(cube)s”") % {"cube": caption},
        notes=_notes(asked, language),
        publisher=text_in(catalogue.publisher, language),
        office=text_in(catalogue.publisher or catalogue.title, catalogue.languages[0]),
        # The same question has the same name, and no other has it.
        identity=f"query_{sha256(mdx.encode()).hexdigest()[:12]}",
        released=catalogue.released,
        address=f"{site.root}/query?{urlencode({'mdx': mdx})}",
        words=file_words(language),
        contact=catalogue.contact,
        next_release=catalogue.next_release,
        context=context,
        lay_out=lambda: lay_out(asked.masked, captions, language, patience=patience),
        draw_chart=lambda: None,
        draw_maps=tuple,
        patience=patience,
    )
