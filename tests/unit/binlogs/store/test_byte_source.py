from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.binlogs.store.byte_source import FAST_BYTES_MIN, ChunkBytes, FileBytes, is_large
from binlane.errors import CorruptStoreError, StoreError, UnsupportedError
from binlane.log.codec.encryption import KeyRing
from binlane.log.grouping.decryption import plain_chunks
from tests.fixture_sets import fixture_set

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


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("name", "key_file"), [("md1011_encrypted", "keys.txt"), ("my97_encrypted", "keyring")]
)
def test_a_log_is_decrypted_from_any_position_on(
    name: str,
    key_file: str,
    pack: Callable[[bytes], bytes],
    tmp_path: Path,
) -> None:
    logs = fixture_set(name)
    keys = KeyRing.parse(logs.files[key_file])
    file, data = logs.binlogs[0]
    path = tmp_path / file
    path.write_bytes(pack(data))
    plain = b"".join(plain_chunks([data], file=file, keys=keys))
    source = FileBytes.of_log(path, keys=keys)
    for position in (0, 4, 300, len(plain) - 1, len(plain)):
        assert read(source.reread(position), 100) == plain[position:]
    with pytest.raises(UnsupportedError, match="encrypted"):
        read(FileBytes.of_log(path, keys=None), 100)


def test_a_log_that_is_not_encrypted_is_read_as_it_is(path: Path) -> None:
    assert read(FileBytes.of_log(path, keys=None), 100) == DATA


def test_pieces_of_any_size_fill_buffers() -> None:
    source, room = ChunkBytes([b"", b"ab", b"", b"cdefg"]), bytearray(3)
    found = []
    while length := source.read_into(memoryview(room)):
        found.append(bytes(room[:length]))
    assert found == [b"ab", b"cde", b"fg"]
