"""What is made of SET at the port runs on real servers, changes nothing, and is refused as theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.port.binlog_variables import (
    NAMES,
    TRACKING,
    concerns,
    question,
    rewrite,
    telling_gtids,
)
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.types import Flavor
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.servers import connect, execute

_REFUSED = (
    "SET binlog_format = 'bogus'",
    "SET binlog_format = 3",
    "SET binlog_format = NULL",
    "SET binlog_format = 1.5",
    "SET binlog_format = '1'",
    "SET sql_log_bin = 'true'",
    "SET sql_log_bin = 'OFF '",
    "SET GLOBAL sql_log_bin = 0",
    "SET @a = 1, binlog_row_image = 'bogus'",
    "SET binlog_direct_non_transactional_updates = 2",
)
_TAKEN = (
    "SET binlog_format = STATEMENT",
    "SET @x = 1, SESSION binlog_format = 'mixed', sql_log_bin = 0, @y = 2",
    "SET @@session.binlog_direct_non_transactional_updates := ON",
    "SET GLOBAL binlog_format = STATEMENT",
    "SET GLOBAL binlog_direct_non_transactional_updates = 1",
    "SET sql_log_bin = FALSE",
    "SET binlog_format = DEFAULT",
)


@pytest.fixture(params=["mariadb", "mysql"])
def session(request: pytest.FixtureRequest) -> Iterator[tuple[Flavor, Connection[Cursor]]]:
    server: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    with closing(connect(server)) as connection:
        yield Flavor(request.param), connection


def _known(name: str, _: bool) -> str:  # noqa: FBT001  # as `Known` is called
    return {"binlog_format": "STATEMENT", "binlog_row_image": "FULL"}.get(name, "ON")


def _sent(text: str, flavor: Flavor, *, temporary: bool = False) -> str:
    facts = read(text, database="", dialect=Dialect(flavor=flavor.value))
    assert concerns(facts)
    assert question(facts, _known) is None
    told = rewrite(facts, _known, flavor=flavor, has_temporary_tables=temporary)
    return told.source


def _values(connection: Connection[Cursor]) -> list[object]:
    with connection.cursor() as cursor:
        found: list[object] = []
        for name in NAMES:
            cursor.execute(f"SELECT @@SESSION.{name}")
            found += cursor.fetchall()
            if name != "sql_log_bin":
                cursor.execute(f"SELECT @@GLOBAL.{name}")
                found += cursor.fetchall()
        return found


def _error(connection: Connection[Cursor], text: str) -> tuple[object, ...] | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(text)
    except pymysql.MySQLError as error:
        return error.args
    return None


@pytest.mark.parametrize("text", _TAKEN)
def test_nothing_changes(session: tuple[Flavor, Connection[Cursor]], text: str) -> None:
    flavor, connection = session
    before = _values(connection)
    assert _error(connection, _sent(text, flavor)) is None
    assert _values(connection) == before


@pytest.mark.parametrize("text", _REFUSED)
def test_what_is_wrong_is_refused_in_the_servers_words(
    session: tuple[Flavor, Connection[Cursor]], text: str
) -> None:
    flavor, connection = session
    wanted = _error(connection, text)
    assert wanted is not None
    assert _error(connection, _sent(text, flavor)) == wanted


def test_who_may_not_set_them_is_refused_in_the_servers_words(
    request: pytest.FixtureRequest, session: tuple[Flavor, Connection[Cursor]]
) -> None:
    flavor, _ = session
    server: PrivateServer = request.getfixturevalue(f"{flavor.value}_server")
    execute(server, "CREATE USER plain@'127.0.0.1'")
    with closing(connect(server, user="plain")) as connection:
        for text in (
            "SET binlog_format = ROW",
            "SET sql_log_bin = 0",
            "SET GLOBAL binlog_format=1",
        ):
            wanted = _error(connection, text)
            assert wanted is not None
            assert wanted[0] == 1227
            assert _error(connection, _sent(text, flavor)) == wanted
    execute(server, "DROP USER plain@'127.0.0.1'")


def test_in_a_transaction_and_with_temporary_tables(
    session: tuple[Flavor, Connection[Cursor]],
) -> None:
    flavor, connection = session
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for text, errno in (("SET binlog_format = ROW", 1679), ("SET sql_log_bin = 0", 1694)):
            error = _error(connection, _sent(text, flavor))
            assert error is not None
            assert error[0] == errno
        cursor.execute("ROLLBACK")
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE TEMPORARY TABLE shop.t (a INT)")
    assert (
        _error(connection, _sent("SET binlog_format = STATEMENT", flavor, temporary=True)) is None
    )


@pytest.mark.parametrize(
    "text",
    ["SET binlog_format = MIXED", "SELECT @@binlog_format, @@sql_log_bin", "SET sql_log_bin = 1"],
)
def test_warnings_are_the_servers(session: tuple[Flavor, Connection[Cursor]], text: str) -> None:
    flavor, connection = session
    told: list[object] = []
    with connection.cursor() as cursor:
        for each in (text, _sent(text, flavor)):
            cursor.execute(each)
            cursor.execute("SHOW WARNINGS")
            told.append(cursor.fetchall())
            cursor.execute("SET binlog_format = ROW")
    assert told[0] == told[1]


def test_columns_keep_their_names(session: tuple[Flavor, Connection[Cursor]]) -> None:
    flavor, connection = session
    text = "SELECT @@binlog_format, @@session.sql_log_bin AS n, LOWER(@@binlog_format)"
    with connection.cursor() as cursor:
        cursor.execute(text)
        wanted = [column[0] for column in cursor.description or ()]
        cursor.execute(_sent(text, flavor))
        assert [column[0] for column in cursor.description or ()] == wanted
        assert cursor.fetchall() == (("STATEMENT", 1, "statement"),)


def test_the_tracker_goes_on(session: tuple[Flavor, Connection[Cursor]]) -> None:
    flavor, connection = session
    name = TRACKING[flavor]
    told = {
        Flavor.MARIADB: (
            ("'autocommit'", "autocommit,last_gtid"),
            ("''", "last_gtid"),
            ("'*'", "*"),
        ),
        Flavor.MYSQL: (("OFF", "OWN_GTID"), ("'ALL_GTIDS'", "OWN_GTID")),
    }
    with connection.cursor() as cursor:
        cursor.execute(telling_gtids(flavor))
        for value, wanted in told[flavor]:
            cursor.execute(_sent(f"SET {name} = {value}", flavor))
            cursor.execute(f"SELECT @@{name}")
            assert cursor.fetchall() == ((wanted,),)
        cursor.execute(telling_gtids(flavor))
        cursor.execute(f"SELECT @@{name}")
        assert cursor.fetchall() == ((wanted,),)
