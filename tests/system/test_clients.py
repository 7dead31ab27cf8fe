"""What each client says at the port, as it was captured, and what becomes of it, on both flavors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from binlane.errors import StatementError
from binlane.live.provision.private_server import PrivateServer
from binlane.positions import GtidPosition
from tests.served_binlog import DONE, FILE, STATUS, Served, served_binlog
from tests.servers import execute


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    source: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    with served_binlog(source, tmp_path_factory.mktemp("clients")) as one:
        yield one


# Statements ---------------------------------------------------------------------------------------


def _variants(statement: str, flavor: str) -> list[str]:
    words = ("SELECT", "SHOW", "GLOBAL", "VARIABLES", "LIKE", "STATUS")
    lowered = " ".join(
        word.lower() if word in words else word for word in statement.split(" ")
    ).replace(" ", " \n ")
    forms = [
        statement,
        f" {statement} ;",
        f"/* mysql-connector-j-9.1.0 (Revision: cf29) */{statement}",
        f"{statement} -- why not",
        lowered,
    ]
    if flavor == "mariadb":
        forms.append(f"SET STATEMENT max_statement_time=600 FOR {statement}")
    return forms


def _check(served: Served, statement: str, expected: Sequence[object]) -> None:
    with served.client() as client:
        for variant in _variants(statement, served.flavor):
            _, *rows = client.rows(variant)
            assert rows == expected, variant


def test_what_is_the_same_for_every_binlog(served: Served) -> None:
    _check(served, "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'", [("binlog_checksum", "CRC32")])
    _check(served, "SELECT @@global.binlog_checksum", [("CRC32",)])
    for name, value in (
        ("binlog_format", "ROW"),
        ("binlog_row_image", "FULL"),
        ("BINLOG_ROW_METADATA", "FULL"),
        ("log_bin", "ON"),
    ):
        _check(served, f"SHOW VARIABLES LIKE '{name}'", [(name.lower(), value)])


def test_the_format_is_the_binlogs(served: Served) -> None:
    """A client that needs rows is told before it reads statements."""
    served.port.execute("ALTER BINLOG 'orders' FORMAT='MIXED'")
    try:
        _check(served, "SHOW GLOBAL VARIABLES LIKE 'binlog_format'", [("binlog_format", "MIXED")])
        _check(served, "SHOW VARIABLES LIKE 'binlog_format'", [("binlog_format", "ROW")])
    finally:
        served.port.execute("ALTER BINLOG 'orders' FORMAT='ROW'")
    _check(served, "SHOW GLOBAL VARIABLES LIKE 'binlog_format';", [("binlog_format", "ROW")])


def test_what_the_source_answers(served: Served) -> None:
    _check(served, "SHOW VARIABLES LIKE 'SERVER_ID'", [("server_id", "1")])
    _check(served, "SELECT @@GLOBAL.SERVER_ID", [("1",)])
    if served.flavor == "mysql":
        ((uuid,),) = execute(served.source, "SELECT @@server_uuid")
        _check(served, "SELECT @@GLOBAL.SERVER_UUID", [(uuid,)])
        _check(served, "SHOW GLOBAL VARIABLES LIKE 'GTID_MODE'", [("gtid_mode", "ON")])
        _check(served, f"SELECT GTID_SUBTRACT('{uuid}:1-5', '{uuid}:1-3')", [(f"{uuid}:4-5",)])
    else:
        _check(served, "SELECT @@GLOBAL.gtid_domain_id", [("0",)])


def test_what_is_done(served: Served) -> None:
    done = served.change()
    name = DONE[served.flavor].upper()
    _check(served, f"SELECT @@GLOBAL.{name}", [(done,)])
    _check(served, f"SHOW GLOBAL VARIABLES LIKE '{name}'", [(name.lower(), done)])
    status = STATUS[served.flavor]
    file, position = served.end()
    row = (file, str(position), "shop", "")
    _check(served, status, [row if served.flavor == "mariadb" else (*row, done)])
    binary = (FILE, str(position)) + (() if served.flavor == "mariadb" else ("No",))
    _check(served, "SHOW BINARY LOGS", [binary])


def test_several_at_a_time(served: Served) -> None:
    done = served.change()
    name = DONE[served.flavor]
    with served.client() as client:
        text = f"SELECT @@server_id, @@global.{name}, CONCAT(@@GLOBAL.{name}, '!') x, @@binlog_checksum"
        assert client.rows(text) == [
            ("@@server_id", f"@@global.{name}", "x", "@@binlog_checksum"),
            ("1", done, f"{done}!", "CRC32"),
        ]
        client.rows(f"SET @done = @@global.{name}")
        assert client.rows("SELECT @done")[1:] == [(done,)]
        _, *rows = client.rows(
            f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{name}', 'server_id')"
        )
        assert rows == [(name, done), ("server_id", "1")]
        _, *rows = client.rows("SHOW GLOBAL VARIABLES")
        told = dict(row for row in rows if len(row) == 2)
        assert (told[name], told["binlog_checksum"]) == (done, "CRC32")
        assert len(told) > 300
        _, *rows = client.rows("SHOW GLOBAL VARIABLES LIKE 'gtid%'")
        assert (name, done) in rows


def test_what_was_purged(served: Served) -> None:
    if served.flavor == "mariadb":
        _check(served, f"SELECT binlog_gtid_pos('{FILE}', 4)", [(served.begin,)])
        file, position = served.end()
        # The source's last group is in no binlog.
        last = GtidPosition.parse(served.done()).gtids[0].sequence - 1
        _check(served, f"SELECT BINLOG_GTID_POS('{file}', '{position}')", [(f"0-1-{last}",)])
        _check(served, f"SELECT BINLOG_GTID_POS('{FILE}', 5)", [(None,)])
        _check(served, "SELECT BINLOG_GTID_POS('binlog.000001', 4)", [("",)])
    else:
        _check(served, "SELECT @@global.gtid_purged", [(served.begin,)])
        _check(served, "SHOW VARIABLES LIKE 'gtid_purged'", [("gtid_purged", served.begin)])


def test_semi_synchronous_replication_is_not_offered(served: Served) -> None:
    name = "rpl_semi_sync_master_enabled"
    if served.flavor == "mariadb":
        _check(served, f"SHOW VARIABLES LIKE '{name}'", [])
        _check(served, f"SELECT @@global.{name}", [("0",)])
        return
    for each in (name, "rpl_semi_sync_source_enabled"):
        _check(served, f"SHOW VARIABLES LIKE '{each}'", [])
        with pytest.raises(StatementError, match="Unknown system variable"):
            served.ask(f"SELECT @@global.{each}")


def test_variables_of_a_replica(served: Served) -> None:
    with served.client() as client:
        client.rows("set @master_binlog_checksum= @@global.binlog_checksum")
        client.rows("SET @slave_uuid = 'it''s', @replica_uuid = NULL, @mine = 5")
        assert client.rows("SELECT @master_binlog_checksum") == [
            ("@master_binlog_checksum",),
            ("CRC32",),
        ]
        assert client.rows("SELECT @slave_uuid, @replica_uuid, @mine")[1:] == [("it's", None, "5")]


def test_several_binlogs_are_not_mixed_up(served: Served) -> None:
    """Where an account reads several, what describes one is the source's, and files name theirs."""
    done = served.change()
    served.port.execute("CREATE BINLOG 'all'")
    try:
        name = DONE[served.flavor]
        _check(served, f"SELECT @@GLOBAL.{name}", [(done,)])
        files = [row[0] for row in served.ask("SHOW BINARY LOGS")[1:]]
        assert files == ["all.000001", FILE]
        if served.flavor == "mariadb":
            _check(served, f"SELECT binlog_gtid_pos('{FILE}', 4)", [(served.begin,)])
            _check(served, "SELECT binlog_gtid_pos('all.000001', 4)", [(done,)])
    finally:
        served.port.execute("DROP BINLOG 'all'")


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW BINLOGS",
        "SHOW BINARY LOGS",
        "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
        "SELECT @@global.binlog_checksum",
        "SELECT name FROM system.binlogs",
        "DROP BINLOG 'orders'",
    ],
)
def test_prepared_statements_are_refused_plainly(served: Served, statement: str) -> None:
    with served.client() as client:
        with pytest.raises(StatementError) as caught:
            client.prepare(statement)
        assert caught.value.errno == 1295
        assert client.prepare("SHOW VARIABLES LIKE 'binlog_format'")
        assert client.prepare("SELECT ? FROM crm.person WHERE 'binlog' = 'master'")
        assert client.rows("SELECT 1")[1:] == [("1",)]
    assert served.port.execute("SHOW BINLOGS")


# Snapshots ----------------------------------------------------------------------------------------


def test_place_of_a_consistent_snapshot(served: Served) -> None:
    if served.flavor == "mysql":
        assert served.ask("SHOW STATUS LIKE 'binlog_snapshot_%'")[1:] == []
        return
    with served.client() as client:
        file, position = served.end()
        now = [("Binlog_snapshot_file", file), ("Binlog_snapshot_position", str(position))]
        assert client.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")[1:] == now
        client.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        place = f"SELECT BINLOG_GTID_POS('{file}', '{position}')"
        done = client.rows(place)
        for _ in range(3):
            served.change()
        for statement in ("SHOW STATUS LIKE 'binlog_snapshot_%'", "SHOW GLOBAL STATUS"):
            told = dict(row for row in client.rows(statement)[1:] if len(row) == 2)
            found = [(name, told[name]) for name, _ in now]
            assert found == now
        assert client.rows(place) == done
        client.rows("ROLLBACK")
        served.port.execute("FLUSH BINARY LOGS 'orders'")
        new_file, new_position = served.end()
        assert new_file != file
        assert client.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")[1:] == [
            ("Binlog_snapshot_file", new_file),
            ("Binlog_snapshot_position", str(new_position)),
        ]
