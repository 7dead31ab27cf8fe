"""Fast printing for `cat`: command lines that the kernels can print, and printing them so.

Only whole logs as text, or what a filter by tables leaves of them, and only where there is enough
of it: a small file is printed before the kernels are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from binlane.cli.cat_request import CatRequest

if TYPE_CHECKING:
    from binlane.binlogs.cat.fast_text.filtered import LogPart
    from binlane.binlogs.cat.fast_text.printer import FastText
    from binlane.binlogs.cat.renderer import Renderer
    from binlane.binlogs.cat.text.text_options import TextOptions
    from binlane.binlogs.filters.filter_state import FilterState
    from binlane.log.codec.encryption import KeyRing

_WORTH_BYTES: Final = 1 << 20


def is_worth_kernels(request: CatRequest) -> bool:
    """True if the kernels can print this request, are built, and are worth loading."""
    given = request.given
    is_plain = (
        (request.prints_all or (request.is_filtered_only and given["encryption_keys"] is None))
        and given["format_"] == "text"
        and given["force_if_open"]
        and not (given["flashback"] or given["force"] or request.is_remote)
    )
    if not is_plain or _size_bytes(request.files) < _WORTH_BYTES:
        return False
    from binlane.binlogs.cat.fast_text.printer import can_print  # noqa: PLC0415  # needs numpy
    from binlane.log.kernels.load import compiled_module  # noqa: PLC0415  # as above

    options = request.text_options()
    if not can_print(options) or compiled_module("text") is None:
        return False
    return request.prints_all or (
        compiled_module("scan") is not None
        and all(_can_be_filtered(path, options) for path in request.files)
        and None not in _parts(request)
    )


def _can_be_filtered(path: str, options: TextOptions) -> bool:
    """True if a file can be read twice and the kernels can print its filtered rest."""
    from binlane.binlogs.cat.fast_text.printer import can_print_log  # noqa: PLC0415  # needs numpy
    from binlane.binlogs.store.byte_source import FileBytes  # noqa: PLC0415

    if not Path(path).is_file():
        return False
    with closing(FileBytes(path)) as source:
        return can_print_log(source, options)


def _parts(request: CatRequest) -> list[LogPart | None]:
    """Return the groups of each file that positions select; None where the reference finds them."""
    from binlane.binlogs.cat.fast_text.filtered import LogPart  # noqa: PLC0415  # needs numpy
    from binlane.binlogs.store.byte_source import FileBytes  # noqa: PLC0415

    found: list[LogPart | None] = []
    for number, path in enumerate(request.files):
        start = 0 if number else request.start_position
        is_last = number + 1 == len(request.files)
        stop = request.selection.stop_position if is_last else None
        if not start and stop is None:
            found.append(LogPart())
            continue
        with closing(FileBytes(path)) as source:
            found.append(LogPart.of(source, start, stop))
    return found


class FilterUse(NamedTuple):
    """The filter by tables and kinds of statements.

    Attributes:
        state: The filter's rules, and the tables that it has seen.
        note: Told where the filter leaves out what its rules do not plainly say.
    """

    state: FilterState
    note: Callable[[str], None]


def print_fast(
    request: CatRequest,
    renderer: Renderer,
    output: TextIO,
    *,
    keys: KeyRing | None,
    meter: Callable[[int], None] | None,
    filtering: FilterUse | None,
) -> None:
    """Print all files of a request for which `is_worth_kernels`.

    Args:
        request: The request of the command line.
        renderer: Prints what the kernels do not.
        output: The output, whose bytes are written directly.
        keys: The keys of encrypted files.
        meter: Told how many bytes were read.
        filtering: None without a filter by tables and kinds of statements.

    Raises:
        CodecError: At the first fault; what stands before it is printed.
    """
    from binlane.binlogs.cat.fast_text.printer import FastText  # noqa: PLC0415  # needs numpy
    from binlane.binlogs.cat.text.text_lines import TextLines  # noqa: PLC0415
    from binlane.binlogs.store.byte_source import FileBytes, MeteredBytes  # noqa: PLC0415
    from binlane.binlogs.store.chunks import base_name  # noqa: PLC0415
    from binlane.log.kernels.load import kernels  # noqa: PLC0415

    assert isinstance(renderer, TextLines), "text is what was asked for"
    output.flush()
    printer = FastText(
        renderer, request.text_options(), output.buffer.write, kernel=kernels().print_events
    )
    if not request.prints_all:
        assert filtering is not None, "a filter is all that kernels can do else"
        _print_filtered(request, printer, meter, filtering)
        return
    for path in request.files:
        with closing(FileBytes.of_log(path, keys=keys)) as source:
            told = source if meter is None else MeteredBytes(source, meter)
            printer.print_file(told, path=path, name=base_name(path))


def _print_filtered(
    request: CatRequest,
    printer: FastText,
    meter: Callable[[int], None] | None,
    filtering: FilterUse,
) -> None:
    from binlane.binlogs.cat.fast_text.filtered import FilteredBytes  # noqa: PLC0415  # needs numpy
    from binlane.binlogs.filters.events import EventFilter, GroupFilter  # noqa: PLC0415
    from binlane.binlogs.filters.filtered_runs import RunFilter  # noqa: PLC0415
    from binlane.binlogs.store.byte_source import FileBytes, MeteredBytes  # noqa: PLC0415
    from binlane.binlogs.store.chunks import base_name  # noqa: PLC0415

    filters = EventFilter(*filtering), RunFilter(GroupFilter(*filtering))
    for path, part in zip(request.files, _parts(request), strict=True):
        assert part is not None, "it is worth kernels"
        with closing(FileBytes(path)) as judged, closing(FileBytes(path)) as given:
            told = given if meter is None else MeteredBytes(given, meter)
            name = base_name(path)
            source = FilteredBytes((judged, told), filters, path=path, name=name, part=part)
            printer.print_file(
                source,
                path=path,
                name=name,
                others=source.others,
                head=part.head,
                start=part.start,
            )


def _size_bytes(paths: tuple[str, ...]) -> int:
    return sum(path.stat().st_size for name in paths if (path := Path(name)).is_file())
