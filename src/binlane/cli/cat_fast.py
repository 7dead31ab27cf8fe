"""Whether a command line of `cat` is printed by the kernels, and printing it so.

Only whole logs as text, without a filter, and only where there is enough of it: a small file is
printed before the kernels are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from binlane.cli.cat_request import CatRequest

if TYPE_CHECKING:
    from binlane.cat.renderer import Renderer
    from binlane.codec.encryption import KeyRing

_WORTH_BYTES: Final = 1 << 20


def is_worth_kernels(request: CatRequest) -> bool:
    """Whether the kernels can print what is asked for, are built, and are worth loading."""
    given = request.given
    is_plain = (
        request.prints_all
        and given["format_"] == "text"
        and given["force_if_open"]
        and not (given["flashback"] or given["force"] or request.is_remote)
    )
    if not is_plain or _size_bytes(request.files) < _WORTH_BYTES:
        return False
    from binlane.cat.fast_text.printer import can_print  # noqa: PLC0415  # needs numpy
    from binlane.kernels.load import compiled_module  # noqa: PLC0415  # as above

    return can_print(request.text_options()) and compiled_module("text") is not None


def print_fast(
    request: CatRequest,
    renderer: Renderer,
    output: TextIO,
    *,
    keys: KeyRing | None,
    meter: Callable[[int], None] | None,
) -> None:
    """Print all files of a request for which `is_worth_kernels`.

    Args:
        request: The command line.
        renderer: Prints what the kernels do not.
        output: Its bytes are written directly.
        keys: Of encrypted files.
        meter: Told how many bytes were read.

    Raises:
        CodecError: At the first fault; what stands before it is printed.
    """
    from binlane.cat.fast_text.printer import FastText  # noqa: PLC0415  # needs numpy
    from binlane.cat.text.lines import TextLines  # noqa: PLC0415
    from binlane.kernels.load import kernels  # noqa: PLC0415
    from binlane.store.byte_source import FileBytes, MeteredBytes  # noqa: PLC0415
    from binlane.store.chunks import base_name  # noqa: PLC0415

    assert isinstance(renderer, TextLines), "text is what was asked for"
    output.flush()
    printer = FastText(
        renderer, request.text_options(), output.buffer.write, kernel=kernels().print_events
    )
    for path in request.files:
        with closing(FileBytes.of_log(path, keys=keys)) as source:
            told = source if meter is None else MeteredBytes(source, meter)
            printer.print_file(told, path=path, name=base_name(path))


def _size_bytes(paths: tuple[str, ...]) -> int:
    return sum(path.stat().st_size for name in paths if (path := Path(name)).is_file())
