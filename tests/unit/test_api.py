from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import binlane
from binlane.binlogs.store.byte_source import FAST_BYTES_MIN
from binlane.errors import CodecError, ConfigError, StoreError
from binlane.log.kernels.load import Build, builds
from tests.fixture_sets import fixture_set
from tests.shop_log import ShopLog, Table

ORDERS = Table("orders", ("id", "state"))


@pytest.fixture
def log(tmp_path: Path) -> list[Path]:
    paths = []
    for name, data in fixture_set("md1011_rotation").binlogs:
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    return paths


def test_importing_binlane_is_light() -> None:
    program = "import binlane, sys; print('pyarrow' in sys.modules, binlane.scan is not None)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False True\n"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file large enough for the kernels, of as many rows as it has hundreds of bytes."""
    log = ShopLog()
    log.insert(ORDERS, *((number, "x" * 100) for number in range(FAST_BYTES_MIN // 100)))
    name, data = log.file()
    assert len(data) > FAST_BYTES_MIN
    path = tmp_path / name
    path.write_bytes(data)
    return path


def scanned(path: Path, modules: set[str], **environment: str) -> str:
    """What a process of its own scans: how many rows, and which of some modules it loads."""
    program = (
        "import binlane, sys; print(sum(batch.num_rows for batch in binlane.scan(sys.argv[1])), "
        f"{modules} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(Build.COMPILED not in builds(), reason="no compiler was there at set-up")
def test_scanning_a_large_log_loads_no_more_than_it_needs(large: Path) -> None:
    heavy = {"binlane.statements.sql.tokens", "sqlite3", "cryptography", "click", "rich", "numba"}
    assert scanned(large, heavy) == f"{FAST_BYTES_MIN // 100} set()\n"


def test_without_compiled_kernels_nobody_waits_for_numba(large: Path, tmp_path: Path) -> None:
    copy = tmp_path / "source"
    leave = shutil.ignore_patterns("_compiled_*", "__pycache__")
    shutil.copytree(Path(binlane.__file__).parent, copy / "binlane", ignore=leave)
    found = scanned(large, {"numba"}, PYTHONPATH=str(copy), XDG_CACHE_HOME=str(tmp_path))
    assert found == f"{FAST_BYTES_MIN // 100} set()\n"


def test_read_gives_the_groups_of_all_files(log: list[Path]) -> None:
    groups = [group for group in binlane.read(log) if not group.is_control]
    assert [str(group.gtid) for group in groups] == [f"0-1-{n}" for n in range(1, 46)]
    assert len({group.file for group in groups}) > 1


def test_scan_one_file_or_many_compressed_or_not(log: list[Path], tmp_path: Path) -> None:
    total = sum(batch.num_rows for batch in binlane.scan(log))
    assert total == 61
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(log[0].read_bytes()))
    one = sum(batch.num_rows for batch in binlane.scan(str(log[0])))
    assert sum(batch.num_rows for batch in binlane.scan(packed)) == one < total


def test_a_log_by_its_directory_or_a_pattern(log: list[Path], tmp_path: Path) -> None:
    """Its last file is read up to its last whole group: it may still be written."""
    folder = log[0].parent
    rows = sum(batch.num_rows for batch in binlane.scan(log))
    for place in (folder, folder / "binlog.0000*"):
        assert sum(batch.num_rows for batch in binlane.scan(place)) == rows
        groups = [
            [group.gtid for group in binlane.read(each) if not group.is_control]
            for each in (place, log)
        ]
        assert groups[0] == groups[1]
    with pytest.raises(StoreError, match="no such file or directory"):
        list(binlane.scan(folder / "gone"))
    live = tmp_path / "live"
    live.mkdir()
    made = ShopLog()
    for number in range(3):
        made.insert(ORDERS, (number, "new"))
    name, data = made.file()
    (live / name).write_bytes(data[:-10])
    assert sum(batch.num_rows for batch in binlane.scan(live)) == 2
    assert sum(not group.is_control for group in binlane.read(live)) == 2


def test_scan_from_here_to_there(log: list[Path]) -> None:
    head = sum(batch.num_rows for batch in binlane.scan(log, stop="0-1-20"))
    tail = sum(batch.num_rows for batch in binlane.scan(log, start="0-1-20"))
    assert head + tail == 61
    assert not list(binlane.scan(log, start=datetime(2099, 1, 1, tzinfo=UTC)))


def test_scan_some_tables_and_columns(log: list[Path]) -> None:
    assert not list(binlane.scan(log, tables="crm"))
    (batch, *_) = binlane.scan(log, tables=["shop.t"], columns=["@1"], rows_max=3)
    assert (batch.num_rows, batch.schema.names[-1]) == (3, "@1")


def test_damage_says_where(tmp_path: Path) -> None:
    path = tmp_path / "flip_body.bin"
    path.write_bytes(fixture_set("corrupt_mariadb1011").files[path.name])
    with pytest.raises(CodecError) as caught:
        list(binlane.scan(path))
    assert caught.value.file == str(path)
    assert caught.value.position


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none"):
        list(binlane.read(tmp_path / "none"))
    with pytest.raises(ConfigError, match="holds a password"):
        list(binlane.scan("mariadb://root:secret@127.0.0.1:3306"))
    with pytest.raises(AttributeError, match="no attribute 'skan'"):
        binlane.skan  # noqa: B018 - the point of the test


def test_a_large_file_is_read_as_its_parts_are(tmp_path: Path) -> None:
    log = ShopLog()
    for number in range(300):
        log.insert(ORDERS, *((100 * number + row, "x" * 100) for row in range(100)))
    name, data = log.file()
    assert len(data) > FAST_BYTES_MIN
    path = tmp_path / name
    path.write_bytes(data)
    found = list(binlane.scan([path, path], rows_max=5000))
    assert max(batch.num_rows for batch in found) <= 5000
    ids = [value for batch in found for value in batch.column("id").to_pylist()]
    assert ids == list(range(30_000)) * 2
    assert next(binlane.scan(path, columns={"id"})).schema.names[-1] == "id"
