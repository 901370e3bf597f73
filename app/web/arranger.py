"""The form with which a reader chooses members, turns and sorts a table, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from app.domain.cube import Cube, Texts, text_in
from app.domain.masked import MaskedCellSet
from app.web.arrange import Arrangement, Hierarchies, ancestors, arrange, hierarchies_of, present
from app.web.contexts import Arranger, Chooser, HierarchyForm, Link, Option
from app.web.derive import derivations, figures_text
from app.web.finder import MOST, PART, Listing, Look, finder, listing, offered, part_of
from app.web.language import translations
from app.web.moves import flat, without_empty
from app.web.picks import FROM, LAST, LEVEL, Members
from app.web.refusals import NO_VALUE, RefusalError
from app.web.spots import terms_at
from app.web.tables import MEASURES, Header, Sorter, caption, grid_of, level_text, nesting

#: More columns than these aren't offered one by one for sorting: in the form, and by their headers.
_COLUMNS, _HEADERS = 60, 20
Head = tuple[tuple[Header, ...], ...]
TICKED = "ticked"
#: Fields that only the form says; an address says what they come to.
FORM_FIELDS = ("place", "which", "since", "count", "one", "tick", "looked", "at", "look", "spot")


@dataclass(frozen=True, eq=False)
class Subject:
    """What the form is about: a query's table as published, and what an address wants of it.

    ``base`` is the page's address; ``kept`` are the other fields of its query string,
    ``turns`` is whether rows and columns swapped would show another picture, ``looks`` what long lists are
    searched for, by hierarchy.
    """

    query: str
    published: MaskedCellSet
    known: Hierarchies
    cube: Cube
    wanted: Arrangement
    captions: Mapping[str, Texts]
    base: str
    kept: tuple[tuple[str, str], ...]
    language: str
    turns: bool = True
    looks: Mapping[int, Look] = field(default_factory=dict)

    def address(self, wanted: Arrangement, *more: tuple[str, str], part: str = "") -> str:
        """The page with another arrangement of this table."""
        said = urlencode((*self.kept, *wanted.fields(self.query), *more))
        return f"{self.base}{f'?{said}' if said else ''}#{part or self.query}"


def arranger(subject: Subject, editing: bool) -> Arranger:
    """The form with the present state chosen, and the links beside it."""
    _ = translations(subject.language).gettext
    wanted = replace(subject.wanted, page=(1, 1), cell=())
    known = subject.known
    places = _places(known, wanted)
    plain = replace(wanted, totals=True, show="", empty=True)
    table = flat(arrange(subject.published, replace(plain, sort=0, folded={}), subject.cube))
    links = []
    if known.whole and known.members and subject.turns:
        swapped = replace(
            wanted, rows=places["columns"], columns=places["rows"], fixed=places["fixed"], sort=0
        )
        links.append(Link(_("Swap rows and columns"), subject.address(_tidy(swapped, known))))
    if any(ancestors(table, name, subject.cube) & present(table, name) for name in known.names):
        text = _("Without totals") if wanted.totals else _("With totals")
        links.append(Link(text, subject.address(replace(wanted, totals=not wanted.totals, sort=0))))
    if wanted != Arrangement():
        links.append(Link(_("As published"), subject.address(Arrangement())))
    asked = range(len(known.members)) if editing else places["fixed"]
    forms = tuple(_form(subject, known, number, places) for number in asked)
    return Arranger(
        query=subject.query,
        edit=subject.address(wanted, ("edit", subject.query), part=f"choose.{subject.query}"),
        close=subject.address(wanted),
        editing=editing,
        links=tuple(links),
        summary=tuple(_summary(subject, known, wanted)),
        kept=(*subject.kept, *((name, text) for name, text in _carried(wanted, subject.query, places))),
        sorts=Chooser(f"sort.{subject.query}", _("Order of the rows"), _sorts(subject, wanted)),
        figures=Chooser(f"show.{subject.query}", _("Shown as"), _figures(subject, wanted)),
        empties=Chooser(f"empty.{subject.query}", _("Empty rows and columns"), _empties(subject, wanted)),
        hierarchies=forms if editing else (),
        fixed=tuple(form.one for form in forms if form.one is not None),
    )


def _figures(subject: Subject, wanted: Arrangement) -> tuple[Option, ...]:
    """What the figures can be shown as."""
    known, language = subject.known.members, subject.language
    said = [(show, figures_text(show, known, language)) for show in derivations(known)]
    options = [("", translations(language).gettext("As published")), *said]
    return tuple(Option(key, text, 0, key == wanted.show) for key, text in options)


def _empties(subject: Subject, wanted: Arrangement) -> tuple[Option, ...]:
    """Whether empty rows and columns are shown; one option where there are none."""
    _ = translations(subject.language).gettext
    options = (Option("", _("Shown"), 0, wanted.empty), Option("no", _("Left out"), 0, not wanted.empty))
    whole = arrange(subject.published, replace(wanted, empty=True, sort=0), subject.cube)
    return options if not wanted.empty or without_empty(whole) is not whole else options[:1]


def _carried(wanted: Arrangement, query: str, places: Mapping[str, tuple[int, ...]]) -> list[tuple[str, str]]:
    """Fields of the state that the form doesn't ask for, so that it keeps them."""
    whole = replace(wanted, rows=places["rows"], columns=places["columns"], fixed=places["fixed"], sort=0)
    return [
        (name, text)
        for name, text in whole.fields(query)
        if name.startswith(("pivot.", "fold.", "open.", "totals.", "pick.", "chart."))
    ]


def _places(known: Hierarchies, wanted: Arrangement) -> dict[str, tuple[int, ...]]:
    rows, columns = wanted.rows, wanted.columns
    if rows is None or columns is None:
        rows, columns = tuple(range(known.rows)), tuple(range(known.rows, len(known.members)))
    return {"rows": rows, "columns": columns, "fixed": wanted.fixed}


def _tidy(wanted: Arrangement, known: Hierarchies) -> Arrangement:
    """The same arrangement, said without what is as published."""
    published = _places(known, Arrangement())
    if (wanted.rows, wanted.columns) == (published["rows"], published["columns"]):
        return replace(wanted, rows=None, columns=None)
    return wanted


def _name(subject: Subject, members: Members) -> str:
    hierarchy = members.members[0].hierarchy
    own = text_in(subject.captions.get(hierarchy, {}), subject.language)
    return own or (translations(subject.language).gettext("Figures") if hierarchy == MEASURES else hierarchy)


def _summary(subject: Subject, known: Hierarchies, wanted: Arrangement) -> list[str]:
    _ = translations(subject.language).gettext
    said = []
    if not wanted.empty:
        said.append(_("Without empty rows and columns"))
    for number, pick in wanted.picks.items():
        members = known.members[number]
        if number in wanted.fixed:
            continue
        said.append(
            _("%(name)s: %(some)s of %(all)s")
            % {
                "name": _name(subject, members),
                "some": len(members.pick(pick)),
                "all": len(members.members),
            }
        )
    return said


def _form(
    subject: Subject, known: Hierarchies, number: int, places: Mapping[str, tuple[int, ...]]
) -> HierarchyForm:
    _ = translations(subject.language).gettext
    members = known.members[number]
    pick = subject.wanted.picks.get(number, "")
    chosen = members.pick(pick)
    suffix = f"{subject.query}.{number}"
    depths = nesting([(member,) for member in members.members])
    options = tuple(
        Option(term, caption(member, subject.language), depth, member.unique_name in chosen)
        for term, member, depth in zip(members.terms, members.members, depths, strict=True)
    )
    where = next(place for place, numbers in places.items() if number in numbers)
    first = next((at for at, option in enumerate(options) if option.chosen), 0)
    periods = members.time and len(members.depths()) == 1
    since = pick.removeprefix(FROM) if pick.startswith(FROM) else options[first].key
    ticks, search, found = options, None, None
    if len(options) > MOST:
        look = subject.looks.get(number, Look())
        alone = where == "fixed"
        found = listing([option.text for option in options], look, first if alone else 0)
        search = finder(suffix, f"look.{suffix}", look, found, subject.language)
        ticks = _listed(options, members, pick, found)

    def one_of(name: str, title: str, key: str) -> Chooser:
        those = tuple(replace(option, chosen=option.key == key) for option in options)
        return Chooser(name, title, those if found is None else offered(those, found))

    one = one_of(f"one.{suffix}", _name(subject, members), options[first].key) if where == "fixed" else None
    return HierarchyForm(
        suffix=suffix,
        name=_name(subject, members),
        place=Chooser(
            f"place.{suffix}",
            _("Place in the table"),
            tuple(
                Option(key, text, 0, key == where)
                for key, text in (
                    ("rows", _("Rows")),
                    ("columns", _("Columns")),
                    ("fixed", _("One for the whole table")),
                )
            ),
        )
        if known.whole
        else None,
        which=Chooser(f"which.{suffix}", _("Members"), _modes(subject, members, pick)),
        ticks=ticks,
        since=one_of(f"since.{suffix}", _("From"), since) if periods else None,
        count=int(pick.removeprefix(LAST)) if pick.startswith(LAST) else min(5, len(options)),
        one=replace(one, finder=search) if one is not None else None,
        finder=search,
    )


def _listed(options: tuple[Option, ...], members: Members, pick: str, found: Listing) -> tuple[Option, ...]:
    """The boxes of a long list: the first of those ticked by hand, then what was found."""
    numbers = _boxes(members, pick, found)
    by_hand = _mode(pick) == TICKED
    # A rule's members have no boxes ticked: ticking some chooses those instead.
    return tuple(replace(options[n], chosen=options[n].chosen and by_hand) for n in numbers)


def _boxes(members: Members, pick: str, found: Listing) -> tuple[int, ...]:
    """Numbers of the members that have a box in a long list."""
    chosen = members.pick(pick) if _mode(pick) == TICKED else frozenset()
    by_hand = [n for n, member in enumerate(members.members) if member.unique_name in chosen][:PART]
    return tuple(dict.fromkeys((*by_hand, *found.shown)))


def _modes(subject: Subject, members: Members, pick: str) -> tuple[Option, ...]:
    _ = translations(subject.language).gettext
    present = _mode(pick)
    modes = [("", _("All (%(num)s)") % {"num": len(members.members)})]
    depths = members.depths()
    if len(depths) > 1:
        tree = subject.cube.hierarchies[subject.cube.hierarchy_index[members.members[0].hierarchy]]
        modes += [
            (f"{LEVEL}{depth}", level_text(tree, tree.levels[depth], subject.language))
            for depth in depths
            if sum(member.depth == depth for member in members.members) > 1
        ]
    modes.append((TICKED, _("The ticked ones")))
    if members.time and len(depths) == 1:
        modes += [("from", _("From a period on")), ("last", _("The last periods"))]
    return tuple(Option(key, text, 0, key == present) for key, text in modes)


def _mode(pick: str) -> str:
    """How a pick chooses, as a value of the form."""
    if "," not in pick:
        for start, mode in ((FROM, "from"), (LAST, "last")):
            if pick.startswith(start):
                return mode
        if not pick or pick.startswith(LEVEL):
            return pick
    return TICKED


def with_sorters(head: Head, subject: Subject, first: int, total: int, rows: int) -> Head:
    """The header rows of a part of a table, each column leading to the rows in its order.

    ``first`` is the number of the part's first column, ``total`` how many the table has, and ``rows``.
    The first click brings the largest to the top, the next one the smallest, the third the published order.
    """
    if not head or total > _HEADERS or rows < 2:
        return head
    _ = translations(subject.language).gettext
    now = subject.wanted.sort
    columns = []
    for number, header in enumerate(head[-1], first):
        then = {-number: number, number: 0}.get(now, -number)
        said = _("%(column)s, largest first") if then < 0 else _("%(column)s, smallest first")
        text = said % {"column": header.text} if then else f"{header.text}: {_('As published')}"
        order = {-number: "descending", number: "ascending"}.get(now, "")
        address = subject.address(
            replace(subject.wanted, sort=then, page=(1, subject.wanted.page[1]), cell=())
        )
        columns.append(replace(header, sorter=Sorter(address, text, order)))
    return (*head[:-1], tuple(columns))


def _sorts(subject: Subject, wanted: Arrangement) -> tuple[Option, ...]:
    _ = translations(subject.language).gettext
    table = arrange(subject.published, replace(wanted, sort=0), subject.cube)
    options = [Option("", _("As published"), 0, wanted.sort == 0)]
    for number, position in enumerate(grid_of(table).columns[:_COLUMNS], 1):
        name = ", ".join(caption(member, subject.language) for member in position)
        for sign, text in ((-1, _("%(column)s, largest first")), (1, _("%(column)s, smallest first"))):
            key = sign * number
            options.append(Option(str(key), text % {"column": name}, 0, wanted.sort == key))
    return tuple(options)


# -------------------------------------------------------------------------- what was sent


def is_form(fields: Mapping[str, str]) -> bool:
    """Whether a query string comes from the form."""
    return any(name.partition(".")[0] in FORM_FIELDS for name in fields)


def settle(
    fields: Mapping[str, str],
    query: str,
    wanted: Arrangement,
    published: MaskedCellSet,
    cube: Cube,
    language: str,
) -> Arrangement:
    """The arrangement that the form's fields come to.

    Parameters
    ----------
    fields
        Of the query string; ``tick.…`` are terms with commas between them.
    wanted
        What the address says without the form's own fields.
    language
        In which the form listed the members.

    Raises
    ------
    RefusalError
        400 for a row or column that there isn't, and for what the form doesn't offer.
    """
    known = hierarchies_of(published, cube)
    picks = dict(wanted.picks)
    places: dict[str, list[int]] = {"rows": [], "columns": [], "fixed": []}
    before = _places(known, wanted)
    order = [number for numbers in before.values() for number in numbers]
    for number in [n for n in order if n < len(known.members)]:
        suffix = f"{query}.{number}"
        was = next(place for place, numbers in before.items() if number in numbers)
        where = fields.get(f"place.{suffix}") or was
        if where not in places:
            raise RefusalError(400, NO_VALUE, name=f"place.{suffix}", value=where)
        places[where].append(number)
        if f"one.{suffix}" in fields and was == "fixed" and where == "fixed":
            picks[number] = fields[f"one.{suffix}"]
        elif f"which.{suffix}" in fields:
            picks[number] = _picked(
                fields, suffix, known.members[number], wanted.picks.get(number, ""), language
            )
    turned = any(tuple(places[place]) != before[place] for place in places)
    made = replace(wanted, picks={n: pick for n, pick in picks.items() if pick}, page=(1, 1))
    if known.whole:
        made = replace(
            made,
            rows=tuple(places["rows"]),
            columns=tuple(places["columns"]),
            fixed=tuple(places["fixed"]),
        )
        made = _tidy(made, known)
    columns = len(grid_of(arrange(published, replace(made, sort=0), cube)).columns)
    if turned or abs(made.sort) > columns:
        made = replace(made, sort=0)
    sides = [f"spot.{query}.{side}" for side in ("row", "column")]
    if any(side in fields for side in sides):
        place = [part_of(fields, side) - 1 for side in sides]
        made = replace(made, cell=terms_at(arrange(published, made, cube), known, (place[0], place[1])))
    return made


def looking(fields: Mapping[str, str], query: str) -> list[tuple[str, str]]:
    """What an address says while the form's long lists are searched; nothing once the form is done."""
    if not any(name.startswith((f"look.{query}.", f"part.{query}.")) for name in fields):
        return []
    said = [("edit", query)]
    for name, text in fields.items():
        if not name.startswith(f"find.{query}."):
            continue
        suffix = name.removeprefix("find.")
        words = " ".join(text.split())
        same = words == " ".join(fields.get(f"looked.{suffix}", "").split())
        part = part_of(fields, f"part.{suffix}", f"at.{suffix}") if same else 0
        said += [(name, words)] if words else []
        said += [(f"part.{suffix}", str(part))] if part else []
    return said


def _unlisted(fields: Mapping[str, str], suffix: str, members: Members, was: str, language: str) -> list[str]:
    """Terms ticked before that the form had no box for."""
    if _mode(was) != TICKED:
        return []
    look = Look(fields.get(f"looked.{suffix}", ""), part_of(fields, f"at.{suffix}"))
    found = listing([caption(member, language) for member in members.members], look)
    boxes = set(_boxes(members, was, found))
    chosen = members.pick(was)
    return [
        term
        for number, (term, member) in enumerate(zip(members.terms, members.members, strict=True))
        if member.unique_name in chosen and number not in boxes
    ]


def _picked(fields: Mapping[str, str], suffix: str, members: Members, was: str, language: str) -> str:
    """The pick that the form comes to; ``was`` is the one that it was made with."""
    mode = fields[f"which.{suffix}"]
    ticked = [term for term in fields.get(f"tick.{suffix}", "").split(",") if term]
    if len(members.members) > MOST:
        if ticked and mode == _mode(was):
            mode = TICKED
        if mode == TICKED:
            ticked = [*_unlisted(fields, suffix, members, was, language), *ticked]
    elif mode == _mode(was) and mode != TICKED and f"tick.{suffix}" in fields:
        # Without scripts a reader may tick members and leave the rest of the form as it was.
        chosen = members.pick(was)
        shown = [t for t, m in zip(members.terms, members.members, strict=True) if m.unique_name in chosen]
        said = {
            "from": f"{FROM}{fields.get(f'since.{suffix}', '')}",
            "last": f"{LAST}{fields.get(f'count.{suffix}', '')}",
        }
        if set(shown) != set(ticked) and said.get(mode, was) == was:
            mode = TICKED
    if mode == "from":
        return f"{FROM}{fields.get(f'since.{suffix}', '')}"
    if mode == "last":
        return f"{LAST}{fields.get(f'count.{suffix}', '')}"
    if mode not in ("", TICKED) and not mode.startswith(LEVEL):
        raise RefusalError(400, NO_VALUE, name=f"which.{suffix}", value=mode)
    if mode == TICKED:
        return "" if len(ticked) == len(members.members) else members.said(ticked)
    return mode
