"""`binlane check`: the effect of each statement of a script on each binlog."""

from __future__ import annotations

import os
import shutil
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from binlane import __version__
from binlane.binlogs.store.chunks import STDIN, open_chunks
from binlane.binlogs.store.decompression import SUFFIXES
from binlane.cli.main import EXIT_UNUSABLE, EXIT_USAGE
from binlane.cli.main import report as report_error
from binlane.cli.talk import say, verbose_option
from binlane.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from binlane.client.schema import ServerObjects
    from binlane.statements.check.report import Report
    from binlane.statements.check.schema import Schema
    from binlane.statements.policy.server import Server
    from binlane.statements.sql.script import Script

_WIDTH: Final = 80
_MAPPED_FROM_BYTES: Final = 64 << 20
_SERVERS: Final = (
    *("mariadb", "mariadb:10.6", "mariadb:10.11", "mariadb:11.4", "mariadb:11.8", "mariadb:12"),
    *("mysql", "mysql:5.7", "mysql:8.0", "mysql:8.4", "mysql:9.7"),
)


def _complete_server(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _SERVERS if name.startswith(incomplete)]


def _complete_reason(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from binlane.statements.check.reasons import GROUPS, SHORT_NAMES  # noqa: PLC0415  # only for completion

    return [CompletionItem(n) for n in (*GROUPS, *SHORT_NAMES) if n.startswith(incomplete)]


_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of `binlane check`, by the names of its parameters."""

    scripts: Sequence[str]
    server_name: str | None
    schemas: Sequence[str]
    password_file: Path | None
    lower_case_table_names: int | None
    user: str | None
    definitions_file: Path | None
    assume_engine: str | None
    deny: Sequence[str]
    allow: Sequence[str]
    form: str | None
    explain: bool
    quiet: bool


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
    shell_complete=_complete_server,
    help="Server whose rules hold. Default: the server of --schema, if it names one.",
)
@click.option(
    "--schema",
    "schemas",
    metavar="SCHEMA.sql|SERVER",
    multiple=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Definitions of all objects: a dump without rows, or a server that has them, such as "
    "mariadb://user@host. May be repeated.",
)
@click.option(
    "--password-file",
    type=_FILE,
    help="File with the password of SERVER's account; else MYSQL_PWD, else the command asks for it.",
)
@click.option(
    "--lower-case-table-names",
    metavar="0|1|2",
    type=click.IntRange(0, 2),
    help="The server's variable: with 1 and 2 names compare without case. Default: as --schema "
    "says, else 0.",
)
@click.option(
    "--user",
    metavar="NAME[@HOST]",
    help="The account that runs the scripts, one of the schema: statements that it may not run are "
    "refused. Default: an account with all privileges.",
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
    help="Engine of tables that the schema does not know.",
)
@click.option(
    "--deny",
    metavar="REASON",
    multiple=True,
    shell_complete=_complete_reason,
    help="Fail for this reason, even if the server avoids it by logging rows. May be repeated.",
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
@click.option(
    "--explain", is_flag=True, help="Also show each decision, step by step, and the events."
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print only faults.")
def command(**given: Any) -> int:
    """Show what each statement of a script would do to each binlog, without running it.

    SCRIPT.sql is - for standard input; scripts that it reads with SOURCE are read too. Exit status: 0 all is safe; 1 something is refused or
    unsafe; 2 something could not be analysed; 3 a file could not be read.
    """
    options = CheckOptions(**given)
    from binlane.statements.check.checker import Checker  # noqa: PLC0415  # after --help
    from binlane.statements.check.reasons import Judgement  # noqa: PLC0415  # as above
    from binlane.statements.check.report import Run  # noqa: PLC0415  # as above
    from binlane.statements.check.schema import Schema  # noqa: PLC0415  # as above

    judgement = Judgement.of(deny=options.deny, allow=options.allow)
    sources, told = _schemas(options.schemas, options.password_file)
    server = _server(options.server_name, told)
    if options.lower_case_table_names is not None:
        variables = (("lower_case_table_names", str(options.lower_case_table_names)),)
        sources.insert(0, Schema(name="--lower-case-table-names", variables=variables))
    checker = Checker(
        server,
        sources,
        None if options.definitions_file is None else _read(str(options.definitions_file)),
        assume_engine=options.assume_engine,
        definitions_name=str(options.definitions_file),
        user=options.user,
    )
    run = Run(
        checker,
        judgement,
        _report(options.form, explain=options.explain, quiet=options.quiet),
        is_quiet=options.quiet,
    )
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    _write(run.report.begin())
    for name, problem in checker.problems:
        say(f"binlane: {problem.message} ({name}:{problem.line})", err=True)
        run.tally.exit_code = EXIT_USAGE
    if checker.problems:
        click.echo("hint: what the schema makes there is not known to the check", err=True)
    for script in options.scripts:
        try:
            with _opened(script) as data:
                _write(run.check(script, data, _read))
        except StoreError as error:
            report_error(error)
            run.tally.missed(script, error.message)
    _write(run.report.end(run.tally))
    with _stops_where_full():
        sys.stdout.flush()
    return run.tally.exit_code


def _schemas(
    names: Sequence[str], password_file: Path | None
) -> tuple[list[Schema], dict[str, Server]]:
    """Return the sources of definitions by name, each with the server that it names.

    Raises:
        StoreError: If a file cannot be read.
        PeerError: If a server cannot be asked.
        ConfigError: If a server's address is none, or binlane knows no such server.
    """
    from binlane.statements.check.schema import (  # noqa: PLC0415  # after --help
        Schema,
        server_of_dump,
        server_of_version,
    )

    sources: list[Schema] = []
    told: dict[str, Server] = {}
    for name in names:
        if "://" not in name:
            data = _read(name)
            sources.append(Schema(name=name, script=data))
            found = server_of_dump(data)
        else:
            objects = _objects_of(name, password_file)
            variables = tuple(objects.variables.items())
            sources.append(Schema(name=name, definitions=objects.definitions, variables=variables))
            found = server_of_version(objects.version)
        if found is not None:
            told[name] = found
    return sources, told


def _objects_of(address: str, password_file: Path | None) -> ServerObjects:
    from binlane.cli.password_input import password_of  # noqa: PLC0415  # for servers only
    from binlane.client.schema import read_objects  # noqa: PLC0415  # as above
    from binlane.client.settings import ServerUrl  # noqa: PLC0415  # as above

    url = ServerUrl.parse(address, key="--schema")
    return read_objects(url, password_of(password_file, url.user))


def _server(name: str | None, told: dict[str, Server]) -> Server:
    """Return the server whose rules hold: the option's, else the only one that the schemas name.

    Raises:
        ConfigError: If nothing tells, or it contradicts itself.
    """
    from binlane.statements.policy.server import Server  # noqa: PLC0415  # after --help

    if name is not None:
        return Server.parse(name)
    servers = dict.fromkeys(told.values())
    if not servers:
        raise ConfigError(
            "it is not known which server runs the script",
            key="--server",
            hint="name it: --server mysql:8.0",
        )
    if len(servers) > 1:
        listed = ", ".join(
            f"{source} of {one.flavor} {'.'.join(map(str, one.version))}"
            for source, one in told.items()
        )
        raise ConfigError(
            f"the schemas are of several servers: {listed}", key="--server", hint="say which one"
        )
    return next(iter(servers))


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
    """Open a script; the bytes of a very large one stay on disk.

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
    from binlane.statements.check.github import GithubReport  # noqa: PLC0415  # after --help
    from binlane.statements.check.json_lines import JsonReport  # noqa: PLC0415  # as above
    from binlane.statements.check.sarif import SarifReport  # noqa: PLC0415  # as above
    from binlane.statements.check.text import TextReport  # noqa: PLC0415  # as above

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
