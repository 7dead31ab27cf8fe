"""Damaged files: both paths end at the same place, with the same words, behind the same groups."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from binlane.errors import BinlaneError
from binlane.log.codec.event import checksum
from binlane.log.kernels.load import is_compiled
from tests.routed_files import outputs, routed, written

_SCOPES = ("LOG ALL", "LOG(shop.t)", "IGNORE(shop.t)")
_HEADER = 19

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def told(path: str, out: Path, *, fast: bool) -> tuple[object, ...]:
    """What a run makes and says."""
    try:
        report = routed((path,), out, *_SCOPES, uses_kernels=fast)
    except BinlaneError as error:
        return type(error), str(error), out.exists()
    return outputs(out), report.counts, report.notes, str(report.fault)


def flipped(data: bytes, chance: random.Random) -> bytes:
    """With one byte changed."""
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def sealed(data: bytes, chance: random.Random) -> bytes:
    """With one byte of an event's body changed, and the checksum right again."""
    changed = bytearray(data)
    starts, at = [], 4
    while at + _HEADER <= len(data):
        starts.append(at)
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    start = chance.choice(starts[1:])
    end = start + int.from_bytes(data[start + 9 : start + 13], "little") - 4
    if end > start + _HEADER:
        changed[chance.randrange(start + _HEADER, end)] ^= 1 << chance.randrange(8)
    changed[end : end + 4] = checksum(bytes(changed[start:end])).to_bytes(4, "little")
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    """Cut anywhere."""
    return data[: chance.randrange(len(data))]


def without_a_piece(data: bytes, chance: random.Random) -> bytes:
    """With some bytes missing in the middle."""
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(200) :]


@pytest.mark.parametrize("damage", [flipped, sealed, cut, without_a_piece])
@pytest.mark.parametrize(
    "name",
    [
        "md1011_format_row",
        "md118_txn",
        "my97_txn",
        "my97_rows_query",
        "md1011_compressed_minimal",
        "my97_compressed",
        "md1011_compressed",
        "md1011_xa",
        "md1011_format_statement",
    ],
)
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 300), marks=pytest.mark.slow)])
def test_both_paths_say_the_same(name: str, damage: object, seeds: range, tmp_path: Path) -> None:
    assert callable(damage)
    (path, *_) = written(name, tmp_path / "in")
    whole = Path(path).read_bytes()
    for seed in seeds:
        Path(path).write_bytes(damage(whole, random.Random(seed)))
        fast = told(path, tmp_path / f"fast{seed}", fast=True)
        assert fast == told(path, tmp_path / f"slow{seed}", fast=False)


def with_types(data: bytes, type_code: int, changed: int) -> bytes:
    """With the last event of a type called another, and the checksum right again."""
    damaged = bytearray(data)
    starts, at = [], 4
    while at + _HEADER <= len(data):
        if data[at + 4] == type_code:
            starts.append(at)
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    start = starts[-1]
    end = start + int.from_bytes(data[start + 9 : start + 13], "little") - 4
    damaged[start + 4] = changed
    damaged[end : end + 4] = checksum(bytes(damaged[start:end])).to_bytes(4, "little")
    return bytes(damaged)


@pytest.mark.parametrize(
    "name, type_code, changed, said",
    [
        ("my97_gtid_tagged", 42, 162, "GTID stands in a file of MySQL"),
        ("my97_txn", 35, 163, "GTID_LIST stands in a file of MySQL"),
        ("md1011_txn", 163, 35, ""),
        ("md1011_txn", 162, 33, ""),
    ],
)
def test_gtids_of_the_other_flavor_are_damage(
    name: str, type_code: int, changed: int, said: str, tmp_path: Path
) -> None:
    (path, *_) = written(name, tmp_path / "in")
    Path(path).write_bytes(with_types(Path(path).read_bytes(), type_code, changed))
    fast = told(path, tmp_path / "fast", fast=True)
    assert said in str(fast[-1])
    assert "binlog.000001:" in str(fast[-1])
    assert fast == told(path, tmp_path / "slow", fast=False)


@pytest.mark.parametrize(
    "name, seed", [("md1011_txn", 2081), ("my97_txn", 2073), ("my97_gtid", 2143)]
)
def test_a_statement_without_its_end_concerns_the_binlogs_of_its_tables(
    name: str, seed: int, tmp_path: Path
) -> None:
    (path, *_) = written(name, tmp_path / "in")
    Path(path).write_bytes(sealed(Path(path).read_bytes(), random.Random(seed)))
    slow = told(path, tmp_path / "slow", fast=False)
    assert slow == told(path, tmp_path / "fast", fast=True)
    incidents = [bool(counts.incidents) for counts in slow[1].values()]  # type: ignore[attr-defined]
    assert any(incidents)
    assert not all(incidents)
