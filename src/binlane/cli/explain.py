"""`binlane explain`: one event, field by field."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import click

from binlane.cli.main import EXIT_WRONG
from binlane.cli.talk import say, verbose_option


@click.command("explain")
@click.argument("file", metavar="FILE")
@click.argument("position", metavar="POSITION", type=click.IntRange(min=0))
@click.option(
    "--encryption-keys",
    "keys_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keys of an encrypted log: file_key_management's file, or component_keyring_file's JSON.",
)
@click.option(
    "--schema",
    "schema_file",
    metavar="SCHEMA.sql",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Definitions of the tables, for columns that the log does not name.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with all bytes.")
@verbose_option
@click.option("--quiet", is_flag=True, help="Print faults only.")
def command(
    *,
    file: str,
    position: int,
    keys_file: Path | None,
    schema_file: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Print one event of a binlog file, field by field, with its bytes beside their meaning.

    POSITION is the first byte of the event, as `binlane cat` prints it. A damaged event is
    explained up to its fault.
    """
    from binlane.binlogs.cat.explain.explanation import explain  # noqa: PLC0415  # after --help
    from binlane.binlogs.cat.explain.explanation_text import (  # noqa: PLC0415  # as above
        explanation_json,
        explanation_text,
    )
    from binlane.binlogs.cat.explain.find import find_event  # noqa: PLC0415  # as above
    from binlane.binlogs.store.chunks import open_chunks, read_keys  # noqa: PLC0415  # as above
    from binlane.log.grouping.decryption import plain_chunks  # noqa: PLC0415  # as above
    from binlane.statements.sql.logged_objects import LoggedObjects  # noqa: PLC0415  # as above

    keys = None if keys_file is None else read_keys(keys_file)
    catalog = None
    if schema_file is not None:
        catalog = LoggedObjects()
        catalog.load(b"".join(open_chunks(schema_file)).decode("utf-8", "surrogateescape"))
    chunks = plain_chunks(open_chunks(file), file=file, keys=keys)
    explanation = explain(find_event(chunks, position, file=file, catalog=catalog), catalog=catalog)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    if as_json:
        click.echo(json.dumps(explanation_json(explanation), ensure_ascii=False))
    elif quiet:
        for fault in explanation.faults:
            say(f"{file}:{position}: {fault}")
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size().columns
        for line in explanation_text(explanation, width=width, color=color):
            click.echo(line, color=color)
    return EXIT_WRONG if explanation.faults else 0
