"""MDX text to tree and back: stable, exact about mistakes, and never slow."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import UserError
from app.mdx import MdxSyntaxError, parse, parse_expression, substitute, to_text
from app.mdx.reading import MAX_DEPTH
from app.mdx.tokens import MAX_LENGTH, MAX_TOKENS

GOLDEN = (Path(__file__).parent / "identity.mdx").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", GOLDEN)
def test_identity(line: str) -> None:
    tree = parse(line)
    assert parse(to_text(tree)) == tree
    assert to_text(parse(to_text(tree))) == to_text(tree)


def test_golden_lines_are_in_normal_form() -> None:
    """All but the lines that show how a flag is written."""
    flags = ("SELF_AND_BEFORE", "BDESC", "POST", "[LEAVES]")
    assert [line for line in GOLDEN if not any(flag in line for flag in flags)] == [
        to_text(parse(line)) for line in GOLDEN if not any(flag in line for flag in flags)
    ]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("select a.b on columns from c", "SELECT [a].[b] ON COLUMNS FROM [c]"),
        ("SELECT a ON AXIS(0) FROM c -- done", "SELECT [a] ON COLUMNS FROM [c]"),
        ("SELECT /* all */ a ON 0 // first\nFROM c", "SELECT [a] ON COLUMNS FROM [c]"),
        ("SELECT b ON 1, a ON 0 FROM c", "SELECT [a] ON COLUMNS, [b] ON ROWS FROM [c]"),
        (
            "WITH MEMBER Measures.x AS 'IIF(1 = 1, ''a'', 2)', FORMAT_STRING = '0' SELECT FROM c",
            'WITH MEMBER [Measures].[x] AS IIF(1 = 1, "a", 2), FORMAT_STRING = "0" SELECT FROM [c]',
        ),
        ("SELECT a.&28.&[x] ON 0 FROM c", "SELECT [a].&[28].&[x] ON COLUMNS FROM [c]"),
        ("SELECT a.Children(1) ON 0 FROM c", "SELECT [a].Children.Item(1) ON COLUMNS FROM [c]"),
        ("SELECT {a, b}(1)(0) ON 0 FROM c", "SELECT {[a], [b]}.Item(1).Item(0) ON COLUMNS FROM [c]"),
        (
            "SELECT Tail(a.Members, 1)(0) ON 0 FROM c",
            "SELECT Tail([a].Members, 1).Item(0) ON COLUMNS FROM [c]",
        ),
        ("SELECT (1 + 2) * (3) ON 0 FROM c", "SELECT (1 + 2) * (3) ON COLUMNS FROM [c]"),
        ("SELECT 1.50 + .5e1 ON 0 FROM c", "SELECT 1.5 + 5 ON COLUMNS FROM [c]"),
    ],
)
def test_normal_form(written: str, normal: str) -> None:
    assert to_text(parse(written)) == normal


@pytest.mark.parametrize(
    ("text", "line", "column", "cause"),
    [
        ("", 1, 1, "Expected SELECT, or WITH, but found the end of the text."),
        ("SELEC a ON 0 FROM c", 1, 1, "Expected SELECT, or WITH"),
        ("SELECT {a ON 0 FROM c", 1, 11, "Expected ',' or '}', but found “ON”."),
        ("SELECT a ON 0\nFRMO c", 2, 1, "did you mean FROM?"),
        ("SELECT a ON 0,\n b ON 2 FROM c", 2, 2, "Axis 1 is missing"),
        ("SELECT a ON 0, b ON 0 FROM c", 1, 16, "Axis 0 is given twice"),
        ("SELECT a ON x FROM c", 1, 13, "COLUMNS, ROWS, PAGES or the number"),
        ("SELECT [a ON 0 FROM c", 1, 8, "never closed"),
        ("SELECT 'a ON 0 FROM c", 1, 8, "never closed"),
        ("SELECT a /* ON 0 FROM c", 1, 10, "never closed"),
        ("SELECT a ? b ON 0 FROM c", 1, 10, "'?' has no meaning"),
        ("SELECT a = b = c ON 0 FROM c", 1, 14, "the end of the comparison"),
        ("SELECT f(a b) ON 0 FROM c", 1, 12, "',' or ')' in the arguments"),
        ("SELECT () ON 0 FROM c", 1, 8, "A tuple needs a member."),
        ("WITH SELECT a ON 0 FROM c", 1, 6, "MEMBER or SET"),
        ("WITH MEMBER [Measures].[x] '1' SELECT FROM c", 1, 28, "AS after the member's name"),
        ("WITH MEMBER x AS 'a + ' SELECT FROM c", 1, 23, "a set, member or value"),
        ("SELECT CASE 1 END ON 0 FROM c", 1, 15, "WHEN in CASE"),
        ("SELECT a ON 0 FROM c WHERE", 1, 27, "a set, member or value"),
        ("SELECT a. ON 0 FROM c", 1, 14, "the end"),
        ("SELECT 1e999 ON 0 FROM c", 1, 8, "out of range"),
    ],
)
def test_mistakes_have_a_place(text: str, line: int, column: int, cause: str) -> None:
    if cause == "the end":
        # ``a. ON`` reads as a name of two parts, so that the mistake is at the 0.
        cause = "ON after the set"
    with pytest.raises(MdxSyntaxError) as caught:
        parse(text, "sheet.toml", 10)
    (mistake,) = caught.value.mistakes
    assert (mistake.file, mistake.line) == ("sheet.toml", 9 + line)
    assert mistake.column == column, mistake
    assert cause in mistake.cause
    shown, caret = mistake.excerpt.split("\n")
    assert shown[: len(caret) - 1] in text
    assert caret.endswith("^")


def test_nesting_has_a_limit() -> None:
    deep = MAX_DEPTH - 5
    assert parse(f"SELECT {'(' * deep}a{')' * deep} ON 0 FROM c")
    for opening in ("(", "{", "f(", "- ", "NOT ", "1 OR 1 AND 1 = 1 + 1 * (", "CASE WHEN "):
        with pytest.raises(MdxSyntaxError, match="nested more than"):
            parse("SELECT " + opening * 3_000)
    with pytest.raises(MdxSyntaxError, match="nested more than"):
        parse("SELECT a" + ".Parent" * 5000 + " ON 0 FROM c")


def test_long_chains_are_flat() -> None:
    text = "SELECT " + " + ".join(["1"] * 20_000) + " ON 0 FROM c"
    assert to_text(parse(text)).count("+") == 19_999


@pytest.mark.parametrize("piece", ["1+", "[a].[b],", "{", "/*", "''", "[", "a.b.", "WITH MEMBER a AS '1' "])
def test_long_texts_are_refused_or_read(piece: str) -> None:
    text = "SELECT " + piece * ((MAX_LENGTH - 20) // len(piece))
    with pytest.raises(MdxSyntaxError):
        parse(text)
    with pytest.raises(MdxSyntaxError, match="characters"):
        parse(text + " " * 100 + piece * 10)


#: What a text can hold much of, by what stands before it.
MUCH = {
    "SELECT ": (
        "1+", "1.5*", "-", "(", "(1)+", "((((1))))+", "{", "f(", "{a}-", "[a].[b],", "a.b.", "[a].", "&[k]",
        "a:a,", "'x'||", "'", "[", "1", "1.", "NOT ", "a AND ", "CASE ", "IIF(a,b,c)+", "a ON 0,", "é", "x",
    ),
    "SELECT {": ("a,", "@p,", "a AS b,", "[a].&[k]&[l].", "a.Parent."),
    "SELECT a": (".Parent", "&[k]", " ON 0,", " DIMENSION PROPERTIES a,"),
    "SELECT CASE ": ("WHEN a THEN b ",),
    "SELECT [a": ("]]",),
    "SELECT 'a": ("''",),
    "": ("/**/", "/*", "--\n", "\n", " ", "(SELECT a ON 0 FROM "),
    "SELECT FROM ": ("(SELECT FROM ",),
    "WITH ": ("MEMBER a AS 1 ", "SET a AS 'b' ", "MEMBER a AS 1, P = 1 "),
    "WITH MEMBER a AS '": ("1+", "''x''+"),
}  # fmt: skip


@pytest.mark.parametrize("start", MUCH)
def test_the_longest_texts_take_a_moment(start: str) -> None:
    """With as many of a piece as there may be: letters, or words and signs."""
    for piece in MUCH[start]:
        for size in (MAX_LENGTH, MAX_TOKENS):
            text = (start + piece * (size // len(piece)))[:size]
            told, began = "", process_time()
            try:
                parse(text)
            except MdxSyntaxError as error:
                told = str(error)
            # A third of a second where nothing else runs: what grows with the square would take minutes.
            assert process_time() - began < 5, piece
            assert len(told) < 1000


def test_many_tokens_are_refused() -> None:
    with pytest.raises(MdxSyntaxError, match="words and signs"):
        parse("SELECT {" + "a," * MAX_TOKENS)


def test_substitute() -> None:
    query = parse("WITH SET s AS {@p} SELECT s ON 0, @q.Children ON 1 FROM c WHERE (@p, x)")
    done = substitute(query, {"p": "[G].[P].&[28]", "q": "[T].[All]"})
    assert to_text(done) == (
        "WITH SET [s] AS {[G].[P].&[28]} SELECT [s] ON COLUMNS, [T].[All].Children ON ROWS "
        "FROM [c] WHERE ([G].[P].&[28], [x])"
    )
    assert done.source == query.source
    with pytest.raises(UserError, match="@q has no value"):
        substitute(query, {"p": "[G].[P].&[28]"})
    with pytest.raises(UserError, match="isn't the name of a member"):
        substitute(query, {"p": "{[G].[P]}", "q": "[T].[All]"})


PIECES = r"""SELECT FROM WHERE ON WITH MEMBER SET AS NON EMPTY CASE WHEN THEN ELSE END AND OR NOT IS IN [a]
[a].[b] a.b &[k] { } ( ) , . : + - * / = <> <= @p 1 2.5 'x' "y" Children Members Filter(
COLUMNS 0 /* -- [ ' NULL"""
WORDS = st.sampled_from([*PIECES.split(), "\n"])


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=40).map(" ".join), st.text(max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse, parse_expression):
        try:
            tree = read(text)
        except MdxSyntaxError:
            continue
        assert read(to_text(tree)) == tree


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GOLDEN), st.data())
def test_damaged_queries(line: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 8)))
    text = line[:start] + data.draw(WORDS) + line[end:]
    try:
        tree = parse(text)
    except MdxSyntaxError:
        return
    assert parse(to_text(tree)) == tree
