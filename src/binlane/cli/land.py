"""`binlane land`: a log's changes in Delta tables, by Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from binlane.cli.talk import verbose_option
from binlane.errors import ConfigError

if TYPE_CHECKING:
    from binlane.spark.landing import LandingReport

_NOT_BUILT = {
    "format_": ("format", "iceberg and parquet", "delta"),
    "engine": ("engine", "spark", "embedded"),
}


@click.command("land")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--into", required=True, metavar="URI", help="Where the tables are.")
@click.option(
    "--mode",
    default="current,changes",
    show_default=True,
    metavar="MODES",
    help="current: the tables as they are; changes: every row change.",
)
@click.option(
    "--tables", default="", metavar="LISTS", help="shop.orders, crm or LOG(…), IGNORE(…)."
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option(
    "--trigger", default="1s", show_default=True, help="How often to look, with --follow."
)
@click.option("--checkpoint", metavar="URI", help="Of the query; by default in the target.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master URL.")
@click.option("--format", "format_", default="delta", show_default=True, help="Of the tables.")
@click.option("--engine", default="embedded", show_default=True, help="Who writes the tables.")
@click.option("--snapshot", metavar="SERVER", help="Not built yet.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(  # noqa: PLR0913 - one parameter an option
    *,
    sources: tuple[str, ...],
    into: str,
    mode: str,
    tables: str,
    follow: bool,
    trigger: str,
    checkpoint: str | None,
    master: str,
    quiet: bool,
    **others: Any,
) -> int:
    """Land the changes of SOURCE in Delta tables below URI.

    SOURCE is binlog files, a directory of them, or DATA#name for a binlog of `binlane serve`.
    """
    _refuse_unbuilt(**others)
    try:
        from binlane.land.progress import Mode  # noqa: PLC0415
        from binlane.spark.landing import LandingSettings, land  # noqa: PLC0415 - after --help
        from binlane.spark.session import build_session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed",
            key="land",
            hint="pip install 'binlane[spark,delta]'",
        ) from error
    known = {each.value: each for each in Mode}
    names = [name.strip() for name in mode.split(",")]
    for name in names:
        if name not in known:
            built = ", ".join(known)
            raise ConfigError(
                f"there is no mode {name} yet", key="mode", hint=f"there are: {built}"
            )
    log_file = Path(tempfile.mkstemp(prefix="binlane-spark-", suffix=".log")[1])
    spark = build_session(master, log_file=log_file)
    try:
        settings = LandingSettings(
            modes=frozenset(known[name] for name in names),
            tables=tables,
            checkpoint=checkpoint,
            trigger=_interval(trigger) if follow else None,
        )
        report = land(spark, list(sources), into, settings)
    except BaseException:
        click.echo(f"Spark's log: {log_file}", err=True)
        raise
    finally:
        spark.stop()
    log_file.unlink(missing_ok=True)
    if not quiet:
        _print(report)
    return 0


def _refuse_unbuilt(**others: Any) -> None:
    for name, (option, unbuilt, built) in _NOT_BUILT.items():
        if others[name] != built:
            raise ConfigError(
                f"{others[name]} is not built ({unbuilt} come later)",
                key=option,
                hint=f"leave --{option} out: it is {built}",
            )
    if others["snapshot"]:
        raise ConfigError(
            "a snapshot of the rows that were there before the log is not built yet",
            key="snapshot",
            hint="land a log that begins with its tables",
        )


def _interval(text: str) -> str:
    """`1s`, `500ms`, `2m` as Spark writes intervals; its own form is taken as it is."""
    units = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    return f"{number} {units[unit]}" if number.isdigit() and unit in units else text


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
