"""`serve` copies closed files to object storage, and whoever reads ranges reads them there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from binlane.tables.ranges.filesystems import child, listed, opened
from binlane.tables.ranges.planner import Planner
from tests.serve_process import ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, execute
from tests.unit.tables.ranges.test_plan import all_ranges, groups_of

ACCOUNT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    server.stop()


def metric(serve: ServeProcess, name: str) -> list[str]:
    lines = serve.get("/metrics")[1].splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(f"binlane_{name}")]


def test_closed_files_are_read_elsewhere(
    servers: ServerFactory, endpoint: str, tmp_path: Path
) -> None:
    source = servers.start("source")
    create_account(source)
    archive = f"s3://archive/prefix?{endpoint}"
    extra = f'[http]\nport = 0\n[archive]\nuri = "{archive}"\ninterval_s = 0.2\n'
    with ServeProcess(tmp_path / "serve", source, extra=extra) as serve:
        serve.execute("CREATE BINLOG 'orders' LOG(shop)")
        execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        execute(source, *(f"INSERT INTO shop.t VALUES ({n})" for n in range(20)))
        serve.wait_until_complete("orders")
        serve.execute("FLUSH BINARY LOGS 'orders'")
        # There is no bucket yet: the binlog goes on, and its copies are told of.
        wait_until(lambda: metric(serve, "archive_failing{") == ["1"])
        status, text = serve.get("/healthz")
        assert status == 503
        assert text.startswith("binlog orders is not archived: ")
        assert "endpoint" not in text
        assert metric(serve, "archive_pending_files{") in (["0"], ["1"])
        execute(source, "INSERT INTO shop.t VALUES (1000)")
        position = serve.wait_until_complete("orders")
        system, _ = opened(f"s3://archive/x?{endpoint}&allow_bucket_creation=true")
        system.create_dir("archive")
        wait_until(lambda: metric(serve, "archived_files{") == ["1"])
        wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))

        directory = child(child(archive, "binlogs"), "orders")
        wait_until(lambda: "orders.json" in (listed(directory) or {}))
        files = listed(directory) or {}
        assert sorted(files) == ["orders.000001", "orders.index", "orders.json"]
        path = serve.data_dir / "binlogs/orders/orders.000001"
        assert files["orders.000001"] == path.stat().st_size
        stored = Planner(str(path))
        read = Planner(f"{archive}#orders")
        assert groups_of(all_ranges(read)) == groups_of(all_ranges(stored))
        assert len(groups_of(all_ranges(read))) == 22

        before = read.end()
        serve.execute("FLUSH BINARY LOGS 'orders'")
        wait_until(lambda: metric(serve, "archived_files{") == ["2"])
        after = read.end(before)
        assert len(groups_of(read.ranges(before, after))) == 1
        description = "archive/prefix/binlogs/orders/orders.json"

        def archived_position() -> str:
            return str(json.loads(system.open_input_file(description).read())["gtid_complete"])

        # The watermark is saved behind the file's end: a later look of the archive copies it.
        wait_until(lambda: archived_position() == position)
        assert serve.stop() == 0
        # A new process finds what is there, and copies nothing twice.
        with serve:
            wait_until(lambda: metric(serve, "archived_files{") == ["2"])


def test_copies_of_another_binlog_of_that_name_stay(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    create_account(source)
    archive = tmp_path / "archive"
    old = archive / "binlogs/orders/orders.000001"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"\xfebin and more")
    extra = f'[http]\nport = 0\n[archive]\nuri = "file://{archive}"\ninterval_s = 0.2\n'
    with ServeProcess(tmp_path / "serve", source, extra=extra) as serve:
        serve.execute("CREATE BINLOG 'orders'", "CREATE BINLOG 'other'")
        serve.execute("FLUSH BINARY LOGS 'orders'", "FLUSH BINARY LOGS 'other'")
        wait_until(lambda: "another binlog's" in serve.get("/healthz")[1])
        wait_until(lambda: metric(serve, 'archived_files{binlog="other"') == ["1"])
        assert old.read_bytes() == b"\xfebin and more"
