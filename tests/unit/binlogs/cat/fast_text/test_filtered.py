"""What a filter leaves of a log is printed by the text kernel as by `TextLines`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.cat.fast_text.filtered import FilteredBytes, LogPart
from binlane.binlogs.cat.fast_text.printer import FastText, PrinterSizes, can_print_log
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import TextOptions
from binlane.binlogs.filters.events import EventFilter, GroupFilter
from binlane.binlogs.filters.filter_state import FilterState
from binlane.binlogs.filters.filtered_runs import RunFilter
from binlane.binlogs.filters.terms import FilterTerms
from binlane.binlogs.store.byte_source import FileBytes
from binlane.errors import BinlaneError
from binlane.log.codec.types import EventType
from binlane.log.grouping.event_group import GTID_TYPES
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from binlane.log.kernels.load import kernels
from tests.fixture_sets import fixture_set
from tests.printing import DECODED, OPTIONS, TINY, WHOLE, Printed, local_zone
from tests.routed_files import written
from tests.unit.binlogs.filters.test_runs import NAMES, choices
from tests.unit.binlogs.route.test_both_paths import compiled

# Names of files that are written as they are printed; rows that nobody prints; a minute of printing.
SETS = [
    name
    for name in NAMES
    if not name.endswith(("load_data_statement", "hires53", "bigrow", "bigcommit"))
]
SAMPLED = {"md1011_txn", "md1011_fk", "md1011_ddl", "md1011_format_mixed", "md1011_compressed"}
SAMPLED |= {"my97_txn", "my97_compressed", "my97_ddl", "my97_format_statement", "md118_gtid"}
CASES = [name if name in SAMPLED else pytest.param(name, marks=pytest.mark.slow) for name in SETS]


@pytest.fixture(autouse=True)
def _zone() -> Iterator[None]:
    with local_zone("UTC"):
        yield


def by_lines(
    name: str, terms: FilterTerms, options: TextOptions, span: tuple[int, int | None] = (0, None)
) -> Printed:
    """As the reference prints a set, or groups of its first file."""
    lines: list[str] = []
    renderer, found = TextLines(options), EventFilter(FilterState(terms), lambda _: None)
    binlogs = fixture_set(name).binlogs
    for file, data in binlogs if span == (0, None) else [*binlogs][:1]:
        for event in expanded_all(walk([data], file=file), file=file):
            is_head = event.header.type_code == EventType.FORMAT_DESCRIPTION
            if not is_head and (event.position < span[0] or event.position >= (span[1] or 1 << 60)):
                continue
            for kept in found.feed(event, file=file):
                lines += renderer.lines(kept, file=file)
        for kept in found.finish():
            lines += renderer.lines(kept, file=file)
    lines += renderer.finish()
    return Printed("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"), None)


def by_kernel(
    name: str,
    paths: tuple[str, ...],
    terms: FilterTerms,
    options: TextOptions,
    sizes: Mapping[str, int],
    span: tuple[int, int | None] = (0, None),
) -> Printed:
    parts: list[bytes] = []
    renderer, error = TextLines(options), None
    printer = FastText(
        renderer,
        options,
        lambda text: parts.append(bytes(text)),
        kernel=kernels().print_events,
        sizes=PrinterSizes(**sizes),
    )
    state = FilterState(terms)
    events = EventFilter(state, lambda _: None)
    runs = RunFilter(GroupFilter(state, lambda _: None))
    try:
        for path, (file, _) in zip(paths, fixture_set(name).binlogs, strict=False):
            with closing(FileBytes(path)) as found:
                part = LogPart.of(found, *span)
            assert part is not None
            with closing(FileBytes(path)) as one, closing(FileBytes(path)) as two:
                source = FilteredBytes((one, two), (events, runs), path=path, name=file, part=part)
                printer.print_file(
                    source,
                    path=path,
                    name=file,
                    others=source.others,
                    head=part.head,
                    start=part.start,
                )
        parts += [f"{line}\n".encode("utf-8", "surrogateescape") for line in renderer.finish()]
    except BinlaneError as told:
        error = str(told)
    return Printed(b"".join(parts), error)


@compiled
@pytest.mark.parametrize("name", CASES)
def test_every_set_is_printed_as_by_lines(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path)
    for number, terms in enumerate(choices(name)):
        if terms.keeps_empty_groups:
            continue
        chosen = list(OPTIONS.values())[number % len(OPTIONS)] if number else DECODED
        options = replace(chosen, load_directory=tmp_path)
        for path in paths:
            with closing(FileBytes(path)) as source:
                if not can_print_log(source, options):
                    return
        expected = by_lines(name, terms, options)
        for sizes in (WHOLE, TINY):
            assert by_kernel(name, paths, terms, options, sizes) == expected, terms


@compiled
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "md1011_format_mixed"])
def test_bytes_that_were_changed_anywhere(name: str, tmp_path: Path) -> None:
    chance, terms = random.Random(name), next(iter(choices(name)))
    ((file, whole), *_) = fixture_set(name).binlogs
    path = tmp_path / file
    for _ in range(40):
        data = bytearray(whole)
        data[chance.randrange(300, len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        lines: list[str] = []
        renderer, found = TextLines(DECODED), EventFilter(FilterState(terms), lambda _: None)
        error = None
        try:
            for event in expanded_all(walk([bytes(data)], file=file), file=file):
                for kept in found.feed(event, file=file):
                    lines += renderer.lines(kept, file=file)
            for kept in found.finish():
                lines += renderer.lines(kept, file=file)
            lines += renderer.finish()
        except BinlaneError as told:
            error = str(told).replace(file, str(path))
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        printed = by_kernel(name, (str(path),), terms, DECODED, WHOLE)
        assert printed.error == error
        assert printed.text == text


@compiled
@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn", "md1011_format_mixed"])
def test_groups_between_two_positions(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path)[:1]
    ((file, data), *_) = fixture_set(name).binlogs
    starts = [
        event.position for event in walk([data], file=file) if event.header.type_code in GTID_TYPES
    ]
    terms = next(iter(choices(name)))
    for span in (
        (starts[3], None),
        (0, starts[-2]),
        (starts[2], starts[-1]),
        (starts[1], starts[1]),
    ):
        expected = by_lines(name, terms, DECODED, span)
        for sizes in (WHOLE, TINY):
            assert by_kernel(name, paths, terms, DECODED, sizes, span) == expected, span


def test_a_position_that_is_no_groups_beginning_is_told_event_by_event(tmp_path: Path) -> None:
    path = written("md1011_txn", tmp_path)[0]
    ((file, data), *_) = fixture_set("md1011_txn").binlogs
    inside = [event.next_position for event in walk([data], file=file)][8]
    for start, stop in ((inside + 1, None), (0, inside + 1), (0, len(data)), (len(data) + 9, None)):
        with closing(FileBytes(path)) as source:
            assert LogPart.of(source, start, stop) is None
