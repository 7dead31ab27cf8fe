"""The options of an engine that runs a command's tasks: processes of this machine, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from binlane.errors import ConfigError

if TYPE_CHECKING:
    from binlane.tables.spark.spark_engine import SparkEngine

_Command = TypeVar("_Command", bound=Callable[..., Any])


def takes_engine(text: str) -> Callable[[_Command], _Command]:
    """Give a command the options.

    Args:
        text: Help of `--engine` in this command.
    """
    options = (
        click.option(
            "--engine",
            type=click.Choice(["embedded", "spark"]),
            default="embedded",
            show_default=True,
            help=text,
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Spark's master, with --engine spark; by default local[*].",
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar="spark.KEY=VALUE",
            help="A setting of Spark, with --engine spark; repeatable.",
        ),
        click.option(
            "--driver-memory",
            metavar="SIZE",
            help="Memory of Spark's driver, such as 2g, with --engine spark; by default 1g.",
        ),
    )

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def spark_engine_of(
    options: Mapping[str, Any],
) -> AbstractContextManager[SparkEngine | None, bool | None]:
    """Spark's engine with its session, if the command line asks for it.

    Raises:
        ConfigError: If a setting of Spark is given and Spark does not run.
    """
    if options["engine"] == "spark":
        from binlane.tables.spark.spark_engine import spark_engine  # noqa: PLC0415 - after --help
        from binlane.tables.spark.spark_session import session_settings  # noqa: PLC0415 - as above

        conf = session_settings(options["conf"], driver_memory=options["driver_memory"] or "")
        return spark_engine(options["master"] or "local[*]", conf)
    for name in ("master", "conf", "driver_memory"):
        if options[name]:
            raise ConfigError(
                "this is a setting of Spark, which does not run here",
                key=name.replace("_", "-"),
                hint="add --engine spark",
            )
    return nullcontext()
