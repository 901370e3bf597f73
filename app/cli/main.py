"""The commands.

What a command works with is imported in it: the engines and the site take seconds to load, which nobody who
asks for help or mistypes a name should wait for.
"""

from __future__ import annotations

import json
import socket
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from app.cli import jobs, office, operations, protection, releases
from app.cli.failure import failures_in_words
from app.cli.options import Accept
from app.cli.who import user
from app.domain.errors import UserError

if TYPE_CHECKING:
    from app.cli.progress import ProgressDisplay
    from app.redteam import Report
    from app.redteam.attack import Promises

app = typer.Typer(
    name="celosia",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"celosia {version('celosia')}")
        raise typer.Exit


@app.callback()
def celosia(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish an OLAP cube on the web and prove that nothing it shows gives a respondent away."""


Folder = Annotated[Path, typer.Argument(metavar="D", help="Folder of the publication.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0 takes a free one.")]
Host = Annotated[str, typer.Option(help="Address to serve on.")]
Query = Annotated[str, typer.Argument(metavar="QUERY|FILE", help="MDX, or a file that holds it.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=MEMBER", help="A member for a parameter of the query; repeat it."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class AnswerFormat(StrEnum):
    """How an answer is printed."""

    table = "table"
    json = "json"


_PUBLISH = "Publish"
app.add_typer(releases.app, name="releases", rich_help_panel=_PUBLISH)
_STEPS = "The steps of run, each alone"
_CHECK = "Look and check"


@app.command(rich_help_panel=_PUBLISH)
def demo(
    directory: Annotated[Path, typer.Option("--dir", help="Where the demo lives.")] = Path("celosia-demo"),
    port: Port = 8000,
    host: Host = "127.0.0.1",
    serve_it: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Serve the site when it is ready.")
    ] = True,
) -> None:
    """Make the demo publication, run it and serve it; what is already there is not made again."""
    from app.cli import serving
    from demo import create_demo

    with failures_in_words():
        listener = serving.reserve(host, port) if serve_it else None
        create_demo(directory)
        _run(directory)
        if listener is not None:
            _serve(directory, host, listener)


@app.command(rich_help_panel=_PUBLISH)
def init(folder: Folder) -> None:
    """Begin a publication: a small commented one, ready to run."""
    from demo import create_starter

    with failures_in_words():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} isn't an empty folder. Choose a new one.")
        create_starter(folder)
        typer.echo(
            f"{folder} is a small publication. Edit it, then: celosia check {folder} && "
            f"celosia run {folder} && celosia serve {folder}"
        )


@app.command("import-schema", rich_help_panel=_PUBLISH)
def import_schema(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA.XML", help="A Mondrian 3 schema.")],
    out: Annotated[Path, typer.Option(help="Folder for the cubes' files; made if absent.")] = Path("cubes"),
    url: Annotated[str, typer.Option(help="Database of the facts, as SQLAlchemy writes it.")] = (
        "sqlite:///facts.db"
    ),
    role: Annotated[
        str | None, typer.Option(help="Take the cubes as a role of the schema sees them.")
    ] = None,
) -> None:
    """Take over the cubes of a Mondrian 3 schema, and say what was left."""
    from app import bootstrap

    with failures_in_words():
        files, left = bootstrap.import_mondrian(schema, out, url, role)
    for file in files:
        typer.echo(f"Wrote {file}")
    for line in left:
        typer.echo(line)


@app.command(rich_help_panel=_PUBLISH)
def run(folder: Folder, accept: Accept = False) -> None:
    """Compute and publish a release: crawl, assess, build, suppress, audit, release.

    Continues where an interrupted run stopped, and computes nothing twice.
    """
    _run(folder, accepted=accept)


@app.command(rich_help_panel=_PUBLISH)
def serve(
    folder: Folder,
    port: Port = 8000,
    host: Host = "127.0.0.1",
    studio: Annotated[
        bool, typer.Option("--studio", help="Serve the office's side too, below /studio.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(min=0, max=64, help="With --studio: jobs to work on at once; 0 leaves them to workers."),
    ] = 1,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Processes that answer; one for each core, up to 8, but with --studio one."
        ),
    ] = None,
) -> None:
    """Serve the live release as a public site."""
    from app.cli import serving
    from app.cli.processes import cores

    if processes is None:
        processes = 1 if studio else min(cores(), 8)
    with failures_in_words():
        listener = serving.reserve(host, port)
    _serve(folder, host, listener, studio, jobs, processes)


@app.command(rich_help_panel=_STEPS)
def crawl(folder: Folder) -> None:
    """Collect every cell that a visitor can make appear, and their equations."""
    _run(folder, "crawl")


@app.command(rich_help_panel=_STEPS)
def assess(folder: Folder) -> None:
    """Find the sensitive cells by the rules."""
    _run(folder, "assess")


@app.command(rich_help_panel=_STEPS)
def build(folder: Folder) -> None:
    """Build the suppression problems."""
    _run(folder, "build")


@app.command(rich_help_panel=_STEPS)
def suppress(folder: Folder) -> None:
    """Choose which cells to hide."""
    _run(folder, "suppress")


@app.command(rich_help_panel=_STEPS)
def audit(folder: Folder) -> None:
    """Bound every hidden cell as an attacker would; anything exposed refuses the release."""
    _run(folder, "audit")


@app.command(rich_help_panel=_STEPS)
def release(folder: Folder, accept: Accept = False) -> None:
    """Make the audited release live."""
    _run(folder, "release", accepted=accept)


@app.command(rich_help_panel=_CHECK)
def check(folder: Folder) -> None:
    """Read the publication and list every mistake in it, with file and line."""
    from app import bootstrap

    with failures_in_words():
        publication = bootstrap.check_publication(folder)
        sheets = sum(1 for _ in publication.sheets())
        cubes = _counted(len(publication.cubes), "cube")
        typer.echo(f"{folder} is in order: {cubes}, {_counted(sheets, 'sheet')}.")


@app.command(rich_help_panel=_CHECK)
def status(folder: Folder, as_json: Json = False) -> None:
    """Say which release is live and what the last run found."""
    from app import bootstrap
    from app.cli import tell

    with failures_in_words():
        figures = bootstrap.read_status(folder)
        if as_json:
            typer.echo(json.dumps(figures, indent=2, ensure_ascii=False))
        else:
            tell.status(figures)


@app.command(rich_help_panel=_CHECK)
def mdx(
    folder: Folder,
    query: Query,
    form: Annotated[
        AnswerFormat, typer.Option("--format", help="How to print the answer.")
    ] = AnswerFormat.table,
    language: Annotated[
        str | None, typer.Option(help="Language of captions and numbers; the publication's first if absent.")
    ] = None,
    parameters: Parameters = None,
) -> None:
    """Answer an MDX query from the raw cube, for the analyst: nothing is hidden."""
    from app import bootstrap
    from app.cli import answers

    with failures_in_words():
        text, file = answers.read_query(query)
        answer = bootstrap.explore_cube(folder, text, file, language, answers.read_parameters(parameters))
    if form is AnswerFormat.json:
        typer.echo(json.dumps(answers.as_dict(answer), indent=2, ensure_ascii=False))
    else:
        answers.show(answer)


@app.command("explain-formula", rich_help_panel=_CHECK)
def explain_formula(folder: Folder, query: Query, parameters: Parameters = None) -> None:
    """Say what each calculated member of an MDX query becomes: an equation, an inequality, or refused."""
    from app import bootstrap
    from app.cli import answers

    with failures_in_words():
        text, file = answers.read_query(query)
        found = bootstrap.explain_formulas(folder, text, file, answers.read_parameters(parameters))
        answers.explain(found)


@app.command("export-problems", rich_help_panel=_CHECK)
def export_problems(
    folder: Folder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the files; made if absent.")],
) -> None:
    """Write each suppression problem of the last run, as it was solved, as a .jj file for other solvers.

    The files hold true values of cells: they are as confidential as the data, and their owner's alone.
    """
    from app import bootstrap
    from app.cli import answers

    with failures_in_words():
        answers.exported(bootstrap.export_problems(folder, out), out)


@app.command(rich_help_panel=_CHECK)
def attack(
    target: Annotated[str, typer.Argument(metavar="URL|D", help="Address of a site, or a folder to serve.")],
    truth: Annotated[
        Path | None,
        typer.Option(help="Publication folder whose protection intervals the findings are held against."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try to work out hidden cells from what the site shows; exit 1 when one gives way.

    Of a folder, or with --truth, the attack also knows which cells are sensitive and what they are promised.
    Without, it lists what only the office can judge; that alone is exit 0.
    """
    from app import bootstrap
    from app.cli import serving, tell
    from app.cli.progress import ProgressDisplay

    with failures_in_words(), ProgressDisplay() as progress:
        if "://" in target:
            promises = bootstrap.promises(truth) if truth is not None else None
            report = _attack(target, promises, progress)
        else:
            promises = bootstrap.promises(truth or Path(target))
            with serving.served(Path(target)) as address:
                report = _attack(address, promises, progress)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    else:
        tell.attack(report)
    if not report.ok:
        raise typer.Exit(1)


# Panels of the help stand in the order in which their first commands were added.
protection.register(app)
office.register(app)
jobs.register(app)
operations.register(app)


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _run(folder: Path, step: str | None = None, accepted: bool = False) -> None:
    from app import bootstrap
    from app.cli import tell
    from app.cli.progress import ProgressDisplay

    with failures_in_words():
        with ProgressDisplay() as progress:
            outcome = bootstrap.run_publication(folder, step, progress, user(), accepted)
        figures = bootstrap.read_status(folder)
        tell.status(figures)
        live = (figures.get("release") or {}).get("id")
        if figures.get("telltale") and outcome.release_id != live:
            tell.telltale(figures["telltale"], folder, outcome.release_id or "")


def _attack(address: str, promises: Promises | None, progress: ProgressDisplay) -> Report:
    import httpx

    from app.redteam import attack as red_team

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{address} is no address of a site. Write it as http://host:port or https://host.")
    with httpx.Client(base_url=f"{parts.scheme}://{parts.netloc}", timeout=60.0) as client:
        return red_team(client, promises, progress)


def _serve(
    folder: Path,
    host: str,
    listener: socket.socket,
    studio: bool = False,
    jobs: int = 0,
    processes: int = 1,
) -> None:
    from app import bootstrap
    from app.cli import serving, tell
    from app.cli.processes import together

    if processes > 1:
        # What is wrong with it is told once, and one process alone brings its database up to date.
        with failures_in_words(), bootstrap.publication_store(folder):
            pass
    listeners = serving.shared(listener, processes)

    def work(number: int) -> None:
        own = listeners[number]

        def ready() -> None:
            if number == 0:
                tell.address(host, own.getsockname()[1])

        with failures_in_words():
            serving.serve(folder, own, ready, studio, host, jobs if number == 0 else 0, number)

    together(processes, work, serving.PATIENCE)


def run_command() -> None:
    """Run the command that the arguments of the process name."""
    # Called as the plain command: Typer's own call would put its traceback in place of our last word.
    typer.main.get_command(app)(prog_name="celosia")
