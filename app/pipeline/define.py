"""define: a folder of text files becomes a checked `Publication`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from app.domain.cube import Texts
from app.domain.errors import Mistake, UserError
from app.domain.publication import (
    CubeDefinition,
    Folder,
    Forgetting,
    Position,
    Publication,
    ReleasePolicy,
    Sheet,
    Theme,
)
from app.domain.shapes import Shapes
from app.pipeline.define_contact import read_contact, read_next_release
from app.pipeline.define_cube import read_cube
from app.pipeline.define_remote import check_remotes
from app.pipeline.define_rules import read_confidentiality
from app.pipeline.define_sheet import read_folder_title, read_sheet
from app.pipeline.shapes import read_shapes
from app.pipeline.toml import Mistakes, Reader, read_document

IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
DEEPEST = 20
MOST_KEPT = 1000
#: Letters of a sheet's folders and name that a database has room for.
LONGEST_ADDRESS = 400


def load_publication(folder: Path) -> Publication:
    """Read and check a publication folder.

    Raises
    ------
    UserError
        With every mistake of every file: place, cause and remedy.
    """
    publication, mistakes = draft_publication(folder)
    if mistakes or publication is None:
        raise UserError(mistakes)
    return publication


def load_cubes(folder: Path) -> tuple[tuple[str, ...], tuple[CubeDefinition, ...]]:
    """Languages and cubes of a publication folder, for queries on the raw data.

    Rules, sheets and `publication.toml` itself may still be missing or wrong, as after an import.

    Raises
    ------
    UserError
        With every mistake of the cubes' files.
    """
    mistakes = Mistakes()
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    languages = _languages(read_document(folder / "publication.toml", "publication.toml", Mistakes()))
    cubes = _cubes(folder, languages, mistakes)
    if mistakes.found:
        raise UserError(mistakes.found)
    return languages, tuple(cubes.values())


def draft_publication(folder: Path) -> tuple[Publication | None, tuple[Mistake, ...]]:
    """What can be read of a publication folder, and every mistake in its text.

    A draft with mistakes holds what is right: `check` tries that against the data, so that its authors see
    the mistakes of both kinds in one go.

    Raises
    ------
    UserError
        There is no such folder.
    """
    mistakes = Mistakes()
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    root = read_document(folder / "publication.toml", "publication.toml", mistakes)
    languages = _languages(root)
    cubes = _cubes(folder, languages, mistakes)
    tree = _folder(folder, folder / "sheets", "", languages, cubes, mistakes)
    if not mistakes.found and not any(True for _ in tree.walk()):
        mistakes.add(
            Position("sheets", 0), "There is no sheet.", "Write one as sheets/<folder>/<sheet>.toml."
        )
    if root is None:
        return None, tuple(mistakes.found)
    title = root.texts("title", languages, required=True)
    description = root.texts("description", languages)
    publisher = root.texts("publisher", languages)
    confidentiality = read_confidentiality(root, cubes, bool(mistakes.found))
    policy = _policy(root)
    theme = _theme(root, folder)
    contact, next_release = read_contact(root, languages), read_next_release(root)
    shapes = _shapes(folder, tree, mistakes)
    check_remotes(cubes, confidentiality, mistakes)
    root.done("languages")
    publication = Publication(
        folder=str(folder),
        title=title,
        description=description,
        publisher=publisher,
        languages=languages,
        cubes=tuple(cubes.values()),
        root=Folder("", title, description, tree.folders, tree.sheets),
        confidentiality=confidentiality,
        release=policy,
        digest="" if mistakes.found else _digest(folder, shapes),
        shapes=shapes,
        theme=theme,
        contact=contact,
        next_release=next_release,
    )
    return publication, tuple(mistakes.found)


def _policy(root: Reader) -> ReleasePolicy:
    section = root.table("release")
    if section is None:
        return ReleasePolicy()
    keep = section.integer("keep", ReleasePolicy.keep)
    if not 0 <= keep <= MOST_KEPT:
        section.wrong("Key keep is out of range.", f"Give a number of releases, 0 to {MOST_KEPT}.", "keep")
    forget = []
    for table in section.tables("forget"):
        cube, reason = table.text("cube", required=True), table.text("reason", required=True)
        forget.append(Forgetting(cube or "", table.text("what") or "", reason or ""))
        table.done()
    section.done()
    return ReleasePolicy(keep, tuple(forget))


def _theme(root: Reader, folder: Path) -> Theme:
    reader = root.table("theme")
    if reader is None:
        return Theme()
    colours = {name: reader.text(name) or "" for name in ("accent", "accent-dark")}
    for name, colour in colours.items():
        if colour and not re.fullmatch(r"#[0-9A-Fa-f]{6}", colour):
            reader.wrong(f"{colour!r} is no colour.", 'Write it as "#0d5560".', name)
            colours[name] = ""
    logo = ""
    name = reader.text("logo") or ""
    if name:
        place = _below(folder, name)
        try:
            logo = "" if place is None else place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            place = None
        if place is None:
            reader.wrong(f"There is no readable file {name}.", "Name an SVG file of the publication.", "logo")
        elif "<svg" not in logo:
            reader.wrong(f"{name} is no SVG.", "Save the logo as SVG.", "logo")
    reader.done()
    return Theme(colours["accent"], colours["accent-dark"], logo)


def _shapes(folder: Path, tree: Folder, mistakes: Mistakes) -> dict[str, Shapes]:
    """The outlines that maps are drawn with, by the file that they name."""
    found: dict[str, Shapes] = {}
    tried: set[str] = set()
    for sheet in tree.walk():
        for query in sheet.queries:
            name = query.options.get("shapes")
            if not isinstance(name, str) or name in tried:
                continue
            tried.add(name)
            place = _below(folder, name)
            if place is None:
                cause = f"{name}: There is no such file."
                mistakes.add(query.at, cause, "Name a file below the publication's folder.")
                continue
            shapes = read_shapes(place, name, query.options.get("shape-key"), query.at, mistakes)
            if shapes is not None:
                found[name] = shapes
    return found


def _below(folder: Path, name: str) -> Path | None:
    """The file of that name in a publication; None for one elsewhere, and for what is no file: who writes a
    publication needn't be who may read this machine, and a device may never end.
    """
    inside = os.path.normpath(name)
    if os.path.isabs(inside) or inside.split(os.sep)[0] == os.pardir:
        return None
    return folder / inside if os.path.isfile(folder / inside) else None


def _languages(root: Reader | None) -> tuple[str, ...]:
    if root is None:
        return ("en",)
    languages = root.strings("languages", required=True)
    if not languages and "languages" in root.values:
        root.wrong("There is no language.", 'Write languages = ["en"].', "languages")
    for language in languages:
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)*", language):
            root.wrong(
                f"{language!r} is not a language code.", 'Write codes such as "en" or "es".', "languages"
            )
    if len(set(languages)) < len(languages):
        root.wrong("A language is listed twice.", "List each once.", "languages")
    return tuple(dict.fromkeys(languages)) or ("en",)


def _cubes(folder: Path, languages: tuple[str, ...], mistakes: Mistakes) -> dict[str, CubeDefinition]:
    cubes: dict[str, CubeDefinition] = {}
    paths = sorted((folder / "cubes").glob("*.toml"))
    if not paths:
        mistakes.add(Position("cubes", 0), "There is no cube.", "Write one as cubes/<name>.toml.")
    for path in paths:
        reader = read_document(path, _shown(path, folder), mistakes)
        cube = None if reader is None else read_cube(reader, path.parent, languages)
        if cube is None:
            continue
        if cube.name in cubes:
            mistakes.add(
                cube.at, f"Cube {cube.name} is also in {cubes[cube.name].at.file}.", "Give it another name."
            )
        for other in cubes.values():
            if other.name != cube.name and _source(other) == _source(cube):
                cause = f"Cubes {other.name} and {cube.name} read the same facts, but are protected apart."
                mistakes.add(cube.at, cause, "Make one cube of them, which all their sheets use.")
        cubes[cube.name] = cube
    for cube in cubes.values():
        for name in cube.formerly:
            if name in cubes:
                remedy = "Give formerly names that nothing has any more."
                mistakes.add(cube.at, f"There is a {name} today.", remedy)
    return cubes


def _source(cube: CubeDefinition) -> tuple[str, str | None, str | None]:
    facts = cube.facts
    if cube.remote is not None:
        return cube.remote.url, cube.remote.catalog, cube.remote.cube
    return os.path.realpath(facts.file) if facts.file is not None else "", facts.url, facts.sql


def _folder(
    base: Path,
    here: Path,
    identity: str,
    languages: tuple[str, ...],
    cubes: Mapping[str, CubeDefinition],
    mistakes: Mistakes,
) -> Folder:
    """A folder and all below it, in the order that the files state (then by name)."""
    sheets: list[tuple[int, str, Sheet]] = []
    folders: list[tuple[int, str, Folder]] = []
    title: Texts = {languages[0]: here.name}
    notes: Texts = {}
    for path in sorted(here.iterdir()) if here.is_dir() else ():
        file = _shown(path, base)
        if path.name.startswith("."):
            continue
        below = f"{identity}/{path.stem if path.is_file() else path.name}".lstrip("/")
        if not path.is_dir() and path.suffix != ".toml":
            mistakes.add(Position(file, 0), "Only .toml files belong here.", "Move it out of sheets/.")
        elif not IDENTIFIER.fullmatch(path.name):
            mistakes.add(
                Position(file, 0),
                "The name becomes an address and may hold letters, digits, - and _ only.",
                "Rename it.",
            )
        elif len(below) > LONGEST_ADDRESS:
            cause = f"The name and those of its folders have at most {LONGEST_ADDRESS} letters together."
            mistakes.add(Position(file, 0), cause, "Rename it.")
        elif path.is_dir() and identity.count("/") + 2 > DEEPEST:
            cause = f"Folders are nested more than {DEEPEST} deep, or a link leads back to one above."
            mistakes.add(Position(file, 0), cause, "Write them flatter.")
        elif path.is_dir():
            order = 0
            inner = _folder(base, path, below, languages, cubes, mistakes)
            if (path / "folder.toml").is_file():
                reader = read_document(path / "folder.toml", f"{file}/folder.toml", mistakes)
                if reader is not None:
                    words, remarks, order = read_folder_title(reader, languages)
                    inner = Folder(below, words, remarks, inner.folders, inner.sheets)
            folders.append((order, path.name, inner))
        elif path.name != "folder.toml":
            reader = read_document(path, file, mistakes)
            if reader is not None:
                order, sheet = read_sheet(reader, below, languages, cubes)
                sheets.append((order, path.name, sheet))
    return Folder(
        identity,
        title,
        notes,
        tuple(item for *_, item in sorted(folders, key=lambda entry: entry[:2])),
        tuple(item for *_, item in sorted(sheets, key=lambda entry: entry[:2])),
    )


def _shown(path: Path, base: Path) -> str:
    """A path as messages name it; a name that isn't UTF-8 has its odd bytes escaped."""
    return path.relative_to(base).as_posix().encode("utf-8", "backslashreplace").decode()


def _text_files(folder: Path) -> Iterator[Path]:
    yield folder / "publication.toml"
    yield from sorted((folder / "cubes").glob("*.toml"))
    # Links are followed, as in the reading of the folders.
    tree = os.walk(folder / "sheets", followlinks=True)
    below = [Path(top, name) for top, _, names in tree for name in names]
    yield from sorted(path for path in below if path.suffix == ".toml")


def _digest(folder: Path, shapes: Iterable[str]) -> str:
    """SHA-256 of all text of a publication without mistakes, with the ``shapes`` of its maps."""
    digest = hashlib.sha256()
    for name in sorted(shapes):
        digest.update(f"{name}\0{hashlib.sha256((folder / name).read_bytes()).hexdigest()}\0".encode())
    for path in _text_files(folder):
        body = path.read_bytes()
        digest.update(f"{_shown(path, folder)}\0{len(body)}\0".encode())
        digest.update(body)
    return digest.hexdigest()
