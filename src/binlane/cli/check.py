"""`binlane check`: what each statement of a script would do to each binlog."""

from __future__ import annotations

import os
import shutil
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from binlane import __version__
from binlane.cli.main import EXIT_UNUSABLE, EXIT_USAGE
from binlane.cli.main import report as report_error
from binlane.cli.talk import verbose_option
from binlane.errors import StoreError
from binlane.store.chunks import STDIN, open_chunks
from binlane.store.compression import SUFFIXES

if TYPE_CHECKING:
    from binlane.check.report import Report
    from binlane.check.script import Script

_WIDTH: Final = 80
_MAPPED_FROM_BYTES: Final = 64 << 20
_SERVERS: Final = ("mariadb", "mysql", "mariadb:10.11", "mariadb:11.8", "mysql:8.0", "mysql:9.7")


def _complete_server(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _SERVERS if name.startswith(incomplete)]


def _complete_reason(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from binlane.check.reasons import GROUPS, SHORT_NAMES  # noqa: PLC0415  # only for completion

    return [CompletionItem(n) for n in (*GROUPS, *SHORT_NAMES) if n.startswith(incomplete)]


_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("check")
@click.argument(
    "scripts",
    metavar="SCRIPT.sql...",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
)
@click.option(
    "--server",
    "server_name",
    metavar="mariadb|mysql[:VERSION]",
    required=True,
    shell_complete=_complete_server,
    help="Whose rules are followed.",
)
@click.option(
    "--schema",
    "schema_file",
    metavar="SCHEMA.sql",
    type=_FILE,
    help="Definitions of all objects, such as a dump without rows.",
)
@click.option(
    "--binlogs",
    "definitions_file",
    metavar="DEFS.sql",
    type=_FILE,
    help="CREATE BINLOG statements. Default: one binlog that logs everything.",
)
@click.option(
    "--assume-engine",
    metavar="ENGINE",
    help="Take tables that the schema does not know for tables of this engine.",
)
@click.option(
    "--deny",
    metavar="REASON",
    multiple=True,
    shell_complete=_complete_reason,
    help="Fail for this reason, also where it made the server log rows. May be repeated.",
)
@click.option(
    "--allow",
    metavar="REASON",
    multiple=True,
    shell_complete=_complete_reason,
    help="Do not fail for this reason. May be repeated.",
)
@click.option("--json", "form", flag_value="json", help="One JSON object a statement.")
@click.option("--sarif", "form", flag_value="sarif", help="SARIF 2.1.0, for code scanning.")
@click.option("--github", "form", flag_value="github", help="Annotations of GitHub Actions.")
@click.option("--explain", is_flag=True, help="Also each decision, step by step, and the events.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Print only what is wrong.")
def command(  # noqa: PLR0913  # one parameter an option
    *,
    scripts: Sequence[str],
    server_name: str,
    schema_file: Path | None,
    definitions_file: Path | None,
    assume_engine: str | None,
    deny: Sequence[str],
    allow: Sequence[str],
    form: str | None,
    explain: bool,
    quiet: bool,
) -> int:
    """Tell what each statement of a script would do to each binlog, without a server.

    SCRIPT.sql is - for standard input. Exit status: 0 all is safe; 1 something is refused or
    unsafe; 2 something could not be analysed; 3 a file could not be read.
    """
    from binlane.check.checker import Checker  # noqa: PLC0415  # after --help
    from binlane.check.reasons import Judgement  # noqa: PLC0415  # as above
    from binlane.check.report import Run  # noqa: PLC0415  # as above
    from binlane.policy.server import Server  # noqa: PLC0415  # as above

    server = Server.parse(server_name)
    judgement = Judgement.of(deny=deny, allow=allow)
    checker = Checker(
        server,
        b"" if schema_file is None else _read(str(schema_file)),
        None if definitions_file is None else _read(str(definitions_file)),
        assume_engine=assume_engine,
        definitions_name=str(definitions_file),
    )
    run = Run(checker, judgement, _report(form, explain=explain, quiet=quiet), is_quiet=quiet)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    _write(run.report.begin())
    for problem in checker.problems:
        click.echo(f"binlane: {problem.message} ({schema_file}:{problem.line})", err=True)
        run.tally.exit_code = EXIT_USAGE
    if checker.problems:
        click.echo("hint: what the schema makes there is not known to the check", err=True)
    for script in scripts:
        try:
            with _opened(script) as data:
                _write(run.check(script, data))
        except StoreError as error:
            report_error(error)
            run.tally.missed(script, error.message)
    _write(run.report.end(run.tally))
    with _stops_where_full():
        sys.stdout.flush()
    return run.tally.exit_code


def _write(lines: Iterator[str]) -> None:
    write = sys.stdout.write
    with _stops_where_full():
        for line in lines:
            write(line + "\n")


@contextmanager
def _stops_where_full() -> Iterator[None]:
    """End the process if the result cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"the result cannot be written: {error.strerror or error}"
        report_error(StoreError(message, path="standard output", hint="free space, then repeat"))
        # Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(EXIT_UNUSABLE) from error


@contextmanager
def _opened(path: str) -> Iterator[Script]:
    """A script's bytes; those of a very large file stay on disk.

    Raises:
        StoreError: If it cannot be read.
    """
    if path == STDIN or Path(path).suffix in SUFFIXES or not _is_large(path):
        yield _read(path)
        return
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        yield data


def _is_large(path: str) -> bool:
    with suppress(OSError):
        return Path(path).stat().st_size > _MAPPED_FROM_BYTES
    return False


def _read(path: str) -> bytes:
    data = b"".join(open_chunks(path))
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise StoreError(
            "cannot be read: it is in UTF-16",
            path=path,
            hint="save it in UTF-8, as clients read it",
        )
    return data


def _report(form: str | None, *, explain: bool, quiet: bool) -> Report:
    from binlane.check.github import GithubReport  # noqa: PLC0415  # after --help
    from binlane.check.json_lines import JsonReport  # noqa: PLC0415  # as above
    from binlane.check.sarif import SarifReport  # noqa: PLC0415  # as above
    from binlane.check.text import TextReport  # noqa: PLC0415  # as above

    if form == "json":
        return JsonReport(explain=explain)
    if form == "sarif":
        return SarifReport(__version__)
    if form == "github":
        return GithubReport()
    is_terminal = sys.stdout.isatty()
    return TextReport(
        width=shutil.get_terminal_size().columns if is_terminal else _WIDTH,
        color=is_terminal and "NO_COLOR" not in os.environ,
        explain=explain,
        is_quiet=quiet,
    )
