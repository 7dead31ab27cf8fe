"""A live server as a source of ranges: its files, read by dumps of their own."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import binlane
from binlane.errors import ConfigError, PeerError, StoreError
from binlane.live.provision.private_server import PrivateServer
from binlane.tables.ranges.log_range import Limits
from binlane.tables.ranges.planner import Planner, PlanOptions
from tests.servers import ServerFactory, execute, purge_before
from tests.unit.tables.ranges.test_plan import all_ranges, groups_of

PASSWORD = "a secret % # ?"


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest, servers: ServerFactory) -> PrivateServer:
    if request.param == "mysql":
        return servers.start_mysql("source")
    return servers.start("source")


@pytest.fixture
def url(server: PrivateServer, tmp_path: Path) -> str:
    secret = tmp_path / "pass word"
    secret.write_text(PASSWORD + "\n")
    execute(
        server,
        f"CREATE USER reader@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'%'",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, t VARCHAR(60))",
    )
    quoted = str(secret).replace(" ", "%20")
    return f"mariadb://reader@127.0.0.1:{server.port}?password-file={quoted}"


def insert(server: PrivateServer, first: int, count: int) -> None:
    execute(
        server, *(f"INSERT INTO shop.orders VALUES ({n}, 'x')" for n in range(first, first + count))
    )


def files_of(server: PrivateServer) -> Iterator[Path]:
    """The server's own files of its log."""
    for name, *_ in execute(server, "SHOW BINARY LOGS"):
        yield from server.data_directory.rglob(name)


def test_what_a_server_gives_is_what_its_files_hold(
    server: PrivateServer, url: str, tmp_path: Path
) -> None:
    insert(server, 1, 30)
    execute(server, "FLUSH BINARY LOGS")
    insert(server, 100, 20)
    planner = Planner(url, PlanOptions(piece_bytes=1000))
    begin, end = planner.begin(), planner.end()
    pieces = planner.ranges(begin, end, size_bytes=3000)
    assert len(pieces) > 3
    assert PASSWORD not in pickle.dumps(pieces).decode("latin-1")
    assert PASSWORD not in str([begin, end])
    with ThreadPoolExecutor(4) as pool:  # dumps at once do not end one another
        found = [group for part in pool.map(lambda p: groups_of([p]), pieces) for group in part]
    copies = tmp_path / "copies"
    copies.mkdir()
    for path in files_of(server):
        (copies / path.name).write_bytes(path.read_bytes())
    copied = Planner(str(copies))
    assert found == groups_of(all_ranges(copied))
    assert replace(end, server=None, check="", fingerprint="") == replace(
        copied.end(), check="", fingerprint=""
    )


def test_python_reads_a_server(server: PrivateServer, url: str) -> None:
    execute(server, "FLUSH BINARY LOGS")
    insert(server, 1, 3)
    rows = pa.Table.from_batches(binlane.scan(url, tables="shop.orders", columns=["id"]))
    assert rows.column(rows.num_columns - 1).to_pylist() == [1, 2, 3]
    last = [name for name, *_ in execute(server, "SHOW BINARY LOGS")][-1]
    assert len([group for group in binlane.read(f"{url}#{last}") if not group.is_control]) == 3


def test_a_log_that_grows_is_followed(server: PrivateServer, url: str) -> None:
    planner = Planner(url)
    end = planner.end()
    assert Planner(url).end(end).place == end.place
    insert(server, 1, 3)
    execute(server, "FLUSH BINARY LOGS")
    insert(server, 10, 4)
    later = planner.end(end)
    assert len(groups_of(planner.ranges(end, later))) == 7
    middle = planner.next(end, Limits(groups=5))
    assert len(groups_of(planner.ranges(middle, later))) == 2
    assert planner.ranges(later, later) == []


def test_purged_files_and_a_reset_log_are_told(server: PrivateServer, url: str) -> None:
    planner = Planner(url)
    end = planner.end()
    execute(server, "FLUSH BINARY LOGS")
    insert(server, 1, 1)
    last = [name for name, *_ in execute(server, "SHOW BINARY LOGS")][-1]
    purge_before(server, last)
    with pytest.raises(StoreError, match=rf"it begins with {last}: the file was purged") as caught:
        planner.end(end)
    assert "bring the file back" in caught.value.hint
    with pytest.raises(StoreError, match=rf"holds no {end.file}; it has {last}"):
        Planner(f"{url}#{end.file}").end()


def test_what_a_server_refuses_says_so(server: PrivateServer, url: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("nothing like it")
    with pytest.raises(PeerError, match="Access denied") as caught:
        Planner(f"{url.partition('?')[0]}?password-file={wrong}").end()
    assert "nothing like it" not in f"{caught.value} {caught.value.hint}"
    with pytest.raises(ConfigError, match=r"the password of .* cannot be read"):
        Planner(f"{url}-not-there").end()
    with pytest.raises(ConfigError, match="holds a password"):
        Planner(f"mariadb://reader:secret@127.0.0.1:{server.port}").end()
