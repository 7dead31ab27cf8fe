"""Cut row images of random tables, against images that are made of the kept values alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from binlane.errors import CodecError
from binlane.log.codec.row_cutting import changed_columns, cut_images
from binlane.log.codec.types import Flavor
from binlane.log.grouping.window import PADDING
from binlane.log.kernels.load import Build, is_compiled, running

Row = dict[int, bytes | None]
BUILDS = [
    Build.PLAIN,
    pytest.param(
        Build.COMPILED,
        marks=pytest.mark.skipif(not is_compiled(("images",)), reason="not compiled here"),
    ),
]


def image(row: Row, columns: int, flavor: Flavor) -> bytes:
    """The image that a server writes of some columns of a row."""
    values = [row[column] for column in sorted(row) if columns >> column & 1]
    bits = [value is None for value in values]
    bits += [flavor is Flavor.MARIADB] * (-len(bits) % 8)
    nulls = bytes(
        sum(bit << place for place, bit in enumerate(bits[at : at + 8]))
        for at in range(0, len(bits), 8)
    )
    return nulls + b"".join(value for value in values if value is not None)


class Table:
    """A table with columns of random widths, and rows of it."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.widths = tuple(
            draw.choice((0, 1, 3, 4, 8, -1, -2, -4)) for _ in range(draw.randint(1, 19))
        )
        self.flavor = draw.choice(tuple(Flavor))

    def value(self, column: int) -> bytes | None:
        width = self.widths[column]
        if self.draw.random() < 0.2:
            return None
        if width >= 0:
            return self.draw.randbytes(width)
        data = self.draw.randbytes(self.draw.choice((0, 1, 5, 40)))
        return len(data).to_bytes(-width, "little") + data

    def row(self, before: Row | None = None) -> Row:
        return {
            column: before[column] if before and self.draw.random() < 0.7 else self.value(column)
            for column in range(len(self.widths))
        }

    def columns(self, of: int) -> int:
        """Some of these columns, at least one."""
        return self.draw.getrandbits(len(self.widths)) & of or of

    def images(self, pairs: list[tuple[Row, Row]], before: int, after: int) -> bytes:
        return b"".join(
            image(old, before, self.flavor) + image(new, after, self.flavor) for old, new in pairs
        )


def by_kernels(
    data: bytes, table: Table, present: list[int], kept: list[int]
) -> tuple[bytes | None, int | None]:
    """What kernels cut, and what they find changed; None where they find damage."""
    buffer = np.frombuffer(data + bytes(PADDING), np.uint8).copy()
    widths = np.array(table.widths, np.int32)
    length = (len(table.widths) + 7) // 8

    def bitmaps(*columns: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        rows = [list(each.to_bytes(length, "little")) for each in columns]
        return np.array(rows, np.uint8)

    from binlane.log.kernels.load import kernels  # noqa: PLC0415  # those that run now

    room, out = np.empty((4, len(widths)), np.int64), np.empty_like(buffer)
    fill = 0xFF if table.flavor is Flavor.MARIADB else 0
    there, stays = bitmaps(*present), bitmaps(*kept)
    size = kernels().cut(buffer, len(data), widths, there, stays, fill, room, out)
    cut = None if size < 0 else out[:size].tobytes()
    if len(present) == 1:
        return cut, None
    changed = np.zeros(length, np.uint8)
    status = kernels().find_changed(buffer, len(data), widths, there[0], there[1], room, changed)
    return cut, None if status < 0 else int.from_bytes(changed.tobytes(), "little")


@pytest.mark.parametrize("build", BUILDS)
def test_what_is_kept_is_as_if_it_was_written_so(build: Build) -> None:
    with running(build):
        for seed in range(150):
            table = Table(random.Random(seed))
            everything = (1 << len(table.widths)) - 1
            before, after = table.columns(everything), table.columns(everything)
            olds = [table.row() for _ in range(3)]
            pairs = [(old, table.row(old)) for old in olds]
            kept = [table.columns(before), table.columns(after)]
            data = table.images(pairs, before, after)
            expected = table.images(pairs, *kept)
            present = [before, after]
            assert cut_images(data, table.widths, present, kept, flavor=table.flavor) == expected
            changed = after & ~before
            for old, new in pairs:
                for column in range(len(table.widths)):
                    if (before & after) >> column & 1 and old[column] != new[column]:
                        changed |= 1 << column
            assert changed_columns(data, table.widths, before, after) == changed
            assert by_kernels(data, table, present, kept) == (expected, changed)
            again = cut_images(expected, table.widths, kept, kept, flavor=table.flavor)
            assert again == expected


@pytest.mark.parametrize("build", BUILDS)
def test_damage_is_found_by_both(build: Build) -> None:
    damaged = 0
    with running(build):
        for seed in range(150):
            table = Table(random.Random(seed))
            everything = (1 << len(table.widths)) - 1
            row = table.row()
            data = bytearray(table.images([(row, table.row(row))], everything, everything))
            place = table.draw.randrange(len(data))
            del data[place:]
            present, kept = [everything] * 2, [table.columns(everything)] * 2
            cut, changed = by_kernels(bytes(data), table, present, kept)
            try:
                expected = cut_images(bytes(data), table.widths, present, kept, flavor=table.flavor)
            except CodecError:
                damaged += 1
                assert cut is None
                assert changed is None
            else:
                assert cut == expected
    assert damaged > 100
