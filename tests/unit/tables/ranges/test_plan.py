"""What a planner tells to read, and what it refuses."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from binlane.errors import StoreError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import decode_event, encode_event
from binlane.log.codec.format import MAGIC
from binlane.positions import FilePosition, GtidPosition, parse_position
from binlane.tables.ranges.cutting import RANGE_BYTES_MIN, Cuts, Part
from binlane.tables.ranges.log_range import Limits, LogRange, Offset
from binlane.tables.ranges.planner import Planner, PlanOptions
from binlane.tables.ranges.stored_files import read_groups_of
from tests import build
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))
FINE = PlanOptions(piece_bytes=1)
PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def write(log: Path, number: int, groups: int, *, rows: int = 2, width: int = 3) -> int:
    """Write a file of so many transactions; give its size."""
    made = ShopLog()
    for group in range(groups):
        made.insert(ORDERS, *((group * rows + row, "n" * width) for row in range(rows)))
    name, data = made.file(f"shop.{number:06}")
    return (log / name).write_bytes(data)


def write_large(log: Path, number: int, size_bytes: int) -> int:
    """Write a file of at least so many bytes."""
    made = ShopLog()
    images = ORDERS.image((1, "n" * 50)) * 8000
    for _ in range(size_bytes // len(images) + 1):
        made.insert(ORDERS)
        *_, _, xid = made.bodies
        made.bodies[-2:] = [build.rows(len(ORDERS.columns), images), xid]
    name, data = made.file(f"shop.{number:06}")
    return (log / name).write_bytes(data)


def all_ranges(planner: Planner) -> list[LogRange]:
    """All that a planner finds, in log order."""
    return [piece for part in planner.all_parts(Cuts()) for piece in part]


def groups_of(pieces: list[LogRange]) -> list[tuple[str, int]]:
    """File and position of each group of some ranges."""
    return [
        (group.file, group.position)
        for piece in pieces
        for group in read_groups_of(piece)
        if not group.is_control
    ]


def size_of(piece: LogRange) -> int:
    """Bytes of a range."""
    assert piece.stop is not None
    return piece.stop - piece.start


def of_another_server(path: Path) -> None:
    """Let a file be one that another server wrote."""
    data = path.read_bytes()
    first = decode_event(data[len(MAGIC) :][: _length(data)], None, position=len(MAGIC))
    assert isinstance(first.body, FormatDescriptionEvent)
    other = replace(first, header=replace(first.header, server_id=77))
    path.write_bytes(MAGIC + encode_event(other, None) + data[len(MAGIC) + _length(data) :])


def _length(data: bytes) -> int:
    return int.from_bytes(data[13:17], "little")


def bytes_read() -> int:
    """All that this process has read by now."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def test_all_that_there_is(log: Path) -> None:
    write(log, 1, 3)
    size = write(log, 2, 2)
    planner = Planner(str(log))
    begin, end = planner.begin(), planner.end()
    assert (begin.file, begin.position, begin.gtids) == ("shop.000001", 4, None)
    assert (end.file, end.position) == ("shop.000002", size)
    pieces = planner.ranges(begin, end)
    assert [piece.name for piece in pieces] == ["shop.000001", "shop.000002"]
    assert len(groups_of(pieces)) == 5
    assert planner.ranges(end, end) == []
    assert planner.end(end) == end


def test_an_offset_is_json_and_comes_back() -> None:
    offset = Offset(file="a.000001", position=7, fingerprint="ab", gtids="0-1-5", server_id=3)
    assert Offset.parse(offset.json()) == offset
    old = Offset.parse({"file": "a.000001", "position": "7", "fingerprint": "ab"})
    assert old == Offset(file="a.000001", position=7, fingerprint="ab")


def test_gtids_are_those_that_the_servers_log_has_done(tmp_path: Path) -> None:
    for name, gtids in (("md1011_rotation", "0-1-"), ("my97_rotation", ":1-")):
        folder = tmp_path / name
        folder.mkdir()
        for file, data in fixture_set(name).binlogs:
            (folder / file).write_bytes(data)
        planner = Planner(str(folder))
        end = planner.end()
        groups = groups_of(planner.ranges(planner.begin(), end))
        assert end.gtids is not None
        assert gtids in end.gtids, name
        assert end.gtids.replace(":1-", "-").rpartition("-")[2] == str(len(groups))
        assert end.server_id == 1


@pytest.mark.parametrize("limit", [1, 200, 700, 10**6])
def test_bytes_are_limited_over_files(limit: int, log: Path) -> None:
    for number, groups in ((1, 5), (2, 1), (3, 4)):
        write(log, number, groups)
    planner = Planner(str(log))
    offset, found, batches = planner.begin(), [], 0
    while (end := planner.next(offset, Limits(size_bytes=limit))) != offset:
        pieces = planner.ranges(offset, end)
        part = groups_of(pieces)
        assert len(part) == 1 or sum(map(size_of, pieces)) <= limit
        found += part
        offset, batches = end, batches + 1
    assert found == groups_of(all_ranges(planner))
    assert len(found) == 10
    assert batches == {1: 10, 200: 10, 700: 5, 10**6: 1}[limit]


@pytest.mark.parametrize("options", [FINE, PlanOptions(piece_bytes=600), PlanOptions()])
def test_groups_and_rows_are_limited_over_files(options: PlanOptions, log: Path) -> None:
    for number, groups in ((1, 5), (2, 1), (3, 4)):
        write(log, number, groups)
    for limits, expected in (
        (Limits(groups=3), [3, 3, 3, 1]),
        (Limits(groups=20), [10]),
        (Limits(rows=5), [3, 3, 3, 1]),
        (Limits(rows=4, groups=4), [2, 2, 2, 2, 2]),
    ):
        planner = Planner(str(log), options)
        offset, sizes = planner.begin(), []
        while (end := planner.next(offset, limits)) != offset:
            sizes.append(len(groups_of(planner.ranges(offset, end))))
            offset = end
        assert sizes == expected


def test_nothing_is_taken_beyond_what_is_asked_for(log: Path) -> None:
    write(log, 1, 2)
    planner = Planner(str(log))
    target = planner.end()
    write(log, 1, 5)
    write(log, 2, 5)
    assert planner.next(planner.begin(), Limits(), end=target) == target
    assert planner.next(planner.begin(), Limits(groups=9), end=target).place == target.place


@pytest.mark.parametrize("cut", [1, 10, 18, 19, 60, 100])
def test_what_is_not_whole_is_not_there_yet(cut: int, log: Path) -> None:
    whole = write(log, 1, 2)
    write(log, 1, 3)
    path = log / "shop.000001"
    path.write_bytes(path.read_bytes()[: whole + cut])
    planner = Planner(str(log))
    end = planner.end()
    assert end.position == whole
    assert len(groups_of(planner.ranges(planner.begin(), end))) == 2


@pytest.mark.parametrize("size", [0, 2, 4, 30])
def test_a_file_that_its_server_is_making_is_not_there_yet(size: int, log: Path) -> None:
    whole = write(log, 1, 2)
    write(log, 2, 1)
    path = log / "shop.000002"
    path.write_bytes(path.read_bytes()[:size])
    planner = Planner(str(log))
    end = planner.end()
    assert (end.file, end.position) == ("shop.000001", whole)
    assert planner.end(end) == end


def test_ranges_are_as_many_as_cores_and_not_too_small(log: Path) -> None:
    size = write_large(log, 1, 20 << 20)
    write_large(log, 2, 9 << 20)
    planner = Planner(str(log))
    begin, end = planner.begin(), planner.end()
    whole = groups_of(planner.ranges(begin, end, size_bytes=1 << 40))
    for cores, size_bytes, counts in (
        (1, 64 << 20, range(2, 3)),
        (2, 64 << 20, range(2, 4)),
        (4, 64 << 20, range(4, 6)),
        (100, 64 << 20, range(7, 10)),
        (1, 6 << 20, range(5, 8)),
    ):
        pieces = planner.ranges(begin, end, cores=cores, size_bytes=size_bytes)
        assert len(pieces) in counts, (cores, size_bytes)
        assert groups_of(pieces) == whole
    first = [piece for piece in pieces if piece.number == 1]
    assert (first[0].start, first[-1].stop) == (4, size)


def sizes_of(parts: list[Part]) -> list[int]:
    return [sum((piece.stop or 0) - piece.start for piece in part) for part in parts]


def test_parts_are_as_many_as_cores_need_and_of_one_size(log: Path) -> None:
    total = sum(write_large(log, number, size << 20) for number, size in ((1, 20), (2, 9), (3, 1)))
    planner = Planner(str(log))
    begin, end = planner.begin(), planner.end()
    whole = groups_of(planner.ranges(begin, end))
    for cores, size_bytes, count in (
        (1, 64 << 20, 1),
        (2, 64 << 20, 2),
        (4, 64 << 20, 4),
        (100, 64 << 20, total // RANGE_BYTES_MIN),
        (1, 11 << 20, 3),
        (2, 11 << 20, 4),  # three would keep one core waiting for the other
        (2, 17 << 20, 2),
        (6, 4 << 20, total // RANGE_BYTES_MIN + 1),  # twice as many as cores would be too small
    ):
        cuts = Cuts(size_bytes=size_bytes, cores=cores)
        parts = planner.parts(begin, end, cuts)
        assert len(parts) == count, (cores, size_bytes)
        assert groups_of([piece for part in parts for piece in part]) == whole
        # Cuts lie between pieces of 2 MiB and a transaction: both ends of a part may move.
        assert max(sizes_of(parts)) - min(sizes_of(parts)) <= 6 << 20
        assert sizes_of(planner.all_parts(cuts)) == sizes_of(parts)
    assert planner.parts(end, end, Cuts(cores=2)) == []


def test_small_files_share_a_part(log: Path) -> None:
    for number in range(1, 41):
        write(log, number, 3)
    planner = Planner(str(log))
    (part,) = planner.all_parts(Cuts(cores=2))
    assert [piece.number for piece in part] == list(range(1, 41))
    assert len(groups_of(list(part))) == 120
    parts = planner.all_parts(Cuts(size_bytes=sum(sizes_of([part])) // 4, cores=2))
    assert sizes_of(parts) == [sizes_of([part])[0] // 4] * 4


def test_files_that_are_read_from_their_beginning_are_not_cut(log: Path) -> None:
    for number in (1, 2, 3):
        write_large(log, number, 9 << 20)
        path = log / f"shop.{number:06}"
        path.with_suffix(f"{path.suffix}.zst").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    planner = Planner(str(log))
    for cores, numbers in ((1, [[1, 2, 3]]), (3, [[1], [2], [3]]), (4, [[1], [2], [3]])):
        parts = planner.all_parts(Cuts(cores=cores))
        assert [[piece.number for piece in part] for part in parts] == numbers


def test_a_start_with_nothing_new_reads_nothing_of_a_large_file(log: Path) -> None:
    write_large(log, 1, 30 << 20)
    end = Planner(str(log)).end()
    before = bytes_read()
    planner = Planner(str(log))
    assert planner.end(end).place == end.place
    assert planner.ranges(end, end) == []
    assert bytes_read() - before < 200_000


def test_a_batch_reads_only_what_lies_before_its_end(log: Path) -> None:
    write_large(log, 1, 30 << 20)
    planner = Planner(str(log))
    begin, end = planner.begin(), Offset(file="shop.000001", position=30 << 20)
    before = bytes_read()
    found = planner.next(begin, Limits(size_bytes=4 << 20), end=end)
    assert 3 << 20 <= found.position <= 4 << 20
    assert len(planner.ranges(begin, found)) == 1
    assert bytes_read() - before < 12 << 20


def refused(log: Path, offset: Offset) -> StoreError:
    """What a new planner says of an offset."""
    planner = Planner(str(log))
    with pytest.raises(StoreError) as caught:
        planner.end(offset)
    with pytest.raises(StoreError) as again:
        planner.ranges(offset, offset)
    assert str(again.value) == str(caught.value)
    assert caught.value.hint
    return caught.value


def test_a_reset_log_is_told(log: Path) -> None:
    write(log, 1, 3)
    offset = Planner(str(log)).end()
    (log / "shop.000001").write_bytes(fixture_set("md118_txn").binlogs[0][1])
    error = refused(log, offset)
    assert "shop.000001 is not the file any more" in str(error)
    assert "RESET MASTER" in error.hint


def test_a_file_written_anew_within_the_same_second_is_told(log: Path) -> None:
    write(log, 1, 3)
    offset = Planner(str(log)).end()
    write(log, 1, 9, width=4)
    assert "another event ends there" in str(refused(log, offset))


def test_numbers_that_begin_anew_are_told(log: Path) -> None:
    write(log, 7, 3)
    offset = Planner(str(log)).end()
    (log / "shop.000007").rename(log / "shop.000001")
    error = refused(log, offset)
    assert "no longer holds shop.000007:" in str(error)
    assert "its files were numbered anew" in str(error)


def test_another_servers_log_of_the_same_name_is_told(log: Path) -> None:
    write(log, 1, 3)
    offset = Planner(str(log)).end()
    of_another_server(log / "shop.000001")
    error = refused(log, offset)
    assert "server 77 wrote it" in str(error)
    assert "failover" in str(error)
    assert "GTID" in error.hint


def test_another_log_is_told(log: Path) -> None:
    write(log, 1, 3)
    offset = Planner(str(log)).end()
    (log / "shop.000001").rename(log / "mysql-bin.000001")
    assert "this is another log" in str(refused(log, offset))


def test_a_file_that_became_shorter_is_told(log: Path) -> None:
    write(log, 1, 3)
    offset = Planner(str(log)).end()
    size = write(log, 1, 2)
    assert f"shop.000001 ends at {size}; this reader stands at {offset.position}" in str(
        refused(log, offset)
    )


def test_a_purged_file_is_told(log: Path) -> None:
    write(log, 1, 1)
    offset = Planner(str(log)).end()
    write(log, 2, 1)
    (log / "shop.000001").unlink()
    assert "begins with shop.000002: the file was purged" in str(refused(log, offset))


def test_a_gap_is_told(log: Path) -> None:
    write(log, 1, 1)
    offset = Planner(str(log)).end()
    write(log, 3, 1)
    assert "missing between shop.000001 and shop.000003" in str(refused(log, offset))
    write(log, 2, 1)
    offset = Planner(str(log)).next(offset, Limits(groups=1))
    assert offset.file == "shop.000002"
    (log / "shop.000002").unlink()
    assert "the file is missing between them" in str(refused(log, offset))


def test_damage_is_read_so_that_it_is_told(log: Path) -> None:
    write(log, 1, 9)
    path = log / "shop.000001"
    data = bytearray(path.read_bytes())
    fourth = groups_of(all_ranges(Planner(str(log))))[3][1]
    data[fourth + 9] ^= 0x40
    path.write_bytes(data)
    planner = Planner(str(log))
    begin, end = planner.begin(), planner.end()
    assert end.position == len(data)
    pieces = planner.ranges(begin, end)
    with pytest.raises(Exception, match=rf"shop\.000001:{fourth}"):
        groups_of(pieces)


@pytest.mark.parametrize("name", ["md1011_encrypted", "my97_encrypted"])
def test_encrypted_files(name: str, tmp_path: Path) -> None:
    made = fixture_set(name)
    log = tmp_path / "log"
    log.mkdir()
    keys = tmp_path / "keys"
    keys.write_bytes(made.files["keys.txt" if "keys.txt" in made else "keyring"])
    for file, data in made.binlogs:
        (log / file).write_bytes(data)
    options = PlanOptions(keys=str(keys), piece_bytes=1)
    planner = Planner(str(log), options)
    begin, end = planner.begin(), planner.end()
    pieces = planner.ranges(begin, end, cores=4)
    assert len(pieces) == len(made.binlogs), "such a file is one range"
    plain = tmp_path / "plain"
    plain.mkdir()
    for file, _ in made.binlogs:
        (plain / file).write_bytes(made.files[f"{file}.decrypted"])
    assert groups_of(pieces) == groups_of(all_ranges(Planner(str(plain))))
    assert planner.ranges(end, end) == []


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_files_are_read_whole(suffix: str, log: Path) -> None:
    write(log, 1, 9)
    write(log, 2, 2)
    write(log, 3, 3)
    whole = groups_of(all_ranges(Planner(str(log))))
    for number in (1, 2):
        path = log / f"shop.00000{number}"
        (log / (path.name + suffix)).write_bytes(PACKED[suffix](path.read_bytes()))
        path.unlink()
    planner = Planner(str(log), FINE)
    pieces = planner.ranges(planner.begin(), planner.end(), cores=8)
    assert [piece.number for piece in pieces] == [1, 2, 3]
    assert groups_of(pieces) == whole
    offset, found = planner.begin(), []
    while (end := planner.next(offset, Limits(groups=4))) != offset:
        found += groups_of(planner.ranges(offset, end))
        offset = end
    assert found == whole


@pytest.mark.parametrize("name", ["md1011_rotation", "my97_rotation"])
def test_a_start_is_found_without_reading_what_lies_before_it(name: str, tmp_path: Path) -> None:
    for file, data in fixture_set(name).binlogs:
        (tmp_path / file).write_bytes(data)
    planner = Planner(str(tmp_path), FINE)
    begin, end = planner.begin(), planner.end()
    offset = begin
    while (after := planner.next(offset, Limits(groups=1))) != offset:
        if after.gtids:
            flavor = "mysql" if name.startswith("my") else "mariadb"
            found = planner.begin(parse_position(after.gtids, flavor))
            left = groups_of(planner.ranges(found, end))
            assert left[: len(left)] == groups_of(planner.ranges(after, end)), after
            at = planner.begin(FilePosition(after.file, after.position))
            assert at.place == after.place
        offset = after
    assert offset == end


def test_a_gtid_position_whose_rest_is_purged_is_told(tmp_path: Path) -> None:
    first, *rest = fixture_set("md1011_rotation").binlogs
    for file, data in rest:
        (tmp_path / file).write_bytes(data)
    with pytest.raises(StoreError, match=rf"not in the log any more: it begins with {rest[0][0]}"):
        Planner(str(tmp_path)).begin(GtidPosition.parse(""))
    assert first[0] < rest[0][0]
