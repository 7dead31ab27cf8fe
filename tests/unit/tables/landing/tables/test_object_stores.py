"""Tables of every format in S3, and who may write them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from binlane.errors import ConfigError, StoreLockedError
from binlane.names import TableName
from binlane.tables.landing import lease as lease_module
from binlane.tables.landing.lease import Lease
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from tests.runs import TABLE, images, merge, run_of, schema_of

ORDERS = schema_of(id=pa.int64(), state=pa.string())
OTHER = TableName("shop", "sp ace")
READ_FEED = """
import sys, pyarrow, deltalake
feed = deltalake.DeltaTable(sys.argv[1]).load_cdf(starting_version=2).read_all()
print(*sorted(pyarrow.table(feed).column("_change_type").to_pylist()))
"""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    store = fs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
    )
    store.create_dir("tables")
    yield f"http://{host}:{port}"
    server.stop()


@pytest.mark.parametrize(
    "table_format",
    [
        FormatName.DELTA,
        FormatName.PARQUET,
        pytest.param(FormatName.ICEBERG, marks=pytest.mark.slow),
    ],
)
def test_tables_in_an_object_store(table_format: FormatName, endpoint: str, tmp_path: Path) -> None:
    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": "s3://tables/any",
        "s3.endpoint": endpoint,
    }
    keeping = TableStoreSettings(
        run_id="run", catalog=catalog, feed=table_format is FormatName.DELTA
    )

    def opened() -> TableStore:
        into = f"s3://tables/{table_format.value}"
        return open_store(into, Mode.CURRENT, table_format, "app", keeping)

    first = images(ORDERS, [("insert", (1, "a")), ("insert", (2, "b"))], 1)
    merge(opened(), [run_of(tmp_path, first, ["id"])], ["id"], 2)
    second = images(ORDERS, [("delete", (1, "a")), ("insert", (3, "c"))], 3)
    merge(opened(), [run_of(tmp_path, second, ["id"])], ["id"], 4)
    if table_format is FormatName.DELTA:
        # Another process: while it reads a feed, delta-rs lets no thread of Python run.
        command = [sys.executable, "-c", READ_FEED, opened().uri(TABLE)]
        read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert read.stdout.split() == ["delete", "insert"]
    opened().rename(TABLE, OTHER)
    store = opened()
    assert (store.names(), store.applied(OTHER)) == ([OTHER], 4)
    assert store.vacuum(OTHER, 0) >= 0
    assert sorted(row["id"] for row in opened().read(OTHER).to_pylist()) == [2, 3]
    opened().drop(OTHER)
    assert opened().names() == []


def test_a_feed_needs_what_writes_a_file_once(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    keeping = TableStoreSettings(run_id="run", feed=True)
    with pytest.raises(ConfigError, match="needs obstore") as caught:
        open_store("s3://tables/x", Mode.CURRENT, FormatName.DELTA, "app", keeping)
    assert caught.value.hint == "pip install 'binlane[delta]'"


def test_one_driver_holds_a_target_in_an_object_store(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it writes all the time that it lives, in files of other lengths."""
    monkeypatch.setattr(lease_module, "RENEWED_S", 0.0)
    into = "s3://tables/held"
    first = Lease.take(into)
    for _ in range(5):
        with pytest.raises(StoreLockedError, match="lands here since"):
            Lease.take(into)
    first.check()
    with Lease.take(into, is_taking_over=True) as second:
        with pytest.raises(StoreLockedError, match="has taken over"):
            first.check()
        first.release()
        second.check()
    Lease.take(into).release()


def test_who_was_taken_over_holds_nothing_even_if_it_writes_its_file_once_more(
    tmp_path: Path,
) -> None:
    first = Lease.take(str(tmp_path))
    (file,) = tmp_path.rglob("lease/*.json")
    content = file.read_bytes()
    second = Lease.take(str(tmp_path), is_taking_over=True)
    file.write_bytes(content)
    with pytest.raises(StoreLockedError, match="lands here since"):
        Lease.take(str(tmp_path))
    second.release()
    file.write_bytes(content)
    Lease.take(str(tmp_path)).release()
    first.release()
