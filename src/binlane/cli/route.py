"""`binlane route`: scoped binlogs from any binlog files, without a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.cat_values import POSITION_MAX
from binlane.cli.engine_options import spark_engine_of, takes_engine
from binlane.cli.filter_options import filter_terms, load_schema, takes_filter
from binlane.cli.main import EXIT_WRONG
from binlane.cli.main import report as report_error
from binlane.cli.schedules import read_schedule
from binlane.cli.talk import say, verbose_option

if TYPE_CHECKING:
    from binlane.binlogs.route.route_request import RouteReport
    from binlane.binlogs.routing.table_links import TableLinks
    from binlane.tables.landing.engine import EmbeddedEngine

_INCIDENTS_SHOWN: Final = 10
_CORES_AUTO: Final = 4
_BYTES_AUTO: Final = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions:
    """Options of `binlane route` but its filter, by the names of its parameters."""

    paths: tuple[str, ...]
    definitions_file: Path | None
    out: Path
    changes: Sequence[tuple[str, str]]
    key_file: str | None
    start_position: int | None
    max_binlog_size: str
    with_tables_info: bool
    schema_file: Path | None
    processes: int | None
    quiet: bool


def _processes(context: click.Context, parameter: click.Parameter, text: str) -> int | None:
    """A number of processes; None for `auto`."""
    if text == "auto":
        return None
    if text.isdecimal() and int(text):
        return int(text)
    raise click.BadParameter(f"{text!r} is neither auto nor a number from 1", context, parameter)


@click.command("route")
@click.argument(
    "paths",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(allow_dash=True),
)
@click.option(
    "--binlogs",
    "definitions_file",
    metavar="DEFS.sql",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CREATE BINLOG statements of the binlogs to make. With a filter the option may be "
    "missing: one binlog, named binlog, then has everything that passes.",
)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for NAME/NAME.000001 … and NAME/NAME.index of each binlog; it is made if it is "
    "missing.",
)
@click.option(
    "--at-gtid",
    "changes",
    metavar="GTID FILE.sql",
    nargs=2,
    multiple=True,
    help="From behind this event group on, change the definitions by CREATE, ALTER and DROP "
    "BINLOG in this file. May be repeated.",
)
@click.option(
    "--encryption-keys",
    "key_file",
    metavar="FILE",
    help="Keys of encrypted files: MariaDB's file_key_management or MySQL's keyring file.",
)
@click.option(
    "-j",
    "--start-position",
    metavar="N",
    type=click.IntRange(4, POSITION_MAX),
    help="Begin at this position of the first file; an event group must begin there.",
)
@click.option(
    "--max-binlog-size",
    metavar="SIZE",
    default="1G",
    show_default=True,
    help="Begin a new file at this size.",
)
@click.option(
    "--with-tables-info",
    is_flag=True,
    help="List the tables of each statement, in files that only binlane's programs read. "
    "Without it, such files become ordinary ones.",
)
@click.option(
    "--schema",
    "schema_file",
    metavar="SCHEMA.sql",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The tables before the first file, such as a dump without rows: names foreign keys, "
    "and the tables of views and stored code.",
)
@takes_filter
@click.option(
    "--processes",
    metavar="N",
    default="auto",
    show_default=True,
    callback=_processes,
    help="Route N files at the same time. auto: one a core for several files of together 4 GB "
    "or more, on four cores or more; else one process.",
)
@takes_engine("Where files are routed at the same time: in processes of this machine, or on Spark.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(**given: Any) -> int:
    """Make scoped binlogs from binlog files of MariaDB or MySQL, oldest first.

    Each binlog of DEFS.sql gets the changes in its scope, as real binlog files. Run again with
    the same DIR, the command goes on where it ended: after mended damage, after an interrupted
    run, or with new files.
    """
    options = RouteOptions(**{name: given.pop(name) for name in RouteOptions.__slots__})
    is_on_spark = given["engine"] == "spark"
    from binlane.binlogs.route.job import route_files  # noqa: PLC0415  # as above
    from binlane.binlogs.route.route_request import RouteRequest  # noqa: PLC0415  # as above
    from binlane.binlogs.store.chunks import read_keys  # noqa: PLC0415
    from binlane.binlogs.store.settings import StoreSettings  # noqa: PLC0415
    from binlane.cli.progress_meter import meter_for  # noqa: PLC0415  # after --help
    from binlane.live.service.config import size_bytes  # noqa: PLC0415

    size = size_bytes(options.max_binlog_size, "--max-binlog-size")
    terms = filter_terms(given, kinds=given["do_event"])
    if options.definitions_file is None and terms.is_everything:
        raise click.UsageError("Missing option '--binlogs', or --do-table and its like")
    request = RouteRequest(
        paths=tuple(map(os.path.abspath, options.paths)) if is_on_spark else options.paths,
        schedule=read_schedule(options.definitions_file, options.changes),
        out=options.out.absolute() if is_on_spark else options.out,
        keys=None if options.key_file is None else read_keys(options.key_file),
        settings=StoreSettings(
            max_binlog_size_bytes=size, has_tables_info=options.with_tables_info
        ),
        start_position=options.start_position or 0,
        links=_links(options.schema_file),
        filter_terms=terms,
        load_schema=None
        if options.schema_file is None
        else partial(load_schema, options.schema_file),
    )
    meter = meter_for(options.paths, writes_to_terminal=False, is_quiet=options.quiet)
    try:
        with (
            spark_engine_of(given) as spark,
            _processes_for(options, has_filter=not terms.is_everything) as processes,
        ):
            report = route_files(request, meter=meter, engine=spark or processes)
            for note in () if processes is None else processes.notes:
                report.notes.append(note)
    finally:
        if meter is not None:
            meter.close()
    if not options.quiet:
        _tell(report)
    if report.fault is None:
        return EXIT_WRONG if report.is_unmatched else 0
    report_error(report.fault)
    click.echo(
        "hint: what stands before is in the binlogs; run this again with the mended file, or with "
        "--start-position behind the damage",
        err=True,
    )
    return EXIT_WRONG


def _processes_for(
    options: RouteOptions, *, has_filter: bool
) -> AbstractContextManager[EmbeddedEngine | None, bool | None]:
    """Processes of this machine, where more than one are wanted, or are worth their start."""
    count = options.processes
    if count is None:
        cores = len(os.sched_getaffinity(0))
        sizes = [os.path.getsize(path) for path in options.paths if os.path.isfile(path)]  # noqa: PTH113, PTH202
        is_worth = (
            not has_filter and len(sizes) > 1 and cores >= _CORES_AUTO and sum(sizes) >= _BYTES_AUTO
        )
        count = cores if is_worth else 1
    if count == 1:
        return nullcontext()
    from binlane.tables.landing.engine import EmbeddedEngine  # noqa: PLC0415  # for this option only

    return EmbeddedEngine(count)


def _links(path: Path | None) -> TableLinks:
    """Return the links between the tables of SCHEMA.sql; without it other links are unknown."""
    from binlane.binlogs.routing.table_links import NO_LINKS, links_of  # noqa: PLC0415
    from binlane.binlogs.store.chunks import open_chunks  # noqa: PLC0415
    from binlane.statements.sql.catalog import SchemaCatalog  # noqa: PLC0415  # after --help

    if path is None:
        return NO_LINKS
    catalog = SchemaCatalog()
    catalog.load(b"".join(open_chunks(str(path))).decode("utf-8", "surrogateescape"))
    for problem in catalog.problems:
        say(f"binlane: {problem.message} ({path}:{problem.line})", err=True)
        click.echo("hint: foreign keys that stand there are not known", err=True)
    tables = map(catalog.base_table, catalog.tables)
    return links_of((table for table in tables if table), is_complete=not catalog.problems)


def _tell(report: RouteReport) -> None:
    """Print the result, and notes for the user."""
    for note in report.notes:
        say(f"note: {note}", err=True)
    for name, counts in report.counts.items():
        say(f"{name}: {counts.event_groups} event groups, {counts.events} events", err=True)
        for kind, number in sorted(counts.omissions.items()):
            what = f"{kind} left out {number} times" if number > 1 else f"{kind} left out once"
            say(f"note: {name}: {what}: may name something outside of the scope", err=True)
        for incident in counts.incidents[:_INCIDENTS_SHOWN]:
            say(f"note: {name}: INCIDENT: {incident}", err=True)
        if len(counts.incidents) > _INCIDENTS_SHOWN:
            more = len(counts.incidents) - _INCIDENTS_SHOWN
            say(f"note: {name}: {more} more INCIDENTs", err=True)
