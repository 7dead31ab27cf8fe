"""How much of a source's log is not taken yet, as the source itself counts it."""

from __future__ import annotations

import time

import pytest

from binlane.client.settings import ServerUrl
from binlane.live.capture.settings import SourceSettings
from binlane.live.provision.private_server import PrivateServer
from binlane.live.service.source_end import SourceEnd
from binlane.positions import FilePosition
from tests.serve_process import wait_until
from tests.servers import execute

FLAVORS = pytest.mark.parametrize("server_name", ["mariadb_server", "mysql_server"])


@pytest.fixture
def source(server_name: str, request: pytest.FixtureRequest) -> PrivateServer:
    server = request.getfixturevalue(server_name)
    assert isinstance(server, PrivateServer)
    return server


def files(source: PrivateServer) -> list[tuple[str, int]]:
    return [(str(row[0]), int(row[1])) for row in execute(source, "SHOW BINARY LOGS")]


def end_of(source: PrivateServer) -> SourceEnd:
    return SourceEnd(SourceSettings(url=ServerUrl.parse(source.url)))


@FLAVORS
def test_bytes_behind_a_place_are_counted_over_files(source: PrivateServer) -> None:
    end = end_of(source)
    assert end.bytes_behind(FilePosition("binlog.000001", 4)) is None, "nobody has looked"
    first, position = files(source)[-1]
    place = FilePosition(first, position)
    end.look(frozenset({first}))
    assert end.bytes_behind(place) == 0
    execute(source, "CREATE DATABASE behind")
    end.look(frozenset({first}))
    here = files(source)[-1][1] - position
    assert here > 0
    assert end.bytes_behind(place) == here
    assert end.bytes_behind(FilePosition(first, position + here)) == 0
    assert end.bytes_behind(FilePosition(first, position + 10**6)) == 0, "it is past that look"
    # Files that came since are counted as they are once they are closed.
    for number in range(3):
        execute(source, "FLUSH BINARY LOGS", f"CREATE TABLE behind.t{number} (id INT)")
        end.look(frozenset({first}))
        listed = files(source)
        at = next(index for index, (name, _) in enumerate(listed) if name == first)
        sizes = [size for _, size in listed[at:]]
        assert end.bytes_behind(place) == sum(sizes) - position
    last = FilePosition(files(source)[-1][0], 4)
    assert end.bytes_behind(last) == files(source)[-1][1] - 4
    assert end.bytes_behind(FilePosition("other.000001", 4)) is None
    following = f"{last.file.rpartition('.')[0]}.999999"
    assert end.bytes_behind(FilePosition(following, 4)) == 0, "it has gone on since that look"
    end.stop()


@FLAVORS
def test_it_is_asked_beside_everything_else(source: PrivateServer) -> None:
    end = end_of(source)
    place = FilePosition(*files(source)[-1])
    end.start(lambda: frozenset({place.file}))
    wait_until(lambda: end.end is not None)
    assert end.bytes_behind(place) == 0
    begun_s = time.monotonic()
    end.stop()
    assert end._thread is not None
    end._thread.join(5)
    assert not end._thread.is_alive()
    assert time.monotonic() - begun_s < 2


@FLAVORS
def test_what_the_source_refuses_is_told_and_asked_seldom(source: PrivateServer) -> None:
    execute(source, "CREATE USER nobody@'%' IDENTIFIED BY 'x'")
    url = source.url.replace("root@", "nobody@")
    end = SourceEnd(SourceSettings(url=ServerUrl.parse(url), password="x"))
    end.look(frozenset())
    assert "privilege" in end.problem
    assert end.end is None
    execute(source, "GRANT REPLICATION CLIENT ON *.* TO nobody@'%'")
    end.look(frozenset())
    assert "privilege" in end.problem, "it was asked again at once"
    end._end_due_s = time.monotonic()
    end.look(frozenset())
    assert end.problem == ""
    assert end.end is not None
    end.stop()


def test_a_source_that_is_away(mariadb_server: PrivateServer) -> None:
    url = mariadb_server.url.replace(str(mariadb_server.port), "1")
    end = SourceEnd(SourceSettings(url=ServerUrl.parse(url)))
    assert end.look(frozenset()) < 60
    assert end.problem
    assert end.bytes_behind(FilePosition("binlog.000001", 4)) is None
