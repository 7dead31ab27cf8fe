"""What real servers print as grants, with names that look like grants, and what is read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.gateway.source_privileges import global_privileges
from binlane.live.provision.private_server import PrivateServer

Connect = Callable[..., "Connection[Cursor]"]

HOSTILE = "x,SUPER ON *.* TO"
NAMES = (HOSTILE, "`,SUPER ON *.* TO `a", '",SUPER ON *.* TO "a', "a\\',SUPER ON *.* TO '", "* TO")
PASSWORD = "test-binlane"
SETTINGS = (
    "SET @nothing = 1",
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    "SET SESSION sql_quote_show_create = 0",
    "SET SESSION sql_mode = ''",
    "SET SESSION character_set_results = 'swe7'",
    "SET SESSION character_set_results = 'utf16'",
)
ADMIN = {"mariadb": "BINLOG ADMIN", "mysql": "BINLOG_ADMIN"}


@pytest.fixture(params=["mariadb", "mysql"])
def flavor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(flavor: str, request: pytest.FixtureRequest) -> Connect:
    """Logs in to a server of the flavor, over its socket."""
    server: PrivateServer = request.getfixturevalue(f"{flavor}_server")
    return lambda **account: pymysql.connect(
        unix_socket=str(server.socket_path), charset="utf8mb4", **{"user": "root", **account}
    )


def run(session: Connection[Cursor], *statements: str) -> list[str]:
    """The first column of the last one's rows."""
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return [
            row[0] if isinstance(row[0], str) else bytes(row[0]).decode("utf-8", "surrogateescape")
            for row in cursor.fetchall()
        ]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def statements_of(name: str) -> Iterator[str]:
    """What gives an account every kind of object that has a name."""
    it = quoted(name)
    yield f"CREATE DATABASE IF NOT EXISTS {it}"
    yield f"CREATE TABLE IF NOT EXISTS {it}.{it} ({it} INT, b INT)"
    yield f"CREATE PROCEDURE IF NOT EXISTS {it}.{it}() SELECT 1"
    yield f"CREATE FUNCTION IF NOT EXISTS {it}.{it}() RETURNS INT DETERMINISTIC NO SQL RETURN 1"
    yield f"GRANT ALL ON {it}.* TO hostile"
    yield f"GRANT SELECT ({it}, b), UPDATE (b) ON {it}.{it} TO hostile"
    yield f"GRANT EXECUTE ON PROCEDURE {it}.{it} TO hostile"
    yield f"GRANT EXECUTE ON FUNCTION {it}.{it} TO hostile"
    yield f"CREATE ROLE IF NOT EXISTS {it}"
    yield f"GRANT {it} TO hostile"
    yield f"CREATE USER IF NOT EXISTS {it}@'%' IDENTIFIED BY '{PASSWORD}'"
    yield f"GRANT PROXY ON {it}@'%' TO hostile"


def test_no_name_of_any_object_grants_anything(connect: Connect) -> None:
    with closing(connect()) as root:
        run(root, "SET SESSION sql_log_bin = 0", "DROP USER IF EXISTS hostile@'%'")
        run(root, f"CREATE USER hostile@'%' IDENTIFIED BY '{PASSWORD}'")
        for name in NAMES:
            for statement in statements_of(name):
                # Some names are none for routines or roles of one flavor.
                with suppress(pymysql.MySQLError):
                    run(root, statement)
    printed = 0
    for role in ("NONE", *map(quoted, NAMES)):
        with closing(connect(user="hostile", password=PASSWORD)) as session:
            with suppress(pymysql.MySQLError):
                run(session, f"SET ROLE {role}")
            for setting in SETTINGS:
                grants = run(session, setting, "SHOW GRANTS")
                assert global_privileges(grants) <= {"USAGE"}, (role, setting)
                printed = max(printed, sum("SUPER" in grant for grant in grants))
    assert printed >= len(NAMES)


def test_what_is_granted_is_read_in_every_quoting(connect: Connect, flavor: str) -> None:
    granted = {"REPLICATION SLAVE", ADMIN[flavor]}
    with closing(connect()) as root:
        run(
            root,
            "SET SESSION sql_log_bin = 0",
            *("DROP USER IF EXISTS granted@'%'", "DROP ROLE IF EXISTS inner_role, outer_role"),
            f"CREATE USER granted@'%' IDENTIFIED BY '{PASSWORD}'",
            "CREATE ROLE inner_role, outer_role",
            f"GRANT REPLICATION SLAVE, {ADMIN[flavor]} ON *.* TO inner_role",
            *("GRANT inner_role TO outer_role", "GRANT outer_role TO granted@'%'"),
        )
        everything = global_privileges(run(root, "SHOW GRANTS"))
    assert "ALL PRIVILEGES" in everything or granted <= everything
    with closing(connect(user="granted", password=PASSWORD)) as session:
        assert global_privileges(run(session, "SHOW GRANTS")).isdisjoint(granted)
        run(session, "SET ROLE outer_role")
        for setting in SETTINGS[:4]:
            assert global_privileges(run(session, setting, "SHOW GRANTS")) >= granted, setting
