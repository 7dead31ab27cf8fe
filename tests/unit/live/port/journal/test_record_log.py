"""Files of records: cut off, damaged, read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import CorruptStoreError
from binlane.live.port.journal.record_log import RecordLog, RecordPlace

FILE_BYTES = 1 << 20


def written(folder: Path) -> RecordLog:
    log = RecordLog(folder, "x", FILE_BYTES)
    log.begin_file()
    return log


def bodies(folder: Path) -> list[bytes]:
    log = RecordLog(folder, "x", FILE_BYTES)
    return [record.body for number in log.sizes for record in log.records(number)]


def test_a_file_cut_off_anywhere_has_the_records_before(tmp_path: Path) -> None:
    log = written(tmp_path)
    records = [b"", b"one", bytes(40), b"\xff" * 7]
    ends = []
    for record in records:
        log.append(1, record)
        ends.append(log.current_bytes)
    log.close()
    path = log.path(1)
    data = path.read_bytes()
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        count = sum(end <= length for end in ends)
        assert bodies(tmp_path) == records[:count]


def test_a_damaged_byte_ends_what_is_read(tmp_path: Path) -> None:
    log = written(tmp_path)
    records = [b"one", b"two", b"three"]
    places = [log.append(1, record) for record in records]
    log.close()
    path = log.path(1)
    data = path.read_bytes()
    for offset in range(len(data)):
        damaged = bytearray(data)
        damaged[offset] ^= 0x41
        path.write_bytes(damaged)
        whole = sum(place.offset <= offset for place in places) - 1
        assert bodies(tmp_path) == records[:whole]
        with pytest.raises(CorruptStoreError):
            RecordLog(tmp_path, "x", FILE_BYTES).read(places[whole])


def test_zeros_are_no_records(tmp_path: Path) -> None:
    log = written(tmp_path)
    log.append(1, b"one")
    log.close()
    with log.path(1).open("ab") as file:
        file.write(bytes(64))
    assert bodies(tmp_path) == [b"one"]


def test_a_record_is_read_only_where_it_was_written(tmp_path: Path) -> None:
    log = written(tmp_path)
    place = log.append(1, b"one")
    assert log.read(place) == (1, b"one")
    with pytest.raises(CorruptStoreError):
        log.read(RecordPlace(place.file, place.offset, place.checksum ^ 1))


@pytest.mark.parametrize("length", [0, 1, 4086, 4087, 4088, 100_000])
def test_a_record_of_any_length_is_read_again(tmp_path: Path, length: int) -> None:
    log = written(tmp_path)
    places = [log.append(3, bytes(length)) for _ in range(3)]
    assert [log.read(place) for place in places] == [(3, bytes(length))] * 3


def test_a_log_that_was_not_closed_ends_with_its_last_record(tmp_path: Path) -> None:
    log = written(tmp_path)
    records = [bytes((number,)) * 50_000 for number in range(1, 12)]
    places = [log.append(1, record) for record in records]
    assert log.path(1).stat().st_size > log.current_bytes
    again = RecordLog(tmp_path, "x", FILE_BYTES)
    assert [record.body for record in again.records(1)] == records
    assert [again.read(place)[1] for place in places] == records
    assert not again.damage
    log.close()
    assert log.path(1).stat().st_size == log.current_bytes
