"""What authors are told is wrong, in all languages: every sentence of the layers that find mistakes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from app.web.mistakes import in_words_of

ROOT = Path(__file__).resolve().parents[2]
#: Where mistakes of authors are found; what operators are told at the terminal is in English.
FINDERS = (
    "app/office/archive.py", "app/office/cube_writer.py", "app/office/drafting.py", "app/office/intake.py",
    "app/office/jobs.py", "app/office/people.py", "app/office/previews.py", "app/office/protection.py",
    "app/office/releases.py", "app/office/rules_form.py", "app/office/settings.py",
    "app/office/sheet_form.py", "app/office/survey.py", "app/office/versions.py", "app/db/workspace.py",
    "app/domain/version.py", "app/domain/release_life.py", "app/pipeline/define.py",
    "app/pipeline/define_contact.py", "app/pipeline/define_cube.py", "app/pipeline/define_rules.py",
    "app/pipeline/define_sheet.py", "app/pipeline/recognise.py", "app/pipeline/toml.py",
    "app/pipeline/shapes.py", "app/pipeline/suppress.py", "app/pipeline/what_if.py",
    "app/pipeline/members.py", "app/cube/budget.py", "app/cube/conversions.py", "app/cube/evaluate.py",
    "app/cube/names.py", "app/mdx/parser.py", "app/mdx/expressions.py", "app/mdx/reading.py",
    "app/mdx/tokens.py",
)  # fmt: skip
#: Calls that tell a mistake, and variables that hold a sentence until one does.
TELLERS = {"UserError", "ConflictError", "Mistake", "wrong", "error", "add", "mistake", "tell"}
HELD = {"cause", "remedy"}


def sentences(name: str) -> Iterator[str]:
    """Sentences of a file, ``{}`` for what is put in."""
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        told: list[ast.expr] = []
        if isinstance(node, ast.Call):
            called = node.func
            by = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if by in TELLERS:
                told = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Assign) and any(getattr(item, "id", "") in HELD for item in node.targets):
            told = [node.value]
        for item in told:
            text = _text(item)
            if " " in text and text[:1] == text[:1].upper() and text[-1:] in ".?!":
                yield text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def catalogue(language: str) -> dict[str, str]:
    path = ROOT / "app/web/locale" / language / "LC_MESSAGES/mistakes.po"
    with path.open("rb") as file:
        return {str(message.id): str(message.string) for message in read_po(file) if message.id}


@pytest.mark.parametrize("language", ["es", "ca"])
def test_every_mistake_can_be_told(language: str) -> None:
    known = catalogue(language)
    uneven = [text for text, said in known.items() if not said or text.count("{}") != said.count("{}")]
    assert uneven == []
    wanted = {text for name in FINDERS for text in sentences(name)}
    assert len(wanted) > 200
    assert sorted(wanted - known.keys()) == []


def reached(module: str, found: dict[str, Path]) -> None:
    """Modules of ours that a module imports, and those that they import."""
    path = next(
        (
            path
            for end in (".py", "/__init__.py")
            if (path := ROOT / (module.replace(".", "/") + end)).is_file()
        ),
        None,
    )
    if path is None or module in found:
        return
    found[module] = path
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("app."):
            for name in (node.module, *(f"{node.module}.{item.name}" for item in node.names)):
                reached(name, found)


def every_sentence(tree: ast.Module) -> Iterator[str]:
    """All sentences of a module that aren't written for whoever reads it."""
    apart: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            apart.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            apart.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in apart:
            text = _text(node)
            if " " in text and text[:1] == text[:1].upper() and text[-1:] in ".?!":
                yield text


@pytest.mark.parametrize("language", ["es", "ca"])
def test_every_mistake_in_a_readers_query_can_be_told(language: str) -> None:
    """Whatever is said by what answers queries of readers, by whichever way."""
    modules: dict[str, Path] = {}
    reached("app.serve.adhoc", modules)
    assert {"app.cube.value_functions", "app.mdx.tokens", "app.domain.formula"} <= modules.keys()
    known = catalogue(language)
    told = {text for path in modules.values() for text in every_sentence(ast.parse(path.read_text()))}
    assert len(told) > 150
    # What is made of parts alone can't be said before they are known.
    assert sorted(text for text in told - known.keys() if text.replace("{}", "").strip(" .:")) == []


@pytest.mark.parametrize("language", ["es", "ca"])
def test_words_that_are_put_in_are_told_too(language: str) -> None:
    kinds = ("a member", "a tuple", "a set", "a level", "a hierarchy", "a text", "a truth value", "a number")
    for words in (*kinds, "the slicer", "axis 0", "none"):
        assert in_words_of(words, language) != words


def expectations() -> Iterator[str]:
    """What the reader of MDX says that it expected, ``{}`` for a word of the language."""
    for path in sorted((ROOT / "app" / "mdx").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            by = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or by not in (
                "fail",
                "name",
                "select",
                "need_word",
                "need_symbol",
            ):
                continue
            told = [part for item in node.args for part in _ways(item) if " " in part]
            yield from (f"{{}} {text}" if by.startswith("need") else text for text in told)


def _ways(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.IfExp):
        yield from (*_ways(node.body), *_ways(node.orelse))
    else:
        yield _text(node)


@pytest.mark.parametrize("language", ["es", "ca"])
def test_what_was_expected_can_be_told(language: str) -> None:
    # The reader's own two helpers put words together, which are told below them.
    wanted = {text for text in expectations() if text.replace("{}", "").strip()}
    assert len(wanted) > 25
    assert sorted(wanted - catalogue(language).keys()) == []


def test_what_is_named_stays_as_it_is_written() -> None:
    assert in_words_of("Cube {} has no measure A. B.", "es") == "El cubo {} no tiene la medida A. B."
    assert in_words_of("Line 3: There is no line of data.", "ca") == "Línia 3: No hi ha cap línia de dades."
    assert in_words_of("Nobody ever said this.", "es") == "Nobody ever said this."
    long = "There is no cube " + "x" * 1000 + "."
    assert in_words_of(long, "es") == long
    assert in_words_of("There is no cube x.", "en") == "There is no cube x."
