"""Rules of the house that no linter knows. Each says which file breaks it."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]
CODE = ("app", "solver", "demo", "bench")
TOP = {
    ".ci", ".dockerignore", ".gitignore", "CHANGELOG.md", "Dockerfile", "LICENSE", "Makefile", "README.md",
    "app", "bench", "constraints.txt", "demo", "docker-compose.yml", "docs", "pyproject.toml", "solver",
    "static", "templates", "tests",
}  # fmt: skip


@cache
def tracked() -> tuple[Path, ...]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    return tuple(ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Every tracked text, by its path in the repository."""
    for path in tracked():
        body = path.read_bytes()
        if b"\0" not in body and path.name != "LICENSE":
            yield path.relative_to(ROOT).as_posix(), body.decode()


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.split("/")[0] in folders:
            yield name, ast.parse(path.read_text())


def mentions(pattern: str, *folders: str, flags: re.RegexFlag = re.NOFLAG) -> list[str]:
    found = re.compile(pattern, flags)
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts()
        if not folders or name.split("/")[0] in folders
        for match in found.finditer(text)
    ]


def test_top_level_names_are_the_agreed_ones() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= TOP


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "XX" + "X", "Not" + "Implemented", "HA" + "CK"])
def test_nothing_is_left_to_do(word: str) -> None:
    assert mentions(rf"\b{word}", *CODE, "tests", "templates", "static") == []


def test_no_empty_bodies() -> None:
    empty = [
        f"{name}:{node.lineno}"
        for name, tree in trees(*CODE)
        for node in _own_functions(tree)
        if len(node.body) == 1 and (isinstance(node.body[0], ast.Pass) or _is_ellipsis(node.body[0]))
    ]
    assert empty == []


def _own_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions that do something: not those of protocols, nor overloads, which only say a signature."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            continue
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and not any("overload" in ast.unparse(item) for item in node.decorator_list):
            yield node
        yield from _own_functions(node)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


#: The last guard of the site turns whatever happens into a page without data; it has to catch everything.
LAST_GUARD = "app/web/guard.py"


def test_no_broad_except_but_to_pass_it_on() -> None:
    broad = [
        f"{name}:{node.lineno}"
        for name, tree in trees(*CODE, "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and ast.unparse(node.body[-1]) != "raise"
        and name != LAST_GUARD
    ]
    assert broad == []


def test_no_test_is_skipped_or_sleeps() -> None:
    marks = (
        r"pytest\.(skip|xfail|importorskip)|mark\.(skip|skipif|xfail)|\btime\.sle"
        + r"ep\(|from time import sle"
        + "ep"
    )
    assert mentions(marks, "tests") == []


def test_every_worker_collects_the_same_tests() -> None:
    """What a test is named after is the same in every process and at every second.

    A gzip file carries the second that it was written in unless told another.
    """
    changing = {
        "time",
        "time_ns",
        "now",
        "today",
        "utcnow",
        "uuid1",
        "uuid4",
        "urandom",
        "getpid",
        "token_hex",
    }
    found = []
    for name, tree in trees("tests"):
        for decorator in (d for node in ast.walk(tree) for d in getattr(node, "decorator_list", [])):
            if "parametrize" not in ast.unparse(decorator).partition("(")[0]:
                continue
            for part in ast.walk(decorator):
                if not isinstance(part, ast.Call):
                    continue
                called = ast.unparse(part.func).rpartition(".")[2]
                stamped = called == "compress" and not any(word.arg == "mtime" for word in part.keywords)
                if called in changing or (stamped and "gzip" in ast.unparse(part.func)):
                    found.append(f"{name}:{part.lineno}: {ast.unparse(part)}")
    assert found == []


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    hosts = "|".join(
        ("py" + r"pi\.org", "python" + "hosted", "npm" + r"js\.", r"deb\.deb" + "ian", "arti" + "factory")
    )
    paths = "|".join((r"(?<![\w.{])/wo" + "rk/", r"(?<![\w.{])/ro" + "ot/", r"(?<![\w.{])/tm" + "p/"))
    assert mentions(f"{hosts}|{paths}", flags=re.IGNORECASE) == []


def test_files_are_short_enough_to_read() -> None:
    long = [name for name, text in texts() if name.endswith(".py") and text.count("\n") > 600]
    assert long == []


def test_no_second_way_to_say_it() -> None:
    """DESIGN's words: what the field calls otherwise isn't called so here."""
    wrong = r"\b(cell[ _]?set[ _]result|suppressed[ _]set|complementary suppression|super[ -]?secondary)\b"
    assert mentions(wrong, *CODE, flags=re.IGNORECASE) == []


def test_raw_cellsets_never_reach_the_site() -> None:
    named = [
        name
        for name, tree in trees("app")
        if name.startswith("app/web/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "CellSet" for alias in node.names)
    ]
    assert named == []


def test_red_team_takes_only_linear_programs_from_the_solver() -> None:
    taken = {
        node.module
        for name, tree in trees("app")
        if name.startswith("app/redteam/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "solver"
    }
    assert taken <= {"solver.lp", "solver.errors"}


def test_only_the_adapter_imports_the_engine() -> None:
    importing = {
        name
        for name, tree in trees(*CODE)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(a.name.split(".")[0] == "duckdb" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "duckdb")
    }
    assert {name for name in importing if not name.startswith(("app/cube/", "bench/"))} == set()


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[\[>=<; ]", item)[0].replace("-", "_") for item in project["dependencies"]}
    optional = {
        re.split(r"[\[>=<; ]", item)[0].replace("-", "_")
        for name in ("postgres", "atoti", "spark", "telemetry")
        for item in project["optional-dependencies"][name]
    }
    known = {"markdown_it_py": "markdown_it", "argon2_cffi": "argon2"}
    names = {known.get(name, name) for name in declared | optional}
    # What FastAPI, Jinja2 and Typer bring and hand on as their own interface.
    names |= {"starlette", "anyio", "markupsafe", "click"}
    import sys

    own = {"app", "solver", "demo", "bench", "tests"}
    foreign = {
        f"{name}: {module}"
        for name, tree in trees("app", "solver", "demo")
        for node in ast.walk(tree)
        for module in _modules(node)
        if module not in names | own | set(sys.stdlib_module_names)
        # `solver.protect` and its readers accept frames that the caller has already imported.
        and module not in ("pandas", "polars")
    }
    assert foreign == set()


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.split(".")[0]]
    return []


def test_constraints_pin_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)==([A-Za-z0-9_.+!]+)", line)
        assert match, f"constraints.txt: {line!r} pins nothing"
        pinned[match.group(1).lower().replace("_", "-")] = match.group(2)
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgres"], *extras["telemetry"], *extras["dev"]]
    names = {re.split(r"[\[>=<; ]", item)[0].lower().replace("_", "-") for item in wanted} - {"celosia"}
    assert names <= pinned.keys()


@pytest.mark.parametrize("language", ["es", "ca"])
def test_interface_is_translated_whole(language: str) -> None:
    path = ROOT / "app" / "web" / "locale" / language / "LC_MESSAGES" / "messages.po"
    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    bare = [m.id for m in catalogue if m.id and (m.fuzzy or not all(_strings(m.string)))]
    assert bare == []
    known = {m.id if isinstance(m.id, str) else m.id[0] for m in catalogue if m.id}
    assert set(_interface_texts()) - known == set()


def _strings(string: str | tuple[str, ...]) -> tuple[str, ...]:
    return (string,) if isinstance(string, str) else string


def _interface_texts() -> Iterator[str]:
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        method = (
            "jinja2.ext:babel_extract"
            if name.startswith("templates/")
            else "python"
            if name.startswith("app/web/") and path.suffix == ".py"
            else None
        )
        if method is None:
            continue
        for _, message, _, _ in extract_from_file(method, path):
            yield message if isinstance(message, str) else message[0]


def test_pages_ask_nobody_else() -> None:
    """No address of another host in what the site sends."""
    outside = r"(?:src|href|url|@import|fetch)\s*[=(\s]\s*[\"']?(?:https?:)?//(?!www\.w3\.org)"
    assert mentions(outside, "templates", "static") == []


def test_glossary_says_every_term_in_both_languages() -> None:
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "glossary.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| English")
    ]
    assert len(rows) >= 50
    for row in rows:
        english, spanish, meaning = (part.strip() for part in row[1:4])
        assert english
        assert spanish
        assert len(meaning.split(" · ")) == 2, f"{english}: one line in each language"


def test_readme_starts_with_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    first_block = text.split("```")[1].split("\n", 1)[1].strip().splitlines()
    assert len(first_block) == 2
    assert "make demo" in first_block
    assert re.search(r"!\[[^\]]*\]\(docs/screenshots/[\w-]+\.png\)", text)


def test_ci_runs_the_readmes_own_test_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert (ROOT / ".ci" / "run").read_text().strip().endswith("make test")


def test_every_decision_says_its_status() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [path.name[:4] for path in decisions] == [f"{n:04d}" for n in range(1, len(decisions) + 1)]
    for path in decisions:
        text = path.read_text()
        for heading in ("Status:", "## Context", "## Decision", "## Consequences"):
            assert heading in text, f"{path.name}: {heading}"


def test_migrations_are_one_chain() -> None:
    found = {}
    for path in sorted((ROOT / "app" / "db" / "migrations" / "versions").glob("v*.py")):
        text = path.read_text()
        names = [re.search(rf"^{name} = (.+)$", text, re.MULTILINE) for name in ("revision", "down_revision")]
        revision, before = (ast.literal_eval(match.group(1)) for match in names if match)
        assert path.name.startswith(f"v{revision}_"), path.name
        assert revision not in found, f"{path.name} and another one claim {revision}"
        found[revision] = before
    revisions = sorted(found)
    assert [found[revision] for revision in revisions] == [None, *revisions[:-1]]
