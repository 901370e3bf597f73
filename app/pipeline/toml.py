"""TOML with places: every value knows its line, every mistake is noted, none stops the reading."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_toml

from app.domain.cube import Texts
from app.domain.errors import Mistake
from app.domain.publication import Position
from app.domain.texts import unprintable
from app.domain.toml import MOST_VALUES, TooMuchError, read_toml

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))

Path_ = tuple[str | int, ...]

_LONG_NUMBER = re.compile(r"[0-9_]{1000,}")
#: Tables in a list, where nothing else is said; names are compared each with each.
MOST_TABLES = 1000
#: Mistakes that are noted: whoever made so many reads no further, and each is looked up among all names.
MOST_MISTAKES = 500

#: Stands for the start of a text in a path.
TEXT = -1


class Mistakes:
    """The first mistakes of all files, in the order found."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    @property
    def is_full(self) -> bool:
        """Whether so many were found that no more are noted."""
        return len(self.found) > MOST_MISTAKES

    def add(self, at: Position, cause: str, remedy: str = "") -> None:
        if len(self.found) < MOST_MISTAKES:
            self.found.append(Mistake(at.file, at.line, at.column, cause, remedy))
        elif not self.is_full:
            said = f"There are more than {MOST_MISTAKES} mistakes; the first ones are named."
            self.found.append(Mistake(at.file, 0, 0, said, "Mend those, then check again."))


def nearest(name: str, names: Sequence[str], what: str = "Did you mean") -> str:
    """A remedy that names what is written almost like ``name``, or all there is when that is little."""
    close = difflib.get_close_matches(name, names, 3, 0.6)
    if close:
        return f"{what} {' or '.join(close)}?"
    return f"There is {', '.join(names)}." if 0 < len(names) <= 12 else ""


def read_document(path: Path, file: str, mistakes: Mistakes) -> Reader | None:
    """The root table of a TOML file; None, with the mistakes noted, when it isn't one."""
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        mistakes.add(Position(file, 0), "There is no such file.", "Write it.")
        return None
    except OSError as error:
        mistakes.add(Position(file, 0), f"The file can't be read: {error.strerror}.")
        return None
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        mistakes.add(Position(file, line), "The file isn't UTF-8.", "Save it as UTF-8.")
        return None
    text = text.removeprefix("\ufeff")
    try:
        values = read_toml(text)
        places = _places(text.encode())
    except tomllib.TOMLDecodeError as error:
        _note_syntax(text, file, str(error), mistakes)
        return None
    except RecursionError:
        mistakes.add(Position(file, 0), "The values are nested too deeply.", "Write them flatter.")
        return None
    except TooMuchError:
        mistakes.add(Position(file, 0), f"There are more than {MOST_VALUES} values.", "Divide the file.")
        return None
    except ValueError:
        # The parser's only other objection.
        number = _LONG_NUMBER.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 0
        mistakes.add(Position(file, line), "A number has too many digits.", "Write a smaller one.")
        return None
    return Reader(values, (), places, file, mistakes)


class Reader:
    """One table of a document: takes keys out one by one; `done` notes those that nobody took."""

    def __init__(
        self,
        values: Mapping[str, Any],
        path: Path_,
        places: Mapping[Path_, tuple[int, int]],
        file: str,
        mistakes: Mistakes,
    ) -> None:
        self.values = values
        self.file = file
        self.mistakes = mistakes
        self._path = path
        self._places = places
        self._taken: list[str] = []

    def at(self, *keys: str | int) -> Position:
        """Where a key of this table stands, or the table itself, or what holds it."""
        path = (*self._path, *keys)
        while path and path not in self._places:
            path = path[:-1]
        line, column = self._places.get(path, (1, 1))
        return Position(self.file, line, column)

    def text_at(self, key: str) -> Position:
        """Where the text of a key starts: below its key when it opens with a line break."""
        at = self.at(key)
        line, _ = self._places.get((*self._path, key, TEXT), (at.line, 0))
        return Position(at.file, line)

    def wrong(self, cause: str, remedy: str = "", key: str | int | None = None) -> None:
        """Note a mistake at a key, or at the table."""
        self.mistakes.add(self.at() if key is None else self.at(key), cause, remedy)

    def take(self, key: str, kind: type | tuple[type, ...], said: str, required: bool = False) -> Any:
        """The value of a key when it has the right type; None, with the mistake noted, otherwise."""
        self._taken.append(key)
        if key not in self.values:
            if required:
                self.wrong(f"Key {key} is missing.", f"Add it: {said}.")
            return None
        value = self.values[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.wrong(f"Key {key} is of the wrong type.", f"It takes {said}.", key)
            return None
        return value

    def text(self, key: str, required: bool = False) -> str | None:
        value: str | None = self.take(key, str, "a text in quotes", required)
        if value is not None and not value.strip():
            self.wrong(f"Key {key} is empty.", "Give it a text, or leave the key out.", key)
            return None
        self._check_printable(value, key, key)
        return value

    def integer(self, key: str, default: int) -> int:
        value = self.take(key, int, "a whole number")
        return default if value is None else int(value)

    def number(self, key: str, default: float) -> float:
        value = self.take(key, (int, float), "a number")
        return default if value is None else float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.take(key, bool, "true or false")
        return default if value is None else bool(value)

    def choice(self, key: str, options: Sequence[str], default: str | None = None) -> str:
        """One of some words; the first of them, with the mistake noted, when it is none."""
        value = self.text(key, required=default is None)
        if value is None:
            return default or options[0]
        if value not in options:
            self.wrong(f"{value!r} is not a {key}.", nearest(value, options), key)
            return options[0]
        return value

    def texts(self, key: str, languages: Sequence[str], required: bool = False) -> Texts:
        """Text by language; a plain text is in the default language."""
        value = self.take(
            key, (str, dict), f'a text, or one by language ({key}.{languages[0]} = "…")', required
        )
        if value is None:
            return {}
        if isinstance(value, str):
            self._check_printable(value, key, key)
            return {languages[0]: value}
        table = self._inner(value, key)
        for language, words in value.items():
            if language not in languages:
                table.wrong(
                    f"Language {language} is not one of the publication's.",
                    nearest(language, languages),
                    language,
                )
            elif not isinstance(words, str):
                table.wrong(f"Key {key}.{language} is of the wrong type.", "It takes a text.", language)
            else:
                table._check_printable(words, f"{key}.{language}", language)
        return {name: words for name, words in value.items() if name in languages and isinstance(words, str)}

    def _check_printable(self, value: str | None, said: str, key: str) -> None:
        if value is not None and (found := unprintable(value)):
            self.wrong(f"Key {said} holds the control character {found[1]}.", "Take it out.", key)

    def strings(self, key: str, required: bool = False) -> tuple[str, ...]:
        value = self.take(key, list, "a list of texts", required)
        if value is None:
            return ()
        if not all(isinstance(item, str) for item in value):
            self.wrong(f"Key {key} is of the wrong type.", "It takes a list of texts.", key)
            return ()
        return tuple(value)

    def numbers(self, key: str, required: bool = False) -> tuple[float, ...]:
        value = self.take(key, list, "a list of numbers", required)
        if value is None:
            return ()
        if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            self.wrong(f"Key {key} is of the wrong type.", "It takes a list of numbers.", key)
            return ()
        return tuple(map(float, value))

    def table(self, key: str, required: bool = False) -> Reader | None:
        value = self.take(key, dict, f"a table [{key}]", required)
        return None if value is None else self._inner(value, key)

    def tables(self, key: str, required: bool = False, most: int = MOST_TABLES) -> Iterator[Reader]:
        """The tables of a list, ``[[key]]`` or an array of inline tables; none where there are too many."""
        value = self.take(key, list, f"one or several tables [[{key}]]", required)
        if value is not None and len(value) > most:
            self.wrong(f"There are {len(value)} {key} here; {most} is the most.", "Divide them.", key)
            return
        for number, item in enumerate(value or ()):
            if isinstance(item, dict):
                yield self._inner(item, key, number)
            else:
                self.mistakes.add(self.at(key, number), f"Entry {number + 1} of {key} is not a table.")

    def done(self, *more: str) -> None:
        """Note every key that no one has asked for."""
        known = {*self._taken, *more}
        for key in self.values:
            if self.mistakes.is_full:
                return
            if key not in known:
                self.wrong(f"Key {key} is unknown here.", nearest(key, sorted(known)), key)

    def _inner(self, values: Mapping[str, Any], *keys: str | int) -> Reader:
        return Reader(values, (*self._path, *keys), self._places, self.file, self.mistakes)


def _note_syntax(text: str, file: str, message: str, mistakes: Mistakes) -> None:
    """tomllib stops at the first fault; the tree goes on, so each faulty line is named."""
    place = message.rpartition("(at ")[2].rstrip(")").replace(",", "").split()
    cause = message.rpartition(" (at ")[0] or message
    first = int(place[1]) if place[:1] == ["line"] and len(place) > 1 else text.count("\n") + 1
    lines = {first: cause}
    stack = [_PARSER.parse(text.encode()).root_node]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            lines.setdefault(node.start_point[0] + 1, "This isn't TOML")
            if len(lines) > MOST_MISTAKES:
                break
        elif node.has_error:
            stack.extend(node.children)
    for line, said in lines.items():
        mistakes.add(Position(file, line), f"{said}.", "See https://toml.io for how values are written.")


def _places(body: bytes) -> dict[Path_, tuple[int, int]]:
    """Line and column of every key and array entry, by path."""
    places: dict[Path_, tuple[int, int]] = {}
    counts: dict[Path_, int] = {}

    def note(path: Path_, node: tree_sitter.Node) -> None:
        places.setdefault(path, (node.start_point[0] + 1, node.start_point[1] + 1))

    def name_of(node: tree_sitter.Node) -> str:
        written = (node.text or b"").decode()
        return next(iter(tomllib.loads(f"{written} = 0"))) if node.type == "quoted_key" else written

    def keys_of(node: tree_sitter.Node) -> list[str]:
        if node.type == "dotted_key":
            return [key for child in node.named_children for key in keys_of(child)]
        return [name_of(node)]

    def resolve(keys: Sequence[str]) -> Path_:
        """A header's path: through the last entry of each list of tables on the way."""
        path: Path_ = ()
        for key in keys:
            path = (*path, key)
            if path in counts:
                path = (*path, counts[path] - 1)
        return path

    def pair(node: tree_sitter.Node, base: Path_) -> None:
        path = base
        for key in keys_of(node.named_children[0]):
            path = (*path, key)
            note(path, node)
        value(node.named_children[-1], path)

    def value(node: tree_sitter.Node, path: Path_) -> None:
        children = [child for child in node.named_children if child.type != "comment"]
        if node.type == "inline_table":
            for child in children:
                pair(child, path)
        elif node.type == "array":
            for number, child in enumerate(children):
                note((*path, number), child)
                value(child, (*path, number))
        elif node.type == "string":
            opened = (node.text or b"")[3:5]
            below = (node.text or b"")[:3] in (b'"""', b"'''") and opened.startswith((b"\n", b"\r\n"))
            places[(*path, TEXT)] = (node.start_point[0] + 1 + below, 0)

    for node in _PARSER.parse(body).root_node.named_children:
        base: Path_ = ()
        children = [child for child in node.named_children if child.type != "comment"]
        if node.type == "pair":
            pair(node, ())
            continue
        if node.type == "table":
            base = resolve(keys_of(children[0]))
        elif node.type == "table_array_element":
            keys = keys_of(children[0])
            listed = (*resolve(keys[:-1]), keys[-1])
            counts[listed] = counts.get(listed, 0) + 1
            note(listed, node)
            base = (*listed, counts[listed] - 1)
        else:
            continue
        for length in range(1, len(base) + 1):
            note(base[:length], node)
        for child in children[1:]:
            pair(child, base)
    return places
