"""Who may read which binlog, on the port before real servers of both flavors."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from binlane.live.answers.access import Access, BinlogAccess
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege
from binlane.live.provision.private_server import PrivateServer
from tests.listening import ListeningPort
from tests.rules import ROOT
from tests.servers import execute

PASSWORD: Final = "test-binlane"
UNLIKE_MYSQL: Final = ("SHOW BINLOG EVENTS", "BINLOG MONITOR")
"""What MySQL's REPLICATION CLIENT does not allow, as the page says."""


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


def test_a_dump_ends_when_its_account_may_read_no_more(
    source: PrivateServer, port: ListeningPort
) -> None:
    make(source, "team_a")
    port.execute("GRANT READ ON BINLOG 'orders' TO team_a")
    for end in ("REVOKE READ ON BINLOG orders FROM team_a", "DROP USER team_a"):
        with port.connect(user="team_a", password=PASSWORD) as session:
            with session.cursor() as cursor:
                cursor.execute(
                    "SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4"
                )
            raw: Any = session
            raw._execute_command(0x12, struct.pack("<IHI", 4, 0, 55) + b"orders.000001")
            assert raw._read_packet().is_ok_packet()
            errors: list[int] = []

            def read(raw: Any = raw, errors: list[int] = errors) -> None:
                try:
                    while True:
                        raw._read_packet()
                except pymysql.MySQLError as error:
                    errors.append(error.args[0])

            reader = threading.Thread(target=read)
            reader.start()
            assert port.execute("SELECT user FROM system.binlog_replicas") == (("team_a",),)
            if end.startswith("DROP"):
                execute(source, end)
            else:
                port.execute(end)
            reader.join(20)
            assert errors in ([1227], [1141]), (end, errors)
        if end.startswith("REVOKE"):
            port.execute("GRANT READ ON BINLOG 'orders' TO team_a")


def test_grants_stay_over_a_restart_and_follow_what_was_missed(
    source: PrivateServer, tmp_path: Path
) -> None:
    make(source, "stay_a", "stay_b", "stay_ü")
    with ListeningPort(source, tmp_path / "data") as port:
        port.execute("CREATE BINLOG 'b' LOG(shop)", "STOP BINLOG 'b'")
        port.execute("GRANT READ ON BINLOG b TO stay_a, stay_b, 'stay_ü'@'%'")
        assert names_of(port, "stay_ü") == ["b"]
    execute(
        source,
        *("RENAME USER stay_a TO stay_c, `stay_ü` TO `stay_ö`", "DROP USER stay_b"),
        f"CREATE USER stay_b IDENTIFIED BY '{PASSWORD}'",
    )
    with ListeningPort(source, tmp_path / "data") as port:
        assert names_of(port, "stay_c") == names_of(port, "stay_ö") == ["b"]
        assert refused(port, "SHOW BINLOGS", "stay_b") == 1227
        port.execute("DROP BINLOG b", "CREATE BINLOG b")
        assert port.execute("SHOW GRANTS ON BINLOG") == ()
        assert refused(port, "SHOW BINLOGS", "stay_c") == 1227
    execute(source, "DROP USER stay_b, stay_c, `stay_ö`")


def test_a_session_of_an_account_that_is_gone_has_nothing_of_the_next_one(
    source: PrivateServer, port: ListeningPort
) -> None:
    make(source, "team_a")
    port.execute("GRANT READ ON BINLOG 'orders' TO team_a")
    with port.connect(user="team_a", password=PASSWORD) as session, session.cursor() as cursor:
        cursor.execute("SHOW BINLOGS")
        execute(source, "DROP USER team_a")
        make(source, "team_a")
        port.execute("GRANT READ ON BINLOG 'orders' TO team_a")
        with pytest.raises(pymysql.MySQLError) as raised:
            cursor.execute("SHOW BINLOGS")
        assert raised.value.args[0] == 1045
    assert names_of(port, "team_a") == ["orders"]


def test_what_is_unknown_is_told(source: PrivateServer, port: ListeningPort) -> None:
    make(source, "team_a")
    unknown = 1133 if source.program.scheme == "mariadb" else 1410
    assert refused(port, "GRANT READ ON BINLOG orders TO team_none") == unknown
    assert refused(port, "GRANT READ ON BINLOG nothing TO team_a") == 1
    assert refused(port, "GRANT READ ON BINLOG orders TO team_a WITH GRANT OPTION") == 1064
    assert refused(port, "GRANT READ ON BINLOG orders TO team_a", "team_a") == 1227
    assert port.execute("SHOW GRANTS ON BINLOG") == ()


def test_an_unknown_name_lists_no_more_than_the_account_sees(
    source: PrivateServer, port: ListeningPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the name of a binlog that is dropped while it is asked for."""
    make(source, "team_a", "team_b")
    execute(
        source, "GRANT RELOAD ON *.* TO team_a", "GRANT RELOAD, REPLICATION SLAVE ON *.* TO team_b"
    )

    def error(statement: str, user: str) -> str:
        with pytest.raises(pymysql.MySQLError) as raised:
            port.execute(statement, user=user, password=PASSWORD)
        return str(raised.value)

    flush = "FLUSH BINARY LOGS 'typo'"
    assert "'orders'" not in error(flush, "team_a")
    assert "the binlogs are 'orders', 'people'" in error(flush, "team_b")
    port.execute("FLUSH BINARY LOGS 'orders'", user="team_a", password=PASSWORD)
    port.execute("GRANT READ ON BINLOG orders TO team_a")
    found = Access.find

    async def dropped(
        self: Access, session: HandlerSession, name: str, privilege: SourcePrivilege
    ) -> str:
        name = await found(self, session, name, privilege)
        await port.binlogs.changes.drop(name, if_exists=False)
        return name

    monkeypatch.setattr(Access, "find", dropped)
    told = error("SHOW BINARY LOGS FOR 'orders'", "team_a")
    assert "unknown binlog 'orders'" in told
    assert "'people'" not in told


def test_replication_slave_is_limited_by_a_grant(
    source: PrivateServer, port: ListeningPort
) -> None:
    make(source, "team_a")
    execute(source, "GRANT REPLICATION SLAVE ON *.* TO team_a")
    assert names_of(port, "team_a") == ["orders", "people"]
    port.execute("GRANT READ ON BINLOG 'orders' TO team_a")
    assert names_of(port, "team_a") == ["orders"]
    assert names_of_root(port) == ["orders", "people"]


def names_of_root(port: ListeningPort) -> list[str]:
    return [row[0] for row in port.execute("SHOW BINLOGS")]


def table() -> tuple[list[str], list[list[str]]]:
    """The page's table of who may do what: heads of columns, and rows."""
    text = (ROOT / "docs/reference/sql.md").read_text()
    part = text.split("\n## Who may\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return heads, rows


def expect(error: pymysql.MySQLError, *numbers: int) -> None:
    assert error.args[0] in numbers, error


def seen(port: ListeningPort, statement: str, user: str) -> str:
    """What comes of a statement: `all`, `own` or `no`."""
    options: dict[str, Any] = {"user": user, "password": PASSWORD}
    if statement == "a dump":
        return dumped(port, user)
    statement = statement.strip("`")
    if statement == "SHOW BINLOG EVENTS":
        found = []
        for name in ("orders", "people"):
            try:
                port.execute(f"{statement} IN '{name}.000001'", **options)
                found.append(name)
            except pymysql.MySQLError as error:
                expect(error, 1220, 1227)
        return ["no", "own", "all"][len(found)]
    try:
        told = repr(port.execute(statement, **options))
    except pymysql.MySQLError as error:
        expect(error, 1227)
        return "no"
    if "orders" in told or "people" in told:
        return "all" if "people" in told else "own"
    if statement in ("SHOW SLAVE HOSTS", "SHOW GRANTS ON BINLOG"):
        return "own"  # nobody reads any, nothing is granted
    return "all"


def dumped(port: ListeningPort, user: str) -> str:
    served = []
    for name in ("orders", "people"):
        with port.connect(user=user, password=PASSWORD) as session:
            raw: Any = session
            with session.cursor() as cursor:
                cursor.execute(
                    "SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4"
                )
            raw._execute_command(0x12, struct.pack("<IHI", 4, 1, 55) + f"{name}.000001".encode())
            try:
                while not raw._read_packet().is_eof_packet():
                    pass
                served.append(name)
            except pymysql.MySQLError as error:
                expect(error, 1, 1227)
    return ["no", "own", "all"][len(served)]


@pytest.mark.parametrize("rule", [BinlogAccess.PRIVILEGES, BinlogAccess.GRANTED])
def test_who_may_do_what(source: PrivateServer, tmp_path: Path, rule: BinlogAccess) -> None:
    is_mysql = source.program.scheme == "mysql"
    names = {"BINLOG ADMIN": "BINLOG_ADMIN", "BINLOG MONITOR": "REPLICATION CLIENT"}
    heads, rows = table()
    users = {head: f"team_{number}" for number, head in enumerate(heads[1:])}
    everybody = (*users.values(), "team_other")
    execute(source, *(f"DROP USER IF EXISTS {user}" for user in everybody))
    make(source, *everybody)
    for head, user in users.items():
        if head not in ("READ on a binlog", "nothing"):
            privilege = names.get(head, head) if is_mysql else head
            execute(source, f"GRANT {privilege} ON *.* TO {user}")
    with ListeningPort(source, tmp_path / "data", rule=rule) as port:
        port.execute("CREATE BINLOG 'orders' LOG(shop)", "CREATE BINLOG 'people' LOG(crm)")
        port.execute(f"GRANT READ ON BINLOG 'orders' TO {users['READ on a binlog']}")
        port.execute("GRANT READ ON BINLOG 'people' TO team_other")
        for statement, *cells in rows:
            for head, cell in zip(heads[1:], cells, strict=True):
                closed = rule is BinlogAccess.GRANTED and head in (
                    "REPLICATION SLAVE",
                    "BINLOG MONITOR",
                )
                expected = cells[-1] if closed else cell
                if is_mysql and (statement.strip("`"), head) == UNLIKE_MYSQL:
                    expected = "no"
                found = seen(port, statement, users[head])
                if statement.strip("`") == "SHOW SLAVE HOSTS":
                    # Nobody reads: who may ask, is told nothing.
                    assert (found == "no") == (expected == "no"), (statement, head, found)
                else:
                    assert found == expected, (statement, head, found)
            port.execute(f"REVOKE IF EXISTS READ ON BINLOG people FROM {users['BINLOG ADMIN']}")
    execute(source, *(f"DROP USER {user}" for user in everybody))
