"""Hierarchies of codes: what a dimension of a table adds up to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arguments import told
from solver.errors import InputError, MultipleInputError

TOTAL = "Total"


def _named(code: object) -> str:
    return repr(str(code)) if str(code) != str(code).strip() or not str(code) else str(code)


def _no_text(code: object) -> tuple[str, str]:
    """What is wrong with a code of another type, and what to do."""
    return f"the code {told(code)} is no text.", "Write codes as text, numbers too."


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Codes of one dimension and which code each is a part of.

    There is no limit to the number of codes, the number of levels or the length of a code, and leaves may
    lie at different depths. Several roots are allowed: nothing then adds the roots up.

    Parameters
    ----------
    codes
        n different codes, each after its parent.
    parent
        i8[n], position of the parent, -1 for a root.

    Raises
    ------
    InputError
        If a code is no text or occurs twice, or a parent does not come before its child.
    """

    codes: tuple[str, ...]
    parent: NDArray[np.int64]

    def __post_init__(self) -> None:
        parent = np.array(self.parent, dtype=np.int64)
        parent.setflags(write=False)
        object.__setattr__(self, "parent", parent)
        object.__setattr__(self, "codes", tuple(self.codes))
        if parent.shape != (len(self.codes),):
            raise InputError(f"{len(self.codes)} codes, but parents of shape {parent.shape}.")
        for code in self.codes:
            if not isinstance(code, str):
                raise InputError(*_no_text(code))
        if len(self.index) != len(self.codes):
            twice = sorted({code for code in self.codes if self.codes.count(code) > 1})
            raise InputError(f"code {', '.join(map(_named, twice))} occurs twice.", "Make codes unique.")
        if (parent >= np.arange(len(parent))).any() or (parent < -1).any():
            wrong = int(np.argmax((parent >= np.arange(len(parent))) | (parent < -1)))
            raise InputError(f"code {_named(self.codes[wrong])} comes before its parent.")

    # ------------------------------------------------------------------ doors

    @classmethod
    def flat(cls, codes: Iterable[str], total: str = TOTAL) -> Hierarchy:
        """One total and the codes below it; a code equal to the total is the total."""
        listed = [code for code in dict.fromkeys(codes) if code != total]
        return cls((total, *listed), np.array([-1] + [0] * len(listed)))

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> Hierarchy:
        """From nested mappings, a leaf being an empty one: ``{"Total": {"a": {}, "b": {}}}``.

        Raises
        ------
        MultipleInputError
            Naming every code that occurs in two places, and every entry that is no mapping.
        """
        pairs: list[tuple[str | None, str]] = []
        problems: list[InputError] = []
        stack: list[tuple[str | None, str, Any]] = []
        stack.extend((None, code, below) for code, below in [*tree.items()][::-1])
        while stack:
            above, code, below = stack.pop()
            pairs.append((above, code))
            if below is not None and not isinstance(below, Mapping):
                problems.append(
                    InputError(f"what stands below {_named(code)} is no tree.", "Write {} for a leaf.")
                )
                continue
            stack.extend((code, child, deeper) for child, deeper in [*(below or {}).items()][::-1])
        if problems:
            raise MultipleInputError(problems)
        return cls.from_pairs(pairs)

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[str | None, str]], *, file: str | None = None, lines: Sequence[int] = ()
    ) -> Hierarchy:
        """From (parent, child) pairs in any order; a parent that is nobody's child, or None, is a root.

        Raises
        ------
        MultipleInputError
            Naming in one go every code that is no text, has two parents or is its own child, and every
            circle; with file and line where they are given.
        """
        listed = list(pairs)
        where = list(lines) or [0] * len(listed)
        above: dict[str, tuple[str | None, int]] = {}
        children: dict[str | None, list[str]] = {None: []}
        problems: list[InputError] = []

        def complain(cause: str, remedy: str, line: int = 0) -> None:
            problems.append(InputError(cause, remedy, file=file, line=line or None))

        for (mother, child), line in zip(listed, where, strict=True):
            odd = [code for code in (child, "" if mother is None else mother) if not isinstance(code, str)]
            if odd:
                complain(*_no_text(odd[0]), line)
            elif mother == child:
                complain(f"{_named(child)} is its own child.", "Give the child another code.", line)
            elif child not in above:
                above[child] = (mother, line)
                children.setdefault(mother, []).append(child)
            elif above[child][0] == mother:
                complain(f"{_named(child)} is twice under {_named(mother)}.", "Keep one of the two.", line)
            else:
                first = above[child][0]
                complain(
                    f"{_named(child)} is under {_named(first)} and {_named(mother)}.",
                    "A code has one parent; give the second one a code of its own.",
                    line,
                )
        roots = [mother for mother in children if mother is not None and mother not in above]
        children[None] = roots + children[None] if None not in above else children[None]
        order: list[str] = []
        stack = children[None][::-1]
        while stack:
            code = stack.pop()
            order.append(code)
            stack.extend(children.get(code, ())[::-1])
        position = {code: i for i, code in enumerate(order)}
        circular = [code for code in above if code not in position]
        if circular:
            complain(
                f"{', '.join(map(_named, circular[:10]))} lie below one another in a circle.",
                "Name a parent outside it.",
                above[circular[0]][1],
            )
        if problems:
            raise MultipleInputError(problems)
        parents = [above[code][0] if code in above else None for code in order]
        return cls(
            tuple(order), np.array([-1 if p is None else position[p] for p in parents], dtype=np.int64)
        )

    @classmethod
    def from_levels(cls, columns: Sequence[Sequence[str]], total: str = TOTAL) -> Hierarchy:
        """From columns of codes, coarsest first, below one total; equal codes on adjacent levels of one row
        are one node.

        Raises
        ------
        MultipleInputError
            If a code is found under two parents.
        """
        pairs: dict[tuple[str | None, str], None] = {(None, total): None}
        for row in zip(*columns, strict=True):
            path = [total, *row]
            pairs.update(((a, b), None) for a, b in itertools.pairwise(path) if a != b)
        return cls.from_pairs(pairs)

    # ------------------------------------------------------------- properties

    @property
    def n(self) -> int:
        """Number of codes."""
        return len(self.codes)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each code."""
        return {code: i for i, code in enumerate(self.codes)}

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """i8[n], distance from the root."""
        depth = np.zeros(self.n, dtype=np.int64)
        for i, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                depth[i] = depth[parent] + 1
        return depth

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """bool[n], codes without parts."""
        leaf = np.ones(self.n, dtype=np.bool_)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    def ancestor(self, depth: int) -> NDArray[np.int64]:
        """i8[n], the ancestor-or-self of each code at that depth, -1 where the code lies above it."""
        result = np.where(self.depth == depth, np.arange(self.n), -1)
        for i, parent in enumerate(self.parent.tolist()):
            if parent >= 0 and self.depth[i] > depth:
                result[i] = result[parent]
        return result

    def tree(self) -> dict[str, Any]:
        """The nested mapping that ``from_tree`` reads."""
        nodes: list[dict[str, Any]] = [{} for _ in self.codes]
        top: dict[str, Any] = {}
        for code, node, parent in zip(self.codes, nodes, self.parent.tolist(), strict=True):
            (top if parent < 0 else nodes[parent])[code] = node
        return top

    def below(self, total: str) -> Hierarchy:
        """The same codes with all roots put under one total; unchanged if that total is the only root."""
        roots = [code for code, parent in zip(self.codes, self.parent, strict=True) if parent < 0]
        if roots == [total]:
            return self
        if total in self.index:
            raise InputError(
                f"the total is called {_named(total)}, which is also a code below it.",
                "Give the total another name.",
            )
        return Hierarchy((total, *self.codes), np.concatenate(([-1], self.parent + 1)))

    def with_codes(self, extra: Iterable[str], parent: str) -> Hierarchy:
        """The same hierarchy with further codes under one of its codes."""
        added = [code for code in dict.fromkeys(extra) if code not in self.index]
        mother = np.full(len(added), self.index[parent], dtype=np.int64)
        return Hierarchy((*self.codes, *added), np.concatenate((self.parent, mother)))
