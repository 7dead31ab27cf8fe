from __future__ import annotations

import gzip
import lzma
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from binlane.binlogs.store.catalog import Catalog
from binlane.binlogs.store.chunks import read_keys
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import CheckCounts, verify
from tests.fixture_sets import fixture_set, server_sets
from tests.groups import add, create, kill, transaction

# Servers that were killed, were still running, or wrote what cannot be read without a key.
_FAULTY = {
    "md1011_crash_inuse",
    "md1011_live_copy",
    "md1011_encrypted",
    "md1011_netstream",
    "my97_encrypted",
}
_BROKEN = fixture_set("corrupt_mysql97")
_DAMAGED = [
    (name, file)
    for name in ("corrupt_mariadb1011", "corrupt_mysql97")
    for file, _ in fixture_set(name).binlogs
]


@pytest.fixture
def store_dir(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "data", StoreSettings(max_binlog_size_bytes=4096)) as store:
        add(create(store), [transaction(n, size=700) for n in range(1, 16)])
    return tmp_path / "data"


def faults(path: Path) -> list[str]:
    return [str(fault).removeprefix(f"{path}/") for fault in verify([path])]


@pytest.mark.parametrize("name", sorted({*server_sets()} - _FAULTY))
def test_logs_of_real_servers_have_no_faults(tmp_path: Path, name: str) -> None:
    paths = []
    for file, data in fixture_set(name).binlogs:
        paths.append(tmp_path / file)
        paths[-1].write_bytes(data)
    assert [str(fault) for fault in verify(paths)] == []


@pytest.mark.parametrize(
    ("name", "key_file"), [("md1011_encrypted", "keys.txt"), ("my97_encrypted", "keyring")]
)
def test_encrypted_logs_have_no_faults_with_their_keys(
    tmp_path: Path, name: str, key_file: str
) -> None:
    fixture = fixture_set(name)
    paths = []
    for file, data in fixture.binlogs:
        paths.append(tmp_path / file)
        paths[-1].write_bytes(data)
    (tmp_path / key_file).write_bytes(fixture.files[key_file])
    assert list(verify(paths, keys=read_keys(tmp_path / key_file))) == []
    assert all("encrypted by" in fault.what for fault in verify(paths))


@pytest.mark.parametrize(("fixture", "name"), _DAMAGED)
def test_damage_is_found_where_it_is(tmp_path: Path, fixture: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(fixture_set(fixture).files[name])
    found = list(verify([path]))
    error = fixture_set(fixture).expected["files"][name]["error"] or ""
    assert bool(found) == (name != "ok.bin")
    place = error.rpartition(" at ")[2] if " at " in error else ""
    if place.isdigit():
        assert found[0].position == int(place), found


def test_a_whole_store_has_no_faults(store_dir: Path) -> None:
    assert faults(store_dir) == []
    assert faults(store_dir / "binlogs/orders") == []


def test_a_store_that_is_being_written_has_none_either(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    add(binlog := create(store), [transaction(1)])
    with binlog.files()[-1].path.open("ab") as stream:
        stream.write(b"\x01\x02\x03")
    assert faults(tmp_path) == []
    kill(store)


def test_a_missing_file_is_found(store_dir: Path) -> None:
    (store_dir / "binlogs/orders/orders.000002").unlink()
    text = "\n".join(faults(store_dir))
    assert "orders.index:0: the index names orders.000002, which is missing" in text
    assert "ROTATE names orders.000002; orders.000003 follows" in text


def test_a_group_that_comes_twice_is_found(store_dir: Path) -> None:
    directory = store_dir / "binlogs/orders"
    (directory / "orders.000003").write_bytes((directory / "orders.000002").read_bytes())
    found = faults(store_dir)
    assert any("GTID_LIST says" in fault for fault in found)
    assert any("is not after" in fault for fault in found)


def test_a_watermark_that_is_too_small_is_found(store_dir: Path) -> None:
    connection = sqlite3.connect(Catalog.path_in(store_dir))
    with connection:
        connection.execute("UPDATE binlogs SET watermark = '0-1-14'")
    connection.close()
    (fault,) = faults(store_dir)
    assert fault.endswith("GTID 0-1-15 is here, but the watermark 0-1-14 is before it")


def test_a_watermark_covers_files_by_their_numbers(store_dir: Path) -> None:
    directory = store_dir / "binlogs/orders"
    names = sorted(path.name for path in directory.glob("orders.0*"))
    last, before = names[-1], names[-2]
    renamed = {last: "orders.1000000", before: "orders.999999"}
    for old, new in renamed.items():
        (directory / old).rename(directory / new)
    index = "".join(f"./{renamed.get(name, name)}\n" for name in names)
    (directory / "orders.index").write_text(index)
    connection = sqlite3.connect(Catalog.path_in(store_dir))
    with connection:
        connection.execute("UPDATE binlogs SET end_file = 'orders.1000000', watermark = '0-1-1'")
    connection.close()
    late = [fault for fault in faults(store_dir) if "but the watermark 0-1-1" in fault]
    assert len(late) == 14
    assert any("orders.999999" in fault for fault in late)
    assert any("orders.1000000" in fault for fault in late)


def test_damage_at_the_end_of_a_live_file_is_no_cut(tmp_path: Path) -> None:
    directory = tmp_path / "b"
    directory.mkdir()
    (directory / "b.index").write_text("./b.000001\n")
    data = _BROKEN.files["payload_broken.bin"]
    carrier = 1404
    end = carrier + int.from_bytes(data[carrier + 9 : carrier + 13], "little")
    (directory / "b.000001").write_bytes(data[:end])
    (fault,) = faults(directory)
    assert "b.000001:1404: the payload is broken" in fault


def test_binlogs_side_by_side_are_all_looked_at(store_dir: Path) -> None:
    binlogs = store_dir / "binlogs"
    assert faults(binlogs) == []
    (binlogs / "orders/orders.000001").write_bytes(b"nothing")
    assert [fault.partition(": ")[0] for fault in faults(binlogs)][:1] == ["orders/orders.000001:0"]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, ZstdCompressor().compress])
def test_compressed_files_are_looked_at(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    ((name, data),) = fixture_set("md1011_txn").binlogs
    path = tmp_path / f"{name}.gz"
    packed = compress(data)
    path.write_bytes(packed)
    tally = CheckCounts()
    assert list(verify([path], tally=tally)) == []
    assert (tally.files, tally.size_bytes) == (1, len(data))
    path.write_bytes(packed[: len(packed) // 2])
    (fault,) = verify([path])
    assert "the compressed file is damaged" in fault.what


def test_synced_bytes_that_are_gone_are_found(store_dir: Path) -> None:
    path = max((store_dir / "binlogs/orders").glob("orders.0*"))
    path.write_bytes(path.read_bytes()[:-10])
    assert any("it was on disk up to" in fault for fault in faults(store_dir))


def test_strangers_are_found(store_dir: Path) -> None:
    (store_dir / "binlogs/other").mkdir()
    (store_dir / "binlogs/orders/notes").write_text("")
    assert faults(store_dir) == [
        "binlogs/orders/notes:0: the index does not name this file",
        "binlogs/other:0: no definition is stored for this binlog",
    ]


def test_a_directory_without_binlogs_is_a_fault(tmp_path: Path) -> None:
    (fault,) = verify([tmp_path])
    assert str(fault) == f"{tmp_path}:0: neither a data directory nor a binlog's directory"
