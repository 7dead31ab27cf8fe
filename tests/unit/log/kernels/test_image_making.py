"""The kernel that makes row images gives what the reference gives, or leaves rows to it."""

from __future__ import annotations

import random
from struct import pack

import pytest

from binlane.client.binary_rows import RowFrames
from binlane.client.rows.table_rows import FastRowMaker
from binlane.log.codec.packets.framing import encode_packed_bytes, frame
from binlane.log.codec.row_making import Cell, CellForm, RowMaker
from binlane.log.codec.types import Flavor
from binlane.log.kernels.load import Build, builds, running

_TEXTS = (b"", b"a", b"x" * 250, b"y" * 251, b"z" * 300, b"\0\0", b"a\0")


def _value(cell: Cell, chance: random.Random) -> bytes:
    if cell.form is CellForm.WHOLE:
        return chance.randbytes(cell.width)
    if cell.form is CellForm.YEAR:
        return pack("<H", chance.choice((0, 1901, 2024, 2155)))
    if cell.form is CellForm.DECIMAL:
        whole = "".join(
            chance.choices("0123456789", k=chance.randrange(cell.size - cell.scale + 1))
        )
        fraction = "".join(chance.choices("0123456789", k=cell.scale))
        sign = chance.choice(("", "-"))
        text = f"{sign}{whole or '0'}" + (f".{fraction}" if fraction else "")
        return encode_packed_bytes(text.encode())
    if cell.form is CellForm.TIME:
        clock = pack("<BIBBB", chance.randrange(2), chance.randrange(34), 23, 59, 58)
        return chance.choice(
            (b"\0", encode_packed_bytes(clock), encode_packed_bytes(clock + pack("<I", 999999)))
        )
    if cell.form in {CellForm.DATE, CellForm.DATETIME, CellForm.TIMESTAMP}:
        date = pack("<HBB", chance.randrange(1970, 2038), chance.randrange(1, 13), 15)
        clock = date + bytes((chance.randrange(24), 59, 1))
        moments = [b"", date, clock, clock + pack("<I", chance.randrange(10**6))]
        return encode_packed_bytes(chance.choice(moments))
    if cell.form is CellForm.BITS:
        return encode_packed_bytes(chance.randbytes(chance.randrange(1, cell.size + 1)))
    return encode_packed_bytes(chance.choice(_TEXTS))


def _cells(chance: random.Random) -> list[Cell]:
    kinds = [
        Cell(CellForm.WHOLE, 4, 3),
        Cell(CellForm.WHOLE, 8, 8),
        Cell(CellForm.WHOLE, 1, 1),
        Cell(CellForm.YEAR, 2),
        Cell(CellForm.DECIMAL, 0, 10, 2),
        Cell(CellForm.DECIMAL, 0, 65, 30),
        Cell(CellForm.DECIMAL, 0, 9, 9),
        Cell(CellForm.DECIMAL, 0, 18, 0),
        Cell(CellForm.DATE),
        *(Cell(CellForm.TIME, 0, 0, digits) for digits in range(7)),
        *(Cell(CellForm.DATETIME, 0, 0, digits) for digits in range(7)),
        *(Cell(CellForm.TIMESTAMP, 0, 0, digits) for digits in range(7)),
        Cell(CellForm.COUNTED, 0, 2),
        Cell(CellForm.COUNTED, 0, 4),
        Cell(CellForm.PADDED, 0, 2),
        Cell(CellForm.BITS, 0, 8),
    ]
    return chance.choices(kinds, k=chance.randrange(1, 20))


def _payload(cells: list[Cell], nulls: set[int], chance: random.Random) -> bytes:
    bits = sum(1 << (index + 2) for index in nulls)
    values = [b"" if index in nulls else _value(cell, chance) for index, cell in enumerate(cells)]
    return b"".join((b"\0", bits.to_bytes((len(cells) + 9) // 8, "little"), *values))


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.value)
@pytest.mark.parametrize("flavor", list(Flavor), ids=lambda flavor: flavor.value)
def test_images_and_keys_are_those_of_the_reference(build: Build, flavor: Flavor) -> None:
    chance = random.Random(11)
    for _ in range(60 if build is Build.COMPILED else 4):
        cells = _cells(chance)
        key = chance.sample(range(len(cells)), chance.randrange(min(3, len(cells)) + 1))
        payloads = []
        for _ in range(chance.randrange(1, 30)):
            nulls = {index for index in range(len(cells)) if chance.random() < 0.2} - set(key)
            payloads.append(_payload(cells, nulls, chance))
        data = b"".join(frame(payload, 0) for payload in payloads)
        reference = RowMaker(cells, key, flavor=flavor)
        with running(build):
            batch = FastRowMaker(cells, key, flavor=flavor).make(RowFrames(data, len(payloads)))
        assert batch is not None
        assert list(batch) == [reference.make(payload) for payload in payloads]


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.value)
def test_what_is_not_plain_is_left_to_the_reference(build: Build) -> None:
    cells = [Cell(CellForm.DECIMAL, 0, 3, 1), Cell(CellForm.COUNTED, 0, 1)]
    good = b"\0\0" + encode_packed_bytes(b"12.3") + encode_packed_bytes(b"a")
    bad = (
        b"\0\0" + encode_packed_bytes(b"123.4") + encode_packed_bytes(b"a"),
        b"\0\0" + encode_packed_bytes(b"12.x") + encode_packed_bytes(b"a"),
        b"\0\0" + encode_packed_bytes(b"12.3") + encode_packed_bytes(b"a" * 256),
        b"\x01\0" + encode_packed_bytes(b"12.3") + encode_packed_bytes(b"a"),
        *(good[:length] for length in range(len(good))),
        good + b"x",
    )
    with running(build):
        maker = FastRowMaker(cells, (), flavor=Flavor.MYSQL)
        assert maker.make(RowFrames(frame(good, 0), 1)) is not None
        for payload in bad:
            data = frame(good, 0) + frame(payload, 0)
            assert maker.make(RowFrames(data, 2)) is None, payload
