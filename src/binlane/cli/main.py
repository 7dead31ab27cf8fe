"""`binlane COMMAND`: the group of commands, and the one place where errors are printed."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from contextlib import suppress
from typing import Any, Final, NoReturn

import click

from binlane import __version__
from binlane.cli.talk import say
from binlane.errors import (
    BinlaneError,
    CodecError,
    ConfigError,
    CorruptStoreError,
    StatementError,
    StoreError,
)

EXIT_WRONG: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNUSABLE: Final = 3
EXIT_INTERRUPTED: Final = 130
_GC_THRESHOLD: Final = 50_000
_DEBUG: Final = "`binlane --debug …` shows what was tried"
_EXTRAS: Final = {
    "spark": {"pyspark", "py4j"},
    "delta": {"deltalake", "obstore"},
    "iceberg": {"pyiceberg"},
    "demo": {"pymysql"},
    "query": {"duckdb"},
}
"""Packages that the extras of pyproject.toml bring and modules of ours import."""

# Name → what `binlane --help` says of it; the module of that name holds `command`.
COMMANDS: Final = {
    "cat": "Print binlogs.",
    "watch": "Show the changes of a log as they come.",
    "blame": "Show the life of a row, as a log has it.",
    "explain": "Print one event field by field.",
    "verify": "Check every checksum, position, GTID and index.",
    "route": "Make scoped binlogs from any binlog files.",
    "check": "Show what scripts would do to binlogs.",
    "setup": "Prepare a server as a source, or list what it lacks.",
    "serve": "Capture a server, keep scoped binlogs, serve replicas.",
    "land": "Land a binlog's changes in tables.",
    "query": "Ask a log by SQL.",
    "config": "Check the configuration.",
    "demo": "Show the whole product on this machine.",
    "man": "Print or write manual pages.",
}


class _Commands(click.Group):
    """Finds a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"binlane.cli.{cmd_name}")
        command = module.command
        assert isinstance(command, click.Command), f"binlane.cli.{cmd_name} has no command"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has enough is no failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Nothing may be written at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, asked: _tell_version(context) if asked else None,
    help="Show the version, and what this installation lacks.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def binlane(*, debug: bool) -> None:
    """Several named, scoped binary logs for a stock MariaDB or MySQL server."""
    del debug


def _tell_version(context: click.Context) -> NoReturn:
    from binlane.log.kernels.load import is_compiled, kernel_modules  # noqa: PLC0415 - for this alone

    click.echo(f"binlane {__version__}")
    if not is_compiled(kernel_modules()):
        click.echo(
            "without compiled kernels: the same results, but large logs take up to 90 times as long;\n"
            "a wheel made by `./run wheel` has them, and so has a checkout after `./run setup`"
        )
    context.exit()


def main(arguments: list[str] | None = None) -> int:
    """Run one command; console scripts hand its result to `sys.exit`.

    Returns:
        0 done; 1 the thing looked at is wrong; 2 wrong usage; 3 a server or disk could not be used;
        130 interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    _open_standard_streams()
    # Nearly all that is made while modules load, and later for each event, needs no collector; the
    # usual threshold costs a tenth of the start.
    gc.set_threshold(_GC_THRESHOLD)
    # Nothing here multiplies matrices: numpy's library for that need not start its threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Objects alive at the end need not be searched for garbage either: another tenth.
    atexit.register(gc.freeze)
    try:
        result = binlane.main(args=arguments, prog_name="binlane", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("binlane: interrupted", err=True)
        return EXIT_INTERRUPTED
    except Exception as error:  # the rim: whatever comes is told, and --debug shows where from
        if "--debug" in arguments:
            raise
        found = error if isinstance(error, BinlaneError) else _told(error)
        if isinstance(error, OSError):
            _let_go_of_stdout()
        report(found)
        return exit_code(found)
    return result if isinstance(result, int) else 0


def _open_standard_streams() -> None:
    """Open standard streams that are closed, so that no file of ours gets their numbers.

    What is written to a standard output that is closed fails as for any other program.
    """
    for number, name, flags in (
        (0, "stdin", os.O_RDONLY),
        (1, "stdout", os.O_RDONLY),
        (2, "stderr", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(number)
                continue
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            stream = open(number, "r" if number == 0 else "w", closefd=False)  # noqa: SIM115  # for good
            setattr(sys, name, stream)


def _let_go_of_stdout() -> None:
    """Turn standard output away: failed writes must not be repeated at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception) -> BinlaneError:
    """Return the error that describes an exception of Python or the system in plain words."""
    if isinstance(error, ModuleNotFoundError) and (lacking := _lacking(error)):
        return lacking
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        if error.filename is None:
            return BinlaneError(what, hint=_DEBUG)
        return StoreError(what, path=str(error.filename), hint=_DEBUG)
    if isinstance(error, UnicodeEncodeError) and any(
        "\udc80" <= c <= "\udcff" for c in error.object
    ):
        return BinlaneError(
            f"{error.object[:200]!r} is not UTF-8, which it must be here", hint=_DEBUG
        )
    if isinstance(error, MemoryError):
        return BinlaneError("there is not enough memory for this", hint=_DEBUG)
    return BinlaneError(
        f"this is a fault of binlane: {type(error).__name__}: {error}",
        hint="`binlane --debug …` shows where it is: please report it",
    )


def _lacking(error: ModuleNotFoundError) -> ConfigError | None:
    """The error of a package that an extra brings; None if none does."""
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, brought in _EXTRAS.items() if name in brought), None)
    if extra is None:
        return None
    return ConfigError(
        f"{name} is not installed", key="extras", hint=f"pip install 'binlane[{extra}]'"
    )


def report(error: BinlaneError) -> None:
    """Write an error with its hint, and further errors of the same kind, to standard error."""
    others = error.others if isinstance(error, ConfigError) else ()
    for each in (error, *others):
        say(f"binlane: {each}", err=True)
        if each.hint:
            say(f"hint: {each.hint}", err=True)


def exit_code(error: BinlaneError) -> int:
    """The exit code that an error ends the process with."""
    if isinstance(error, CodecError | StatementError | CorruptStoreError):
        return EXIT_WRONG
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_UNUSABLE
