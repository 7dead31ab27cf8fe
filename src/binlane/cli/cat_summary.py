"""`cat --summary`: counting whole large files by kernels; printing a table, JSON, or a page."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from binlane.cli.output import open_output

if TYPE_CHECKING:
    from binlane.binlogs.cat.summary import Summary
    from binlane.cli.cat_request import CatRequest
    from binlane.log.codec.encryption import KeyRing


def is_worth_kernels(request: CatRequest) -> bool:
    """True if the kernels can count this request, are built, and are worth loading."""
    given = request.given
    is_plain = (
        request.prints_all
        and given["force_if_open"]
        and not (given["force"] or given["stop_never"] or request.is_remote)
    )
    if not is_plain:
        return False
    from binlane.binlogs.store.byte_source import is_large  # noqa: PLC0415  # after --help
    from binlane.binlogs.store.chunks import STDIN  # noqa: PLC0415

    if STDIN in request.files or not any(map(is_large, request.files)):
        return False
    from binlane.log.kernels.load import compiled_module  # noqa: PLC0415  # for large files only

    return compiled_module("summary") is not None


def count_fast(
    summary: Summary,
    request: CatRequest,
    *,
    keys: KeyRing | None,
    meter: Callable[[int], None] | None,
) -> None:
    """Count all files of a request for which `is_worth_kernels`.

    Args:
        summary: Takes the figures of all files.
        request: The request of the command line.
        keys: The keys of encrypted files.
        meter: Told how many bytes were read.

    Raises:
        CodecError: At the first fault.
        StoreError: If a file cannot be read.
    """
    from binlane.binlogs.cat.summary.fast import count_file  # noqa: PLC0415  # needs numpy
    from binlane.binlogs.store.byte_source import FileBytes, MeteredBytes  # noqa: PLC0415
    from binlane.binlogs.store.chunks import base_name  # noqa: PLC0415

    for path in request.files:
        source = FileBytes(path)
        try:
            told = source if meter is None else MeteredBytes(source, meter)
            count_file(summary, told, path=path, name=base_name(path), keys=keys)
        finally:
            source.close()


def print_summary(summary: Summary, request: CatRequest) -> None:
    """Print it to standard output; with `--html` write the page as well.

    Raises:
        StoreError: If the page cannot be written.
    """
    summary.finish()
    if request.given["html_file"] is not None:
        from binlane.binlogs.cat.summary.html import summary_html  # noqa: PLC0415  # only when asked for

        with open_output(str(request.given["html_file"]), errors="backslashreplace") as page:
            page.write(summary_html(summary))
    with open_output(None, errors="backslashreplace") as output:
        if request.given["format_"] == "json":
            from binlane.binlogs.cat.summary.summary_json import summary_json  # noqa: PLC0415  # as above

            click.echo(json.dumps(summary_json(summary), ensure_ascii=False), file=output)
            return
        from binlane.binlogs.cat.summary.summary_text import summary_text  # noqa: PLC0415  # rich is slow to load

        has_color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        text = summary_text(summary, width=width, color=has_color)
        click.echo(text, file=output, color=has_color)
