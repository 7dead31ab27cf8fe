"""What a module leaves on a shared server is gone for the next one."""

from __future__ import annotations

import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.servers import connect, execute
from tests.shared_server import left_as_found

_MADE = (
    "CREATE DATABASE `left ``over`",
    "CREATE TABLE `left ``over`.parent (a INT PRIMARY KEY)",
    "CREATE DATABASE child",
    "CREATE TABLE child.t (a INT, FOREIGN KEY (a) REFERENCES `left ``over`.parent (a))",
    "CREATE USER `o'neill`@'10.%'",
    "CREATE ROLE reader",
    "SET GLOBAL max_allowed_packet = 33554432",
    "SET GLOBAL sql_mode = 'ANSI_QUOTES'",
)
_ASKED = "SELECT @@GLOBAL.max_allowed_packet, @@GLOBAL.sql_mode"


@pytest.fixture(params=["mariadb_server", "mysql_server"])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(request.param)
    return found


def test_what_is_made_goes_and_what_is_set_is_as_before(server: PrivateServer) -> None:
    before = execute(server, _ASKED)
    databases, users = "SHOW DATABASES", "SELECT user, host FROM mysql.user ORDER BY 1, 2"
    there = execute(server, databases), execute(server, users)
    with left_as_found(server):
        execute(server, *_MADE)
        assert execute(server, _ASKED) == ((33554432, "ANSI_QUOTES"),)
    assert execute(server, _ASKED) == before
    assert (execute(server, databases), execute(server, users)) == there


def test_what_stays_locked_is_told(server: PrivateServer) -> None:
    with pytest.raises(AssertionError, match="prepared XA transactions"), left_as_found(server):
        execute(
            server,
            "CREATE DATABASE kept",
            "CREATE TABLE kept.t (a INT)",
            *("XA START 'left'", "INSERT INTO kept.t VALUES (1)", "XA END 'left'"),
            "XA PREPARE 'left'",
        )
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("XA ROLLBACK 'left'")


def test_a_database_that_is_gone_is_told(server: PrivateServer) -> None:
    execute(server, "CREATE DATABASE needed")
    with pytest.raises(AssertionError, match="is not as it was found"), left_as_found(server):
        execute(server, "DROP DATABASE needed")
