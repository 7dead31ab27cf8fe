"""`binlane land`: a log's changes in tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.talk import verbose_option
from binlane.errors import ConfigError

if TYPE_CHECKING:
    from binlane.land.landing import LandingReport
    from binlane.land.settings import LandingSettings

_INTERVAL: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE: Final = re.compile(r"(\d+)\s*([KMG]?)", re.IGNORECASE)
_SHIFTS: Final = {"": 0, "K": 10, "M": 20, "G": 30}


@click.command("land")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--into", required=True, metavar="URI", help="Where the tables are.")
@click.option(
    "--mode",
    default="current,changes",
    show_default=True,
    metavar="MODES",
    help="current: the tables as they are; changes: every row change; history: every version.",
)
@click.option(
    "--tables", default="", metavar="LISTS", help="shop.orders, crm or LOG(…), IGNORE(…)."
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option(
    "--trigger",
    default="1s",
    show_default=True,
    metavar="TIME",
    help="How often to look, with --follow.",
)
@click.option("--checkpoint", metavar="URI", help="Of the journal; by default in the target.")
@click.option("--format", "format_", default="delta", show_default=True, help="Of the tables.")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="Who runs the tasks.",
)
@click.option("--batch-bytes", metavar="SIZE", help="Bytes of log of a batch, such as 64M.")
@click.option("--snapshot", metavar="SERVER", help="Take the rows of this server first.")
@click.option("--skip", default="", metavar="GTID", help="Pass over this event group.")
@click.option("--take-over", is_flag=True, help="Go on in place of a driver that holds the target.")
@click.option("--master", metavar="URL", help="Of Spark, with --engine spark.")
@click.option("--conf", multiple=True, metavar="K=V", help="A setting of Spark, likewise.")
@click.option("--driver-memory", metavar="SIZE", help="Of Spark's driver, likewise.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(sources: tuple[str, ...], into: str, *, quiet: bool, **options: Any) -> int:
    """Land the changes of SOURCE in tables below URI.

    SOURCE is binlog files, a directory of them, or DATA#name for a binlog of `binlane serve`.
    """
    settings = _settings(options)
    _refuse_engine(options)
    try:
        from binlane.land.landing import land  # noqa: PLC0415 - after --help
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed", key="land", hint="pip install 'binlane[delta]'"
        ) from error
    report = land(list(sources), into, settings)
    if not quiet:
        _print(report)
    return 0


def _settings(options: dict[str, Any]) -> LandingSettings:
    from binlane.land.settings import (  # noqa: PLC0415 - after --help
        BATCH_BYTES_DEFAULT,
        LandingSettings,
    )
    from binlane.land.work import Format, Mode  # noqa: PLC0415 - after --help

    size = options["batch_bytes"]
    return LandingSettings(
        modes=frozenset(_choice(Mode, name.strip(), "mode") for name in options["mode"].split(",")),
        tables=options["tables"],
        format=_choice(Format, options["format_"], "format"),
        checkpoint=options["checkpoint"],
        follow_s=_seconds(options["trigger"]) if options["follow"] else None,
        snapshot=options["snapshot"] or "",
        skip=options["skip"],
        is_taking_over=options["take_over"],
        batch_bytes=BATCH_BYTES_DEFAULT if size is None else _size(size, "batch-bytes"),
    )


def _refuse_engine(options: dict[str, Any]) -> None:
    if options["engine"] == "spark":
        raise ConfigError(
            "landing as Spark jobs is not built yet", key="engine", hint="leave --engine out"
        )
    for name in ("master", "conf", "driver_memory"):
        if options[name]:
            raise ConfigError(
                "this is a setting of Spark, which does not run here",
                key=name.replace("_", "-"),
                hint="add --engine spark",
            )


def _choice(kind: Any, name: str, key: str) -> Any:
    known = {each.value: each for each in kind}
    if name not in known:
        raise ConfigError(
            f"there is no {key} {name}", key=key, hint=f"there are: {', '.join(known)}"
        )
    return known[name]


def _seconds(text: str) -> float:
    """`1s`, `500ms`, `2m`, `1 second`."""
    match = _INTERVAL.fullmatch(re.sub(r"(?<=[smh])(ec|in|our)\w*$", "", text.strip()))
    if match is None:
        raise ConfigError(f"{text!r} is no time", key="trigger", hint="write 1s, 500ms or 2m")
    return float(match[1]) * _UNITS[match[2]]


def _size(text: str, key: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is no size", key=key, hint="write 64M or a number of bytes")
    return int(match[1]) << _SHIFTS[match[2].upper()]


def _print(report: LandingReport) -> None:
    click.echo(
        f"{report.rows} row images, {report.batches} batches, {report.seconds:.1f} s, "
        f"up to GTID {report.last_gtid or '(nothing new)'}"
    )
    for name, table in report.tables.items():
        gone = table.why_not or "not current: dropped, renamed or not landed so"
        state = "current" if table.is_current else gone
        dates = f", {table.invalid_dates} zero dates became NULL" if table.invalid_dates else ""
        click.echo(f"  {name}: {table.rows} row images; {state}{dates}")
    for note in report.notes:
        click.echo(f"  note: {note}")
