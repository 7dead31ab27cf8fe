"""One log printed twice: by `TextLines`, the reference, and by the text kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import pytest

from binlane.binlogs.cat.fast_text.printer import FastText, PrinterSizes, zone_at
from binlane.binlogs.cat.text.event_text import local_time
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.binlogs.store.byte_source import ChunkBytes
from binlane.errors import BinlaneError
from binlane.log.grouping.decryption import plain_chunks
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import Walker
from binlane.log.kernels.load import kernels

WHOLE: Final[dict[str, int]] = {}
TINY: Final = {"window_bytes": 64, "buffer_bytes": 2048, "spill_bytes": 4096}
DECODED: Final = TextOptions(verbose=2, base64_output=Base64Output.DECODE_ROWS)
OPTIONS: Final = {
    "decoded": DECODED,
    "without types": TextOptions(verbose=1, base64_output=Base64Output.DECODE_ROWS),
    "default": TextOptions(),
    "all": TextOptions(verbose=2),
    "less": TextOptions(print_row_count=False, skip_annotate=True),
}


class Printed(NamedTuple):
    """What came out, and the error that ended it."""

    text: bytes
    error: str | None


def by_lines(*logs: bytes, options: TextOptions) -> Printed:
    """As the reference prints some logs."""
    lines, renderer, error = [], TextLines(options), None
    try:
        for number, data in enumerate(logs):
            name = f"binlog.{number}"
            for event in expanded_all(Walker(iter((data,)), file=name).events(), file=name):
                # One by one: those before an error count.
                for line in renderer.lines(event, file=name):
                    lines.append(line)  # noqa: PERF402
        lines += list(renderer.finish())
    except BinlaneError as told:
        error = str(told)
    text = "".join(f"{line}\n" for line in lines)
    return Printed(text.encode("utf-8", "surrogateescape"), error)


def by_kernel(*logs: bytes, options: TextOptions, sizes: Mapping[str, int] = WHOLE) -> Printed:
    """As the kernel does.

    Args:
        logs: The files, one behind the other.
        options: What to print.
        sizes: Of window and buffers, by the names of `FastText`'s arguments.
    """
    parts: list[bytes] = []
    renderer, error = TextLines(options), None
    printer = FastText(
        renderer,
        options,
        lambda text: parts.append(bytes(text)),
        kernel=kernels().print_events,
        sizes=PrinterSizes(**sizes),
    )
    try:
        for number, data in enumerate(logs):
            name = f"binlog.{number}"
            chunks = plain_chunks(iter((data,)), file=name, keys=None)
            printer.print_file(ChunkBytes(chunks), path=name, name=name)
        parts += [f"{line}\n".encode("utf-8", "surrogateescape") for line in renderer.finish()]
    except BinlaneError as told:
        error = str(told)
    return Printed(b"".join(parts), error)


def assert_same(
    *logs: bytes, options: TextOptions = DECODED, sizes: Sequence[Mapping[str, int]] = (WHOLE,)
) -> None:
    """Both print the same, errors included, the kernel at each of the sizes."""
    expected = by_lines(*logs, options=options)
    for size in sizes:
        assert by_kernel(*logs, options=options, sizes=size) == expected, size


@contextmanager
def local_zone(name: str) -> Iterator[None]:
    """Print times of a time zone; what is remembered of another one is forgotten."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        _forget_zones()
        yield
    _forget_zones()


def _forget_zones() -> None:
    time.tzset()
    zone_at.cache_clear()
    local_time.cache_clear()
