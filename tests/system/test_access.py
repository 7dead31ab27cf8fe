"""Who may read which binlog, on the port before real servers of both flavors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from binlane.service.private_server import PrivateServer
from tests.listening import ListeningPort
from tests.servers import execute

PASSWORD: Final = "test-binlane"
ROLE_HOSTS: Final = {"mariadb": "", "mysql": "@'%'"}


@pytest.fixture(params=["mariadb", "mysql"], scope="module")
def source(request: pytest.FixtureRequest) -> PrivateServer:
    server: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    execute(
        server, "CREATE DATABASE shop", "CREATE DATABASE crm", "CREATE TABLE shop.orders (a INT)"
    )
    return server


@pytest.fixture
def port(
    source: PrivateServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[ListeningPort]:
    with ListeningPort(source, tmp_path / "data") as listening:
        listening.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'people' LOG(crm)")
        yield listening
        names = execute(source, "SELECT User, Host FROM mysql.user WHERE User LIKE 'team%'")
        for user, host in names:
            kind = "USER" if host else "ROLE"
            at = f"@'{host}'" if host else ""
            execute(source, f"DROP {kind} `{user}`{at}")


def make(source: PrivateServer, *names: str) -> None:
    for name in names:
        execute(source, f"CREATE USER {name} IDENTIFIED BY '{PASSWORD}'")


def names_of(port: ListeningPort, user: str) -> list[str]:
    rows = port.execute("SHOW BINLOGS", user=user, password=PASSWORD)
    return [row[0] for row in rows]


def refused(port: ListeningPort, statement: str, user: str = "root", **options: Any) -> int:
    if user != "root":
        options["password"] = PASSWORD
    with pytest.raises(pymysql.MySQLError) as raised:
        port.execute(statement, user=user, **options)
    return int(raised.value.args[0])


def test_an_account_with_a_grant_sees_its_binlog_and_no_other(
    source: PrivateServer, port: ListeningPort
) -> None:
    make(source, "team_a")
    assert refused(port, "SHOW BINLOGS", "team_a") == 1227
    port.execute("GRANT READ ON BINLOG 'orders' TO 'team_a'@'%'")
    assert names_of(port, "team_a") == ["orders"]
    shown = port.execute("SHOW GRANTS ON BINLOG")
    assert shown == (("GRANT READ ON BINLOG 'orders' TO `team_a`@`%`",),)
    port.execute("REVOKE READ ON BINLOG 'orders' FROM team_a")
    assert refused(port, "SHOW BINLOGS", "team_a") == 1227
    assert refused(port, "REVOKE READ ON BINLOG orders FROM team_a") == 1141
    port.execute("REVOKE IF EXISTS READ ON BINLOG orders FROM team_a")


def test_grants_follow_accounts(source: PrivateServer, port: ListeningPort) -> None:
    make(source, "team_a", "team_b")
    port.execute(
        "GRANT READ ON BINLOG orders, people TO team_a", "GRANT READ ON BINLOG people TO team_b"
    )
    execute(source, "RENAME USER team_a TO team_c@LOCALHOST, team_b TO team_a")
    assert names_of(port, "team_c") == ["orders", "people"]
    assert names_of(port, "team_a") == ["people"]
    execute(source, "DROP USER team_c@localhost")
    make(source, "team_c")
    assert refused(port, "SHOW BINLOGS", "team_c") == 1227
    assert port.execute("SHOW GRANTS ON BINLOG") == (
        ("GRANT READ ON BINLOG 'people' TO `team_a`@`%`",),
    )


def test_active_roles_count(source: PrivateServer, port: ListeningPort) -> None:
    make(source, "team_a")
    execute(
        source,
        *("CREATE ROLE team_inner, team_outer", "GRANT team_inner TO team_outer"),
        "GRANT team_outer TO team_a",
    )
    port.execute("GRANT READ ON BINLOG 'orders' TO team_inner")
    assert refused(port, "SHOW BINLOGS", "team_a") == 1227
    with port.connect(user="team_a", password=PASSWORD) as session, session.cursor() as cursor:
        cursor.execute("SET ROLE team_outer")
        cursor.execute("SHOW BINLOGS")
        assert [row[0] for row in cursor.fetchall()] == ["orders"]
        cursor.execute("SET ROLE NONE")
        with pytest.raises(pymysql.MySQLError):
            cursor.execute("SHOW BINLOGS")
        cursor.execute("SET ROLE team_outer")
        execute(source, "REVOKE team_outer FROM team_a")
        with pytest.raises(pymysql.MySQLError):
            cursor.execute("SHOW BINLOGS")
