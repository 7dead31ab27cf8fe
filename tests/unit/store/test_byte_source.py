from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from binlane.errors import CorruptStoreError, StoreError
from binlane.store.byte_source import FAST_BYTES_MIN, FileBytes, is_large

DATA = bytes(range(256)) * 20


def read(source: FileBytes, size: int) -> bytes:
    found, room = b"", bytearray(size)
    while length := source.read_into(memoryview(room)):
        found += room[:length]
    source.close()
    return found


@pytest.fixture(params=["plain", "gzip"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / "binlog.000001"
    found.write_bytes(DATA if request.param == "plain" else gzip.compress(DATA))
    return found


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_all_bytes_whatever_the_buffer(path: Path, size: int) -> None:
    assert read(FileBytes(path), size) == DATA


def test_the_same_bytes_again(path: Path) -> None:
    source = FileBytes(path)
    assert source.read_into(memoryview(bytearray(50))) == 50
    assert read(source.reread(7), 100) == DATA[7:]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        FileBytes(tmp_path / "none")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        FileBytes(tmp_path)


def test_damaged_compression(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001.gz"
    path.write_bytes(gzip.compress(DATA)[:-9])
    with pytest.raises(CorruptStoreError):
        read(FileBytes(path), 100)


def test_which_files_are_large(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(FAST_BYTES_MIN - 1))
    assert not is_large(path)
    path.write_bytes(bytes(FAST_BYTES_MIN))
    assert is_large(path)
    assert not is_large("-")
    assert not is_large(tmp_path / "none")
