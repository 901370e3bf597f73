"""Dimensions of a Mondrian schema as TOML, with the columns that their queries select."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from app.pipeline.mondrian_draft import Draft, Notes, remarks
from app.pipeline.mondrian_roles import NONE, HierarchyGrant
from app.pipeline.relations import Relation, Select, quoted, relation_of, sql_child
from app.pipeline.toml_text import pairs

_HIDDEN = {"Never": None, "IfBlankName": "blank", "IfParentsName": "parent"}
_PERIODS = {"TimeYears": "year", "TimeQuarters": "quarter", "TimeMonths": "month", "TimeWeeks": "week"}


def add_dimension(
    draft: Draft, usage: etree._Element, source: etree._Element, facts: Select, notes: Notes, role: str | None
) -> None:
    """Add a dimension to a cube.

    Parameters
    ----------
    usage
        Where the cube says that it has it; ``source`` is where it is defined.
    facts
        The query of the facts that it is joined to.
    role
        As whom the cube is seen.
    """
    _Dimension(draft, usage, source, facts, notes, role).add()


class _Dimension:
    def __init__(
        self,
        draft: Draft,
        usage: etree._Element,
        source: etree._Element,
        facts: Select,
        notes: Notes,
        role: str | None,
    ) -> None:
        self.draft, self.usage, self.source, self.facts = draft, usage, source, facts
        self.notes, self.role = notes, role
        self.name = str(usage.get("name") or usage.get("source", ""))
        #: The level that facts are joined at, where that isn't the lowest.
        self.lowest = usage.get("level")

    def add(self) -> None:
        of_role = {
            item: self.draft.grants.hierarchy(self.draft.name, self.name, item.get("name") or self.name)
            for item in self.source.findall("Hierarchy")
        }
        hidden = [item.get("name") for item, grant in of_role.items() if grant.access == NONE]
        self.draft.unseen |= {f"{self.name}.{item}".lower() for item in hidden if item}
        hierarchies = [item for item, grant in of_role.items() if grant.access != NONE and self.reaches(item)]
        table, keys = self.table(hierarchies)
        lines = [
            "",
            *remarks(self.source),
            "[[dimension]]",
            *pairs(name=self.name, caption=self.usage.get("caption") or self.source.get("caption")),
        ]
        if table is not None:
            foreign = self.usage.get("foreignKey") or self.source.get("foreignKey")
            if not foreign:
                self.notes.leave(self.usage, f"dimension {self.name} is left: it has no foreign key.")
                return
            joined = table.add(keys[0], "key")
            fact = self.facts.add(
                f"{quoted(self.facts.relation.alias)}.{quoted(foreign)}", f"{self.name} key"
            )
        body: list[str] = []
        for hierarchy in hierarchies:
            relation = relation_of(hierarchy)
            if self.is_of_facts(relation) and table is not None:
                what = f"a hierarchy of {self.name} on the facts is left: others have a table."
                self.notes.leave(hierarchy, what)
                continue
            body += self.hierarchy(hierarchy, relation, table, of_role[hierarchy])
        if not body:
            self.notes.leave(self.source, f"dimension {self.name} is left: it has no hierarchy.")
            return
        if table is not None:
            lines += pairs(sql=table.text(), key=joined, fact=fact)
        self.draft.dimensions.setdefault(self.name, [*lines, *body])

    def reaches(self, hierarchy: etree._Element) -> bool:
        """Whether a hierarchy has the level that facts are joined at."""
        levels = [level.get("name") for level in hierarchy.findall("Level")]
        if self.lowest is None or self.lowest in levels:
            return True
        called = hierarchy.get("name") or self.name
        self.notes.leave(self.usage, f"hierarchy {called} is left: it has no level {self.lowest} to join at.")
        return False

    def is_of_facts(self, relation: Relation | None) -> bool:
        return relation is None or relation == self.facts.relation

    def table(self, hierarchies: Sequence[etree._Element]) -> tuple[Select | None, list[str]]:
        """The query of the dimension's own tables (None: it is in the facts), and what it is joined by."""
        table: Select | None = None
        keys: list[str] = []
        for hierarchy in hierarchies:
            relation = relation_of(hierarchy)
            if relation is None or self.is_of_facts(relation):
                continue
            at = hierarchy.get("primaryKeyTable") or relation.alias
            key = f"{quoted(at)}.{quoted(hierarchy.get('primaryKey', ''))}"
            if self.lowest is not None:
                level = next(item for item in hierarchy.findall("Level") if item.get("name") == self.lowest)
                key = _column(level, level.get("table") or relation.alias, "column", "KeyExpression") or key
            if table is None:
                table, keys = Select(relation), [key]
            elif not table.holds(relation):
                table.join(relation, f"{keys[0]} = {key}")
        return table, keys

    def hierarchy(
        self,
        element: etree._Element,
        relation: Relation | None,
        table: Select | None,
        grant: HierarchyGrant,
    ) -> list[str]:
        name = element.get("name") or self.name
        lines = ["[[dimension.hierarchy]]", *remarks(element)]
        lines += pairs(name=name, caption=element.get("caption"))
        levels = element.findall("Level")
        names = [level.get("name", "").lower() for level in levels]
        first = min((names.index(top) for top in grant.tops if top in names), default=0)
        last = max((names.index(low) for low in grant.bottoms if low in names), default=len(levels) - 1)
        if self.lowest is not None:
            last = min(last, names.index(self.lowest.lower()))
        self.draft.unseen |= {*names[:first], *names[last + 1 :]}
        if element.get("hasAll", "true") == "true" and not grant.tops:
            called = element.get("allMemberName") or f"All {name}s"
            caption = element.get("allMemberCaption")
            lines += pairs(all=caption or called, **{"all-name": called if caption else None})
        default = element.get("defaultMember")
        if first and default:
            self.notes.leave(
                element, f"default member {default} of {name} is left: it begins above what is seen."
            )
        else:
            lines += pairs(default=default)
        if self.source.get("type") == "TimeDimension":
            lines.append("time = true")
        alias = self.facts.relation.alias if relation is None else relation.alias
        for place, level in enumerate(levels[first : last + 1]):
            lines += self.level(level, table, level.get("table") or alias, place == 0)
        if grant.members:
            self.granted_members(element.get("name") or self.name, grant)
        return lines

    def level(self, element: etree._Element, table: Select | None, alias: str, is_top: bool) -> list[str]:
        name = element.get("name", "")
        select, prefix = (self.facts, f"{self.name} ") if table is None else (table, "")

        def column(kind: str, attribute: str, tag: str = "") -> str | None:
            sql = _column(element, alias, attribute, tag)
            return None if sql is None else select.add(sql, f"{prefix}{name}{kind}")

        lines = ["[[dimension.hierarchy.level]]", *remarks(element)]
        key = column("", "column", "KeyExpression")
        caption = column(" caption", "captionColumn", "CaptionExpression")
        called = column(" name", "nameColumn", "NameExpression")
        hidden = element.get("hideMemberIf", "Never")
        if hidden not in _HIDDEN:
            self.notes.leave(element, f"hideMemberIf of level {name} is left: {hidden} isn't known.")
        lines += pairs(
            name=name,
            caption=element.get("caption"),
            key=key,
            label=caption or called,
            **{"member-name": (called or key) if caption else None},
            order=column(" order", "ordinalColumn", "OrdinalExpression"),
            parent=column(" parent", "parentColumn", "ParentExpression"),
            period=_PERIODS.get(element.get("levelType", "")),
            hidden=_HIDDEN.get(hidden),
        )
        if element.get("parentColumn"):
            lines += pairs(**{"null-parent": element.get("nullParentValue")})
        elif not is_top and element.get("uniqueMembers", "false") != "true":
            lines.append("unique = false")
        properties = element.findall("Property")
        if properties:
            lines.append("[dimension.hierarchy.level.properties]")
            for item in properties:
                sql = f"{quoted(alias)}.{quoted(item.get('column', ''))}"
                lines += pairs(
                    **{item.get("name", ""): select.add(sql, f"{prefix}{name} {item.get('name')}")}
                )
        return lines

    def granted_members(self, hierarchy: str, grant: HierarchyGrant) -> None:
        """Members of a role as a named set: the facts of others stay in the cube, and in its totals."""
        if self.role is None:
            return
        name = f"{hierarchy} of {self.role}"
        what = f"members that role {self.role} may see of {hierarchy}"
        if grant.tops:
            begun = "aren't told: their names begin above the level where it begins."
            self.notes.leave(self.usage, f"{what} {begun}")
            return
        lines = pairs(name=name, formula=grant.set_text())
        self.draft.blocks.append("\n".join(["", "[[named-set]]", *lines]))
        self.notes.leave(self.usage, f"{what} are named set {name}; the cube has the others too.")


def _column(element: etree._Element, alias: str, attribute: str, tag: str) -> str | None:
    """SQL of what a level takes from a column or an expression."""
    sql = sql_child(element, tag) if tag else None
    if sql is None and element.get(attribute):
        sql = f"{quoted(alias)}.{quoted(element.get(attribute, ''))}"
    return sql
