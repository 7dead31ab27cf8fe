"""Plans of merges: the files that a batch touches, split into tasks, by keys of runs and bounds of files.

Base files are in order of key and hardly overlap. A row of a run belongs to the last file that does
not begin behind it; rows behind all files make new ones, and nothing is read for them. A key is
looked for in every file between whose bounds it lies, so that overlapping files cost time, never
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.landing.range_work import Mode
from binlane.tables.landing.tables.bounds import LiveFile, SortedKeys
from binlane.tables.landing.tables.formats import Snapshot
from binlane.tables.landing.tables.row_versions import holding

TARGET_BYTES_MIN = 1 << 20
TARGET_BYTES_MAX = 16 << 20
TARGET_ROWS = 1 << 18
"""Rows of a file at most, about: the cost of a change of one of its rows."""
FILES_AIM = 32
SMALL_FILES_MAX = 16
_APPEND_ROWS = 1 << 19


def target_bytes(total: int) -> int:
    """Return the aim for the size of a table's files: larger in larger tables, with bounds."""
    return min(max(total // FILES_AIM, TARGET_BYTES_MIN), TARGET_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class MergePart:
    """The share of a merge that one task does.

    Attributes:
        files: Files to be merged into, none for new rows only.
        drop: For each run, from which row to which its keys may be in the files.
        add: For each run, from which row to which rows are to be written.
    """

    files: tuple[LiveFile, ...]
    drop: tuple[tuple[int, int], ...]
    add: tuple[tuple[int, int], ...]


def parts(
    files: Sequence[LiveFile],
    runs: Sequence[SortedKeys],
    key: Sequence[str],
    target: int,
    *,
    is_whole: bool = False,
) -> list[MergePart]:
    """Plan a merge.

    Args:
        files: The table's, in any order.
        runs: The keys of the runs, in log order.
        key: Names of the key's columns.
        target: Bytes of a file, about; a part reads about as much.
        is_whole: Whether the old row of a key must be in the part that writes the new one.
    """
    ordered = sorted(files, key=lambda file: file.first(key))
    reach = [[run.reach(file) for run in runs] for file in ordered]
    begin = [[0] * len(runs)]
    begin += [[run.place(file.first(key)) for run in runs] for file in ordered[1:]]
    ends = [len(run) for run in runs]
    behind = [
        max([begin[-1][each], *(spans[each][1] for spans in reach)]) if ordered else 0
        for each in range(len(runs))
    ]
    found: list[MergePart] = []
    for number, file in enumerate(ordered):
        is_last = number + 1 == len(ordered)
        own = [
            (start, stop)
            for start, stop in zip(
                begin[number], behind if is_last else begin[number + 1], strict=True
            )
        ]
        if not any(start < stop for start, stop in [*own, *reach[number]]):
            continue
        if is_last and sum(ends) - sum(behind) <= _APPEND_ROWS:
            behind = ends
            own = list(zip(begin[number], behind, strict=True))
        part = MergePart((file,), tuple(reach[number]), tuple(own))
        apart = len(found)
        if is_whole:
            apart = next((i for i, each in enumerate(found) if _reaches(each, part)), apart)
        if apart == len(found) and found and _can_join(found[-1], part, target):
            apart -= 1
        found[apart:] = [reduce(_joined, [*found[apart:], part])]
    return found + _appended(runs, behind)


def _reaches(part: MergePart, following: MergePart) -> bool:
    """True if keys that another part writes may be in the files of a part."""
    return any(
        max(drop[0], add[0]) < min(drop[1], add[1])
        for drop, add in zip(part.drop, following.add, strict=True)
    )


def _can_join(part: MergePart, following: MergePart, target: int) -> bool:
    files = (*part.files, *following.files)
    is_small = sum(file.size_bytes for file in files) <= target
    return (
        is_small
        and sum(file.rows for file in files) <= TARGET_ROWS
        and all(
            first[1] == second[0] for first, second in zip(part.add, following.add, strict=True)
        )
    )


def _joined(first: MergePart, second: MergePart) -> MergePart:
    return MergePart(
        (*first.files, *second.files),
        tuple(_hull(one, two) for one, two in zip(first.drop, second.drop, strict=True)),
        tuple((one[0], two[1]) for one, two in zip(first.add, second.add, strict=True)),
    )


def _hull(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    spans = [each for each in (first, second) if each[0] < each[1]]
    if not spans:
        return first
    return min(each[0] for each in spans), max(each[1] for each in spans)


def _appended(runs: Sequence[SortedKeys], behind: Sequence[int]) -> list[MergePart]:
    """New rows only, cut into parts where there are many."""
    left = [(start, len(run)) for start, run in zip(behind, runs, strict=True)]
    if not any(start < stop for start, stop in left):
        return []
    # Bounds so near to each other that a part cannot become much larger than it shall.
    step = max(1, _APPEND_ROWS // (2 * len(runs)))
    places = [
        run.at(place)
        for run, (start, stop) in zip(runs, left, strict=True)
        for place in range(start + step, stop, step)
    ]
    cuts = [list(behind)]
    for order in sorted(places):
        cut = [max(run.place(order), first) for run, (first, _) in zip(runs, left, strict=True)]
        if sum(cut) - sum(cuts[-1]) >= _APPEND_ROWS:
            cuts.append(cut)
    cuts.append([stop for _, stop in left])
    nothing = tuple((0, 0) for _ in runs)
    return [
        MergePart((), nothing, tuple(zip(first, second, strict=True)))
        for first, second in pairwise(cuts)
        if first != second
    ]


def crowded(files: Sequence[LiveFile], key: Sequence[str], target: int) -> list[list[LiveFile]]:
    """Neighbouring files that are better one, when there are too many small ones.

    A file is small below a quarter of the target. Between two compactions a batch may leave its
    small files, so that each row is rewritten a few times only.
    """
    small = [
        file for file in files if file.size_bytes < target // 4 and file.rows < TARGET_ROWS // 4
    ]
    if len(small) <= SMALL_FILES_MAX:
        return []
    groups: list[list[LiveFile]] = [[]]
    size = rows = 0
    is_small = {file.path for file in small}
    for file in sorted(files, key=lambda each: (each.first(key), each.path)):
        size, rows = size + file.size_bytes, rows + file.rows
        if file.path not in is_small or size > target or rows > TARGET_ROWS:
            groups.append([])
            size, rows = file.size_bytes, file.rows
        if file.path in is_small:
            groups[-1].append(file)
    return [group for group in groups if len(group) > 1]


def joined(
    now: Snapshot,
    mode: Mode,
    key: tuple[str, ...],
    bounded: Callable[[Sequence[LiveFile], Sequence[str]], list[LiveFile]],
) -> Iterator[tuple[list[LiveFile], tuple[str, ...]]]:
    """Give the groups of a table's files that are to be joined, each with the order of its rows.

    Args:
        now: Files of the table at present, with bounds.
        mode: The kind of the table.
        key: Names of the columns by which rows that hold are ordered.
        bounded: Gives files with their first and last values of an order.
    """
    target = target_bytes(now.size_bytes)
    kept = holding(now, mode)
    paths = {file.path for file in kept}
    over = [file for path, file in now.files.items() if path not in paths]
    for files, order in ((kept, key), (over, (SEQUENCE_COLUMN,))):
        for group in crowded(bounded(files, order), order, target):
            yield group, order
