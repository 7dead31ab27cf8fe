"""`binlane verify`: every checksum, position, GTID order, index and watermark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.main import EXIT_WRONG
from binlane.cli.schedules import read_schedule
from binlane.cli.talk import say, verbose_option

if TYPE_CHECKING:
    from binlane.binlogs.route.schedule import Schedule
    from binlane.binlogs.store.verify import CheckCounts, Fault

_AGAINST: Final = "--against"
STDIN: Final = "-"
_OF_SERVERS: Final = {
    "source": "--source",
    "replicas": "--replica",
    "rows_per_second": "--rows-per-second",
    "anew": "--anew",
    "as_json": "--json",
    "has_steps": "--steps",
}


class _Command(click.Command):
    """Takes all arguments behind `--against`, up to the next option, as files of the full log."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_spread(args)))


def _spread(arguments: list[str]) -> Iterator[str]:
    """The same arguments with `--against` before each of its files."""
    is_against = False
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue=_AGAINST):
        if _is_option(argument):
            is_against = argument == _AGAINST
            if is_against and not _is_option(following):
                continue
        elif is_against:
            yield _AGAINST
        yield argument


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != STDIN


@click.command("verify", cls=_Command)
@click.argument("paths", metavar="DIR|FILE...", nargs=-1, required=True)
@click.option(
    _AGAINST,
    metavar="FILE...",
    multiple=True,
    help="All files of the full log, oldest first: the binlogs together are this log, event for "
    "event. Write it behind the binlogs.",
)
@click.option(
    "--binlogs",
    "definitions_file",
    metavar="DEFS.sql",
    type=click.Path(path_type=Path),
    help="With --against: the binlogs' definitions, as route takes them; each must have exactly the "
    "changes in its scope.",
)
@click.option(
    "--at-gtid",
    "changes",
    metavar="GTID FILE.sql",
    nargs=2,
    multiple=True,
    help="With --binlogs: definitions that change behind this event group, as route takes them.",
)
@click.option(
    "--values", is_flag=True, help="For a target of `land`, --against its log: compare values, too."
)
@click.option(
    "--checkpoint", metavar="URI", help="For a target of `land`: its checkpoint, if it had one."
)
@click.option(
    "--catalog",
    multiple=True,
    metavar="K=V",
    help="For a target of `land`: a property of its Iceberg catalog, such as name=…",
)
@click.option(
    "--encryption-keys",
    "key_file",
    metavar="FILE",
    help="Keys of encrypted files: MariaDB's file_key_management or MySQL's keyring file.",
)
@click.option(
    "--source",
    metavar="URL",
    help="Compare the tables that the binlogs of a store describe with the source's rows: "
    "mariadb://USER@HOST:PORT?password-file=PATH. Nothing is written there, and nothing locked.",
)
@click.option(
    "--replica",
    "replicas",
    metavar="URL",
    multiple=True,
    help="With --source: compare with a replica, too; #NAME behind the URL is its binlog.",
)
@click.option(
    "--rows-per-second",
    type=click.IntRange(min=0),
    help="With --source: rows to read of a server a second at most; 0, the default, for any number.",
)
@click.option(
    "--anew",
    is_flag=True,
    help="With --source: forget what was found before, and begin with the binlogs' first files.",
)
@click.option("--json", "as_json", is_flag=True, help="With --source: print an object a table.")
@click.option(
    "--steps",
    "has_steps",
    is_flag=True,
    help='With --json: print {"step": {…}} too, as soon as a step begins that may take long.',
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print faults only.")
def command(
    *,
    paths: tuple[str, ...],
    against: tuple[str, ...],
    definitions_file: Path | None,
    changes: tuple[tuple[str, str], ...],
    key_file: str | None,
    quiet: bool,
    **others: Any,
) -> int:
    """Check binlog files or a whole data directory; print each fault as file:position: fault.

    A target of `land` is compared with its log, table by table; with --source, the tables that a
    store's binlogs describe are compared with those of servers.
    """
    of_servers = {name: others.pop(name) for name in _OF_SERVERS}
    of_lake = others
    if of_servers["source"] is not None:
        from binlane.cli.verify_servers import compare  # noqa: PLC0415  # after --help

        if against or definitions_file is not None or any(of_lake.values()):
            raise click.UsageError("--source compares tables, and takes none of the other options")
        as_json, has_steps = of_servers.pop("as_json"), of_servers.pop("has_steps")
        if has_steps and not as_json:
            raise click.UsageError("--steps goes with --json")
        return compare(paths, of_servers, as_json=as_json, has_steps=has_steps, quiet=quiet)
    _refuse(of_servers, lambda name: f"{_OF_SERVERS[name]} goes with --source")
    from binlane.binlogs.store.verify import CheckCounts  # noqa: PLC0415  # after --help

    if any(map(_is_lake, paths)):
        if len(paths) > 1 or not against or definitions_file is not None:
            raise click.UsageError(f"one target of land is verified, {_AGAINST} its log")
        faults = _lake_faults(paths[0], against, key_file, **of_lake)
        return _told(faults, quiet=quiet, figures=lambda: "")
    _refuse(of_lake, lambda name: f"--{name} is for a target of land; {paths[0]} is none")
    if against and STDIN in {*paths, *against}:
        raise click.UsageError(f"{_AGAINST} reads files twice, which standard input cannot be")
    if definitions_file is not None and not against:
        raise click.UsageError(f"--binlogs says what is looked for {_AGAINST} a full log")
    if changes and definitions_file is None:
        raise click.UsageError("--at-gtid changes the definitions of --binlogs")
    schedule = None if definitions_file is None else read_schedule(definitions_file, changes)
    start, tally = time.monotonic(), CheckCounts()
    return _told(
        map(str, _faults(paths, against, schedule, key_file, tally)),
        quiet=quiet,
        figures=lambda: _figures(tally, time.monotonic() - start),
        notes=tally.notes,
    )


def _refuse(options: Mapping[str, Any], reason: Callable[[str], str]) -> None:
    """Refuse options that were given where they mean nothing."""
    for name, value in options.items():
        if value:
            raise click.UsageError(reason(name))


def _told(
    faults: Iterable[str], *, quiet: bool, figures: Callable[[], str], notes: Sequence[str] = ()
) -> int:
    """Print faults as they are found, then notes and the number of faults; return the exit status."""
    count = 0
    for fault in faults:
        say(fault)
        count += 1
    for note in () if quiet else notes:
        click.echo(note, err=True)
    said = f"{count} fault{'s' if count > 1 else ''} found" if count else "no faults"
    if sys.stderr.isatty() and not quiet:
        said += figures()
    if count or not quiet:
        click.echo(said, err=True)
    return EXIT_WRONG if count else 0


def _is_lake(path: str) -> bool:
    """True if tables were landed at a path."""
    return "://" in path or Path(path, "_binlane").is_dir()


def _lake_faults(
    into: str,
    against: tuple[str, ...],
    key_file: str | None,
    *,
    values: bool,
    checkpoint: str | None,
    catalog: tuple[str, ...],
) -> Iterator[str]:
    from binlane.cli.land import properties  # noqa: PLC0415  # after --help
    from binlane.tables.landing.verification import Lake, verify_lake  # noqa: PLC0415  # as above

    place = into.rstrip("/") if "://" in into else str(Path(into).absolute())
    lake = Lake(
        into=place,
        sources=against,
        checkpoint=checkpoint,
        keys=key_file,
        catalog=properties(catalog),
    )
    return verify_lake(lake, has_values=values)


def _faults(
    paths: tuple[str, ...],
    against: tuple[str, ...],
    schedule: Schedule | None,
    key_file: str | None,
    tally: CheckCounts,
) -> Iterator[Fault]:
    from binlane.binlogs.store.chunks import read_keys  # noqa: PLC0415  # after --help
    from binlane.binlogs.store.verify import verify, verify_against  # noqa: PLC0415  # as above

    keys = None if key_file is None else read_keys(key_file)
    if against:
        full = list(map(Path, against))
        yield from verify_against(
            list(map(Path, paths)),
            full,
            definitions=None if schedule is None else schedule.definitions,
            changes=[(each.after, each.definitions) for each in schedule.changes]
            if schedule
            else (),
            keys=keys,
            tally=tally,
        )
    else:
        yield from verify(list(map(Path, paths)), keys=keys, tally=tally)


def _figures(tally: CheckCounts, seconds: float) -> str:
    """Return the figures of the checked logs, for people."""
    return (
        f" in {tally.files:,} files with {tally.groups:,} event groups of {tally.events:,} events, "
        f"{tally.size_bytes / 1e6:,.1f} MB, {seconds:,.1f} s"
    )
