from __future__ import annotations

import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.binlogs.store.chunks import CHUNK_BYTES, base_name, open_chunks
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader, complete_end, read_groups
from binlane.errors import CodecError, CorruptStoreError, StoreError
from binlane.positions import GtidPosition
from tests.fixture_sets import fixture_set
from tests.groups import add, create, kill, sequences, stored, transaction

DATA = fixture_set("md1011_txn").binlogs[0][1]


@pytest.mark.parametrize(
    "name, pack",
    [("a.000001", bytes), ("a.000001.gz", gzip.compress), ("a.000001.xz", lzma.compress)],
)
def test_compressed_files_are_read_as_they_are(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(DATA))
    assert b"".join(open_chunks(path)) == DATA
    assert b"".join(open_chunks(path, position=300)) == DATA[300:]
    assert {group.file for group in read_groups([path])} == {"a.000001"}


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_damaged_compression_is_an_error(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a"
    path.write_bytes(pack(DATA)[:-20])
    with pytest.raises(CorruptStoreError, match="the compressed file is damaged"):
        list(open_chunks(path))


def test_zstd_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\0\0")
    with pytest.raises(StoreError, match="a package that is not installed") as caught:
        list(open_chunks(path))
    assert "pip install zstandard" in caught.value.hint


def test_a_binlog_of_the_same_name_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        reader = StoreReader(tmp_path)
        add(create(store), [transaction(n) for n in range(1, 5)])
        reader.files("orders")
        store.drop_binlog("orders")
        binlog = create(store, start=GtidPosition.parse("0-1-9"))
        assert reader.files("orders") == binlog.files()


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(DATA))))
    monkeypatch.setattr("sys.stdin", stdin)
    assert b"".join(open_chunks("-")) == DATA
    assert not stdin.closed


def test_large_files_come_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(2 * CHUNK_BYTES + 1))
    assert [len(chunk) for chunk in open_chunks(path)] == [CHUNK_BYTES, CHUNK_BYTES, 1]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No such file.*nothing") as caught:
        list(open_chunks(tmp_path / "nothing"))
    assert caught.value.hint


@pytest.mark.parametrize("path", ["x/a.000001", "a.000001.gz", "a.000001.zst", "/y/a.000001.xz"])
def test_base_names_have_no_compression_suffix(path: str) -> None:
    assert base_name(path) == "a.000001"


def test_damage_is_named_by_the_path_as_given(tmp_path: Path) -> None:
    path = tmp_path / "a.000001.gz"
    path.write_bytes(gzip.compress(DATA[:-3]))
    with pytest.raises(CodecError) as caught:
        list(read_groups([path]))
    assert caught.value.file == str(path)


def test_a_live_store_is_read_up_to_its_last_whole_group(tmp_path: Path) -> None:
    store = Store.open(tmp_path, StoreSettings(max_binlog_size_bytes=4096))
    binlog = create(store)
    reader = StoreReader(tmp_path)
    for n in range(1, 20):
        add(binlog, [transaction(n, size=500)])
        assert reader.files("orders") == binlog.files()
    assert len(binlog.files()) > 1
    assert reader.names() == ("orders",)
    assert reader.definitions() == {"orders": binlog.definition}
    with binlog.files()[-1].path.open("ab") as stream:
        stream.write(DATA[4:200])
    assert reader.files("orders") == StoreReader(tmp_path).files("orders") == binlog.files()
    kill(store)


def test_every_cut_of_a_live_file_ends_at_a_whole_group(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        ends = [binlog.end.position]
        for n in range(1, 4):
            add(binlog, [transaction(n)])
            ends.append(binlog.end.position)
        binlog.rotate(1)
        data = binlog.files()[0].path.read_bytes()
    path = tmp_path / "cut"
    for size in range(ends[0], len(data) + 1):
        path.write_bytes(data[:size])
        assert complete_end(path) == max(end for end in ends if end <= size)


def test_the_watermark_is_that_of_the_catalog(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        add(create(store), [transaction(3)])
    assert StoreReader(tmp_path).watermark("orders") == GtidPosition.parse("0-1-3")
    assert sequences(stored([f.path for f in StoreReader(tmp_path).files("orders")])) == [3]


def test_what_is_not_there_is_an_error_that_says_what_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no binlane store"):
        StoreReader(tmp_path)
    with Store.open(tmp_path) as store:
        create(store)
        with pytest.raises(StoreError, match="unknown binlog x; the binlogs are: orders"):
            StoreReader(tmp_path).files("x")
