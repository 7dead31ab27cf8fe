"""`binlane cat`: prints binlogs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from binlane.codec.event import Event


class Renderer(Protocol):
    """Gives the lines of events, in order."""

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """The lines of one event of a file."""
        ...


@click.command("cat")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-v", "--verbose", count=True, help="Rows as commented SQL; -vv with column types.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text that a MariaDB client can run, or one JSON object a line.",
)
@click.option(
    "-l",
    "--local-load",
    "load_directory",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where text writes the files of LOAD DATA; the system's temporary directory by default.",
)
@click.option("--quiet", is_flag=True, help="No notes on standard error.")
def command(
    *,
    files: tuple[str, ...],
    verbose: int,
    format_: str,
    load_directory: Path | None,
    quiet: bool,
) -> int:
    """Print binlog files as one stream; - is standard input. Reads .gz and .xz as they are."""
    from binlane.grouping.walk import walk  # noqa: PLC0415  # after --help
    from binlane.store.chunks import base_name, open_chunks  # noqa: PLC0415  # as above

    del quiet  # nothing but errors is ever written to standard error
    # What is no text in a binlog's bytes is printed as it was, or in JSON as its escape.
    errors = "surrogateescape" if format_ == "text" else "backslashreplace"
    sys.stdout.reconfigure(encoding="utf-8", errors=errors)  # type: ignore[union-attr]  # a TextIOWrapper
    renderer, head, tail = _renderer(format_, verbose, load_directory)
    _print(head)
    try:
        for file in files:
            name = base_name(file)
            # Errors give the file as the user named it.
            for event in walk(open_chunks(file), file=file):
                _print(renderer.lines(event, file=name))
    finally:
        sys.stdout.flush()
    _print(tail)
    return 0


def _renderer(
    format_: str, verbose: int, load_directory: Path | None
) -> tuple[Renderer, Iterable[str], Iterable[str]]:
    if format_ == "json":
        from binlane.cat.json_lines import JsonLines  # noqa: PLC0415  # only what is asked for

        return JsonLines(with_rows=verbose > 0), (), ()
    from binlane.cat.text import HEAD, TAIL, TextLines  # noqa: PLC0415  # as above

    return TextLines(verbose=verbose, load_directory=load_directory), HEAD, TAIL


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
