"""`binlane land`: a log's changes in tables."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from binlane.cli.engine_options import spark_engine_of, takes_engine
from binlane.cli.filter_options import filter_terms, has_filter, takes_tables
from binlane.cli.password_input import server_with_password
from binlane.cli.progress_meter import LandingMeter
from binlane.cli.talk import say, verbose_option
from binlane.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from types import FrameType

    from binlane.tables.landing.landing import Landing
    from binlane.tables.landing.landing_settings import LandingSettings

_INTERVAL: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE: Final = re.compile(r"(\d+)\s*([KMG]?)", re.IGNORECASE)
_SHIFTS: Final = {"": 0, "K": 10, "M": 20, "G": 30}


@click.command("land")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "--into",
    required=True,
    metavar="URI",
    help="Place of the tables: a directory, or a URI such as s3://bucket/lake.",
)
@click.option(
    "--mode",
    default="current,changes",
    show_default=True,
    metavar="MODES",
    help="One or several of current (the tables as they are), changes (every row change) and"
    " history (every version), with commas between.",
)
@click.option(
    "--tables",
    default="",
    metavar="LISTS",
    help="Tables and databases, as shop.orders,crm, or LOG(…), IGNORE(…); else all.",
)
@takes_tables
@click.option("--follow", is_flag=True, help="Go on with new changes, until interrupted.")
@click.option(
    "--trigger",
    default="1s",
    show_default=True,
    metavar="TIME",
    help="With --follow: time between two looks: 500ms, 1s, 5m or 12h.",
)
@click.option(
    "--checkpoint",
    metavar="URI",
    help="Place where the position in the log is kept; by default the target.",
)
@click.option(
    "--format",
    "format_",
    default="delta",
    show_default=True,
    metavar="[delta|iceberg|parquet]",
    help="Format of the tables.",
)
@takes_engine("Engine of the tasks: processes of this machine, or Spark.")
@click.option(
    "--encryption-keys",
    metavar="FILE",
    help="Keys of encrypted files: MariaDB's file_key_management or MySQL's keyring file.",
)
@click.option(
    "--soft-deletes", is_flag=True, help="Keep deleted rows in current tables, with _deleted_at."
)
@click.option(
    "--cdf/--no-cdf",
    default=None,
    help="Give current tables Delta's change data feed: the rows that each commit changes.",
)
@click.option(
    "--keep",
    default="168h",
    show_default=True,
    metavar="TIME",
    help="Time for which files of earlier versions stay for readers, such as 12h.",
)
@click.option(
    "--catalog",
    multiple=True,
    metavar="K=V",
    help="A property of an Iceberg catalog, such as name=…; the default catalog is in the target.",
)
@click.option(
    "--batch-bytes",
    metavar="SIZE",
    help="Bytes of log in a batch, such as 64M or 1G; by default 256M.",
)
@click.option(
    "--snapshot",
    metavar="SERVER",
    help="A URL, mariadb://USER@HOST:PORT or mysql://…. Read missing rows of tables from this "
    "server; with --tables only of those.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the password for servers; else MYSQL_PWD, or a prompt.",
)
@click.option("--skip", multiple=True, metavar="GTID", help="Skip this event group; repeatable.")
@click.option("--take-over", is_flag=True, help="Replace a driver that holds the target.")
@click.option(
    "--no-audit", is_flag=True, help="Do not count the log's rows or compare the tables with them."
)
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    help="Report to write at the end: .html, .json or text.",
)
@click.option(
    "--metrics",
    metavar="ADDRESS:PORT",
    help="Serve Prometheus' metrics and /healthz during the run.",
)
@verbose_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(sources: tuple[str, ...], into: str, *, quiet: bool, **options: Any) -> int:
    """Land the changes of SOURCE in tables below URI.

    SOURCE is binlog files, a directory of them, DATA#name for a binlog of `binlane serve`, or the
    URL of a server.
    """
    settings = _settings(options)
    places = [server_with_password(source, options["password_file"]) for source in sources]
    from binlane.tables.landing.landing import Landing  # noqa: PLC0415 - after --help
    from binlane.tables.landing.landing_report import report_as, text_report  # noqa: PLC0415 - after --help

    with ExitStack() as stack:
        shown = stack.enter_context(closing(LandingMeter(is_quiet=quiet)))
        engine = stack.enter_context(spark_engine_of(options))
        landing = stack.enter_context(
            Landing(places, into, settings, engine=engine, observer=shown)
        )
        _serve_metrics(stack, options["metrics"], landing)
        signal.signal(signal.SIGTERM, lambda *_signal: landing.stop())
        check_interrupted = _watch_interrupt(landing.stop)
        why = ""
        try:
            landing.run()
            check_interrupted()
        except BaseException as ended:
            why = str(ended) or type(ended).__name__
            raise
        finally:
            report = landing.report(why)
            if options["report_file"]:
                _write(options["report_file"], report_as(report, options["report_file"]))
    if not quiet:
        click.echo(text_report(report), nl=False)
    for name in report.given_up if quiet else ():
        say(f"binlane: {name} is given up: {report.tables[name].why_not}", err=True)
    return 1 if report.given_up else 0


def _watch_interrupt(stop: Callable[[], None]) -> Callable[[], None]:
    """Interrupt as Python does, and stop also if the exception gets lost in a finalizer.

    Returns:
        Raises KeyboardInterrupt if that was so.
    """
    interrupted: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        interrupted.append(number)
        stop()
        raise KeyboardInterrupt

    def check() -> None:
        if interrupted:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    return check


def _serve_metrics(stack: ExitStack, where: str | None, landing: Landing) -> None:
    if not where:
        return
    from binlane.live.web.landing_card import landing_port  # noqa: PLC0415 - for this option only
    from binlane.live.web.settings import HttpSettings  # noqa: PLC0415 - as above

    address, _, port = where.rpartition(":")
    if not port.isdigit():
        raise ConfigError(
            f"{where!r} is no address and port", key="metrics", hint="write 127.0.0.1:9100"
        )
    settings = HttpSettings(address=address or "127.0.0.1", port=int(port))
    taken = stack.enter_context(landing_port(settings, lambda: landing.progress))
    if not settings.port:
        click.echo(f"metrics: http://{settings.address}:{taken}/metrics", err=True)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"the report cannot be written: {error.strerror}",
            path=path,
            hint="name another --report",
        ) from error


def _settings(options: dict[str, Any]) -> LandingSettings:
    from binlane.tables.landing.landing_settings import (  # noqa: PLC0415 - after --help
        BATCH_BYTES_DEFAULT,
        LandingSettings,
    )
    from binlane.tables.landing.range_work import FormatName, Mode  # noqa: PLC0415 - after --help

    size = options["batch_bytes"]
    return LandingSettings(
        modes=frozenset(_choice(Mode, name.strip(), "mode") for name in options["mode"].split(",")),
        tables=options["tables"],
        format=_choice(FormatName, options["format_"], "format"),
        checkpoint=options["checkpoint"],
        follow_s=_seconds(options["trigger"], "trigger") if options["follow"] else None,
        soft_deletes=options["soft_deletes"],
        cdf=options["cdf"],
        keep_hours=_seconds(options["keep"], "keep") / 3600,
        catalog=properties(options["catalog"]),
        snapshot=server_with_password(options["snapshot"] or "", options["password_file"]),
        skip=frozenset(gtid.lower() for gtid in options["skip"]),
        is_taking_over=options["take_over"],
        keys=options["encryption_keys"],
        is_audited=not options["no_audit"],
        filter_terms=filter_terms(options) if has_filter(options) else None,
        batch_bytes=BATCH_BYTES_DEFAULT if size is None else _size(size, "batch-bytes"),
    )


def _choice(kind: Any, name: str, key: str) -> Any:
    known = {each.value: each for each in kind}
    if name not in known:
        raise ConfigError(
            f"there is no {key} {name}", key=key, hint=f"there are: {', '.join(known)}"
        )
    return known[name]


def properties(texts: tuple[str, ...]) -> dict[str, str]:
    """The properties of a catalog.

    Raises:
        ConfigError: If one is none.
    """
    found = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        if not is_given:
            raise ConfigError(
                f"{text!r} is no property", key="catalog", hint="write name=prod, uri=https://…"
            )
        found[name.strip()] = value.strip()
    return found


def _seconds(text: str, key: str) -> float:
    """`1s`, `500ms`, `2m`, `1 second`."""
    match = _INTERVAL.fullmatch(re.sub(r"(?<=[smh])(ec|in|our)\w*$", "", text.strip()))
    if match is None:
        raise ConfigError(f"{text!r} is no time", key=key, hint="write 500ms, 1s, 2m or 12h")
    return float(match[1]) * _UNITS[match[2]]


def _size(text: str, key: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{text!r} is no size", key=key, hint="write 64M or a number of bytes")
    return int(match[1]) << _SHIFTS[match[2].upper()]
