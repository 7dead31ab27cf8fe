"""`verify --source`: what binlogs say of their tables is held against the rows of real servers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.live.provision.private_server import (
    PrivateServer,
)
from binlane.log.codec.types import EventType, HeaderFlag
from tests.lent_servers import LENT
from tests.replica_load import OPTIONS, ReplicaLoad
from tests.serve_process import (
    ADMIN,
    PASSWORD,
    ServeProcess,
    create_account,
    is_alive,
    wait_until,
    worker_processes,
)
from tests.servers import connect, execute

_SHOP: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20), total DECIMAL(10, 2))",
    "INSERT INTO shop.orders VALUES (1, 'new', 10), (2, 'new', 20), (3, 'paid', 30)",
)


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server of its own, with an account that may read the tables."""
    with LENT.lend_source(request.param, *OPTIONS, prepare=create_account) as server:
        yield server


@pytest.fixture
def serve(tmp_path: Path, source: PrivateServer) -> Iterator[ServeProcess]:
    """A binlog `orders` of the database `shop`, which was there from its beginning."""
    with ServeProcess(tmp_path / "serve", source) as process:
        process.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
        yield process


Verdicts = dict[tuple[str, str], dict[str, Any]]
"""Verdicts by table and server."""


def verify_command(serve: ServeProcess, *options: str) -> list[str]:
    """The command that people run to compare with the source."""
    source, secret = serve.source, serve.directory / "secret"
    url = f"{source.program.scheme}://{ADMIN}@127.0.0.1:{source.port}?password-file={secret}"
    return [
        *(sys.executable, "-m", "binlane", "verify", f"{serve.data_dir}#orders"),
        *("--source", url, "--json", *options),
    ]


def verify(serve: ServeProcess, *options: str) -> Verdicts:
    """Compare with the source by the command."""
    done = subprocess.run(
        verify_command(serve, *options), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode in (0, 1), done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode == 1) == any(each["finding"] == "different" for each in verdicts)
    return {(each["table"], each["server"]): each for each in verdicts}


def findings(verdicts: Verdicts) -> dict[str, str]:
    return {
        table: f"{each['finding']} {each['reason']}".strip()
        for (table, _), each in verdicts.items()
    }


def complete(serve: ServeProcess) -> None:
    serve.wait_until_complete("orders")


def test_a_whole_binlog_is_equal_to_its_source(source: PrivateServer, serve: ServeProcess) -> None:
    execute(source, *_SHOP, "UPDATE shop.orders SET total = 11 WHERE id = 1")
    complete(serve)
    (verdict,) = verify(serve).values()
    assert verdict["finding"] == "equal", json.dumps(verdict)
    assert verdict["is_whole"]
    assert verdict["rows"] == 3
    execute(
        source, "DELETE FROM shop.orders WHERE id = 2", "INSERT INTO shop.orders VALUES (9, '', 0)"
    )
    complete(serve)
    (verdict,) = verify(serve).values()
    assert (verdict["finding"], verdict["rows"]) == ("equal", 3), verdict


def test_a_row_that_changed_beside_the_log_is_named(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP)
    complete(serve)
    verify(serve)
    execute(source, "SET sql_log_bin = 0", "UPDATE shop.orders SET total = 31 WHERE id = 3")
    execute(source, "INSERT INTO shop.orders VALUES (5, 'new', 1)")
    complete(serve)
    (verdict,) = verify(serve).values()
    assert verdict["finding"] == "different", json.dumps(verdict)
    first = verdict["first"]
    assert (first["key"], first["kind"], first["columns"]) == ("id=3", "other values", ["total"])
    assert first["binlog_gtid"]
    assert verdict["equal_gtid"]


def test_nothing_is_wrong_under_load_with_ddl(source: PrivateServer, serve: ServeProcess) -> None:
    load = ReplicaLoad(
        source, [lambda: connect(source), lambda: connect(source)], seed=7, pause_s=0.01
    )
    load.prepare()
    with load:
        seen = [findings(verify(serve)) for _ in range(6)]
    assert load.counts["done"] > 50
    complete(serve)
    seen.append(findings(verify(serve)))  # a table may have been dropped behind the last mark
    last = findings(verify(serve))
    assert not [each for each in [*seen, last] if "different" in each.values()]
    # Of a table that was dropped last, the state that verify keeps may know; nobody has it now.
    there = {f"shop.{name}" for (name,) in execute(source, "SHOW TABLES FROM shop")}
    assert {table for table, found in last.items() if found != "equal"}.isdisjoint(there), last
    assert any("equal" in each.values() for each in seen)


def test_a_change_that_the_binlog_lost_is_found(source: PrivateServer, serve: ServeProcess) -> None:
    """A rows event of the file becomes one that every reader skips, as long as before."""
    execute(source, *_SHOP)
    execute(source, "UPDATE shop.orders SET state = 'lost' WHERE id = 2")
    execute(source, "INSERT INTO shop.orders VALUES (4, 'later', 1)")
    complete(serve)
    assert serve.stop() == 0
    blank_update(serve.data_dir / "binlogs/orders/orders.000001")
    (verdict,) = verify(serve).values()
    first = verdict["first"]
    assert verdict["finding"] == "different", json.dumps(verdict)
    assert (first["key"], first["kind"], first["columns"]) == ("id=2", "other values", ["state"])


def test_a_change_that_was_lost_is_found_behind_later_ones(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP, "UPDATE shop.orders SET state = 'lost' WHERE id = 2")
    execute(source, "UPDATE shop.orders SET total = 21 WHERE id = 2")
    complete(serve)
    assert serve.stop() == 0
    blank_update(serve.data_dir / "binlogs/orders/orders.000001")
    (verdict,) = verify(serve).values()
    first = verdict["first"]
    assert verdict["finding"] == "different", json.dumps(verdict)
    assert (first["key"], first["kind"]) == ("id=2", "a change of it is missing in the binlog")


def test_a_table_that_is_held_locked_holds_up_no_other(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP, "CREATE TABLE shop.zones (id INT PRIMARY KEY)")
    complete(serve)
    with connect(source) as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES shop.orders WRITE")
        told = findings(verify(serve))
    assert "held it locked for 10 s" in told["shop.orders"], told
    assert told["shop.zones"] == "equal", told
    assert set(findings(verify(serve)).values()) == {"equal"}


def test_the_step_of_a_comparison_that_waits_is_shown(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP)
    complete(serve)
    serve.stop()
    serve.configure(listen="", extra="[http]\nport = 0\n")
    serve.start()
    shown: list[Any] = []

    def is_shown() -> bool:
        rows = serve.execute_as_root("SHOW BINLOG CHECKS FOR 'orders'")
        shown[:] = [row for row in rows if row[3] == "comparing" and row[1] == "shop.orders"]
        return bool(shown)

    with connect(source) as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES shop.orders WRITE")
        serve.execute_as_root("CHECK BINLOG 'orders'")
        wait_until(is_shown)
        assert "shop.orders (source): reading its rows, for" in shown[0][-1]
        metrics = serve.get("/metrics")[1]
        assert 'binlane_comparing_seconds{binlog="orders",table="shop.orders"' in metrics
        running = json.loads(serve.get("/api/status")[1])["comparing"]
        assert (running["table"], running["step"]) == ("shop.orders", "reading its rows")

        def is_told() -> bool:
            rows = serve.execute_as_root("SHOW BINLOG CHECKS FOR 'orders'")
            return [row[3] for row in rows] == ["not compared"]

        wait_until(is_told)
    assert "binlane_comparing_seconds" not in serve.get("/metrics")[1]


def test_a_table_without_a_key_is_let_go_of(source: PrivateServer, serve: ServeProcess) -> None:
    """ALTER TABLE does not wait for a comparison that would read for half a minute."""
    rows = ", ".join(f"({n}, REPEAT('x', 4000))" for n in range(3000))
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.bag (n INT, t TEXT)",
        f"INSERT INTO shop.bag VALUES {rows}",
    )
    complete(serve)
    with subprocess.Popen(
        verify_command(serve, "--rows-per-second", "100"), stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: is_selected(source, "bag"))
        execute(
            source,
            "SET SESSION lock_wait_timeout = 8",
            "ALTER TABLE shop.bag COMMENT = 'it did not wait'",
        )
        assert process.poll() is None, "the comparison ended before"
        process.kill()
    complete(serve)
    assert findings(verify(serve)) == {"shop.bag": "equal"}


def test_a_comparison_ends_with_serve(source: PrivateServer, serve: ServeProcess) -> None:
    """Also where `serve` is killed, and the comparison waits for a table."""
    execute(source, *_SHOP)
    complete(serve)
    with connect(source) as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES shop.orders WRITE")
        serve.execute_as_root("CHECK BINLOG 'orders'")
        wait_until(lambda: waits_for_lock(source))
        children = worker_processes(serve)
        assert children
        serve.kill()
        # Whoever is told of its end may take a moment.
        wait_until(lambda: not any(map(is_alive, children)), 5)


def waits_for_lock(source: PrivateServer) -> bool:
    """Whether a session of binlane's account waits for a table."""
    return any(
        row[1] == ADMIN and "metadata lock" in str(row[6])
        for row in execute(source, "SHOW FULL PROCESSLIST")
    )


def is_selected(source: PrivateServer, table: str) -> bool:
    """Whether binlane's account has a SELECT of a table's rows under way."""
    return any(
        row[1] == ADMIN and str(row[7]).startswith("SELECT") and table in str(row[7])
        for row in execute(source, "SHOW FULL PROCESSLIST")
    )


def blank_update(path: Path) -> None:
    """Make the first UPDATE's rows event one of a type that readers skip."""
    data = bytearray(path.read_bytes())
    at = 4
    while data[at + 4] not in (EventType.UPDATE_ROWS, EventType.UPDATE_ROWS_V1):
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    length = int.from_bytes(data[at + 9 : at + 13], "little")
    data[at + 4] = EventType.IGNORABLE
    data[at + 17] |= HeaderFlag.IGNORABLE
    data[at + length - 4 : at + length] = zlib.crc32(data[at : at + length - 4]).to_bytes(
        4, "little"
    )
    path.write_bytes(data)


def test_what_cannot_be_compared_is_told(source: PrivateServer, serve: ServeProcess) -> None:
    engine = "MyISAM"
    execute(
        source,
        *_SHOP,
        f"CREATE TABLE shop.loose (id INT PRIMARY KEY) ENGINE={engine}",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES shop.parent (id) ON DELETE CASCADE)",
        "INSERT INTO shop.parent VALUES (1), (2)",
        "INSERT INTO shop.child VALUES (10, 1), (20, 2)",
        "DELETE FROM shop.parent WHERE id = 1",
        "CREATE TABLE shop.bag (n INT)",
        "INSERT INTO shop.bag VALUES (1), (1), (2)",
        "DELETE FROM shop.bag WHERE n = 1 LIMIT 1",
    )
    serve.execute_as_root("ALTER BINLOG 'orders' ROW_IMAGE = 'MINIMAL'")
    execute(source, "UPDATE shop.orders SET total = 12 WHERE id = 1")
    complete(serve)
    told = findings(verify(serve))
    assert "engine does not commit" in told["shop.loose"]
    assert "no whole row images" in told["shop.orders"]
    assert told["shop.bag"] == told["shop.parent"] == "equal"
    has_logged = source.program.scheme == "mysql" and told["shop.child"] == "equal"
    assert has_logged or "foreign keys" in told["shop.child"]
    serve.execute_as_root("ALTER BINLOG 'orders' ROW_IMAGE = 'FULL'")


def test_a_table_from_before_the_binlog_is_equal_since(
    source: PrivateServer, tmp_path: Path
) -> None:
    execute(source, *_SHOP)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
        execute(source, "UPDATE shop.orders SET total = 12 WHERE id = 1")
        complete(serve)
        (verdict,) = verify(serve).values()
        assert (verdict["finding"], verdict["is_whole"]) == ("equal", False)
        since = verdict["since"]
        execute(source, "UPDATE shop.orders SET total = 13 WHERE id = 1")
        execute(source, "ALTER TABLE shop.orders ADD KEY (state), COMMENT = 'x'")
        complete(serve)
        (verdict,) = verify(serve).values()
        assert (verdict["finding"], verdict["since"]) == ("equal", since)
        execute(source, "SET sql_log_bin = 0", "DELETE FROM shop.orders WHERE id = 2")
        execute(source, "INSERT INTO shop.orders VALUES (7, '', 7)")
        complete(serve)
        (verdict,) = verify(serve).values()
        assert verdict["finding"] == "different", json.dumps(verdict)
        execute(source, "ALTER TABLE shop.orders ADD COLUMN n INT DEFAULT 5")
        complete(serve)
        (verdict,) = verify(serve).values()
        assert verdict["finding"] == "equal", json.dumps(verdict)
        assert verdict["since"] != since


def test_serve_compares_by_itself_and_tells(source: PrivateServer, tmp_path: Path) -> None:
    with ServeProcess(
        tmp_path / "serve", source, extra='[verify]\nevery = "1s"\n[http]\nport = 0\n'
    ) as serve:
        serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop)")
        execute(source, *_SHOP)

        def outcomes(state: str) -> list[tuple[Any, ...]]:
            rows = serve.execute_as_root("SHOW BINLOG CHECKS FOR 'orders'")
            return [row for row in rows if row[1] == "shop.orders" and row[3] == state]

        wait_until(lambda: bool(outcomes("equal")))
        assert serve.get("/healthz")[0] == 200
        execute(source, "SET sql_log_bin = 0", "UPDATE shop.orders SET total = 31 WHERE id = 3")
        serve.execute_as_root("CHECK BINLOG 'orders'")
        wait_until(lambda: bool(outcomes("different")))
        assert "id=3: other values (total)" in serve.log
        status, text = serve.get("/healthz")
        assert (status, "shop.orders" in text) == (503, True)
        assert "id=3" in serve.get("/")[1]
        metrics = serve.get("/metrics")[1]
        assert 'binlane_checked_tables{binlog="orders",finding="different"} 1' in metrics
        ((state, rows),) = serve.execute_as_root(
            "SELECT state, `rows` FROM system.binlog_checks "
            "WHERE `table` = 'shop.orders' AND state <> 'comparing'"
        )
        assert (state, rows) == ("different", 3)
        serve.kill()
        execute(source, "SET sql_log_bin = 0", "UPDATE shop.orders SET total = 30 WHERE id = 3")
        serve.start()
        assert outcomes("different") or outcomes("equal")
        wait_until(lambda: bool(outcomes("equal")))
        assert "Traceback" not in serve.log


@pytest.fixture
def replica(source: PrivateServer, serve: ServeProcess) -> Iterator[PrivateServer]:
    """A stock replica of the binlog that registers with an address."""
    is_mysql = source.program.scheme == "mysql"
    own = (
        ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=own")
        if is_mysql
        else ("--gtid-strict-mode=ON",)
    )
    # It tells the port that it listens on.
    options = (*own, "--server-id=41", "--report-host=127.0.0.1")
    with LENT.lend(options, source.program) as server:
        execute(
            server,
            *([] if not is_mysql else ["SET sql_log_bin = 0"]),
            f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT SELECT, PROCESS ON *.* TO {ADMIN}@'%'",
        )
        how = (
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={serve.port},"
            f" SOURCE_USER='{ADMIN}', SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0,"
            " GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000,"
            " SOURCE_LOG_FILE='orders.000001', SOURCE_LOG_POS=4"
            if is_mysql
            else f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={serve.port},"
            f" MASTER_USER='{ADMIN}', MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1,"
            " MASTER_LOG_FILE='orders.000001', MASTER_LOG_POS=4"
        )
        execute(server, how, "START REPLICA" if is_mysql else "START SLAVE")
        yield server


def replica_url(serve: ServeProcess, replica: PrivateServer) -> str:
    secret = serve.directory / "secret"
    return (
        f"{replica.program.scheme}://{ADMIN}@127.0.0.1:{replica.port}?password-file={secret}#orders"
    )


def test_a_replica_is_compared_while_it_follows(
    source: PrivateServer, serve: ServeProcess, replica: PrivateServer
) -> None:
    load = ReplicaLoad(source, [lambda: connect(source)], seed=11, pause_s=0.02, has_ddl=False)
    label, url = f"127.0.0.1:{replica.port}", replica_url(serve, replica)
    load.prepare()
    with load:
        first = verify(serve, "--replica", url)
        second = verify(serve, "--replica", url)
    complete(serve)
    for found in (first, second):
        wrong = [each for each in found.values() if each["finding"] == "different"]
        assert not wrong, json.dumps(wrong)
    last = verify(serve, "--replica", url)
    own = {table: each for (table, server), each in last.items() if server == label}
    assert own, last
    assert {each["finding"] for each in own.values()} == {"equal"}, json.dumps(own)
    execute(replica, "UPDATE shop.a SET n = -77 ORDER BY k LIMIT 1")
    ((key,),) = execute(replica, "SELECT k FROM shop.a WHERE n = -77")
    one = verify(serve, "--replica", url)["shop.a", label]
    assert one["finding"] == "different", json.dumps(one)
    assert (one["first"]["key"], one["first"]["columns"]) == (f"k={key}", ["n"])
    assert verify(serve)["shop.a", "source"]["finding"] == "equal"


def test_registered_replicas_are_compared_by_serve(
    source: PrivateServer, serve: ServeProcess, replica: PrivateServer
) -> None:
    execute(source, *_SHOP)
    serve.stop()
    serve.configure(
        listen="",
        extra=f'[verify]\nevery = "1s"\nreplica_user = "{ADMIN}"\n'
        'replica_password_file = "secret"\n',
    )
    serve.start()
    label = f"127.0.0.1:{replica.port}"

    def is_told(state: str) -> bool:
        rows = serve.execute_as_root("SHOW BINLOG CHECKS")
        return any(row[1:4] == ("shop.orders", label, state) for row in rows)

    wait_until(lambda: is_told("equal"))
    execute(replica, "DELETE FROM shop.orders WHERE id = 2")
    wait_until(lambda: is_told("different"))
    assert f"shop.orders ({label}): DIFFERENT" in serve.log
    assert "id=2: missing on the server" in serve.log


def test_a_kill_at_any_time_loses_no_proof(source: PrivateServer, serve: ServeProcess) -> None:
    load = ReplicaLoad(source, [lambda: connect(source)], seed=5, pause_s=0.005, has_ddl=False)
    load.prepare()
    with load:
        for wait_s in (0.4, 0.7, 0.9, 1.1, 1.4):
            process = subprocess.Popen(
                verify_command(serve), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(wait_s)
            process.kill()
            process.wait()
            if wait_s > 0.8:
                serve.kill()
                serve.start()
        under_load = findings(verify(serve))
    assert "different" not in under_load.values(), under_load
    complete(serve)
    found = verify(serve)
    assert {each["finding"] for each in found.values()} == {"equal"}, json.dumps(
        list(found.values())
    )
    assert all(each["is_whole"] for each in found.values())


def test_an_account_that_may_not_read_is_told_so(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP)
    complete(serve)
    assert set(findings(verify(serve)).values()) == {"equal"}
    execute(source, f"REVOKE SELECT ON *.* FROM '{ADMIN}'@'%'")
    complete(serve)
    assert "GRANT SELECT ON `shop`.`orders`" in findings(verify(serve))["shop.orders"]
    execute(source, "SET sql_log_bin = 0", "DROP TABLE shop.orders")
    execute(source, f"GRANT SELECT ON *.* TO '{ADMIN}'@'%'")
    complete(serve)
    (verdict,) = verify(serve).values()
    assert verdict["finding"] == "different", json.dumps(verdict)
    assert verdict["first"]["kind"] == "the server has no such table"


def test_tables_that_are_made_with_their_rows_are_equal(
    source: PrivateServer, serve: ServeProcess
) -> None:
    execute(source, *_SHOP, "CREATE TABLE shop.copies (KEY (id)) SELECT * FROM shop.orders")
    execute(source, f"CREATE TABLE shop.{'x' * 64} SELECT * FROM shop.orders")
    if source.program.scheme == "mariadb":
        execute(source, "CREATE SEQUENCE shop.numbers", "SELECT NEXTVAL(shop.numbers)")
    complete(serve)
    told = findings(verify(serve))
    assert told.pop("shop.numbers", "not compared it is a sequence").startswith(
        "not compared it is a sequence"
    )
    assert set(told.values()) == {"equal"}, told


def test_compressed_rows_and_statements_are_read(
    source: PrivateServer, serve: ServeProcess
) -> None:
    """The source compresses, and the binlog: rows on MySQL, long statements too on MariaDB."""
    is_mysql = source.program.scheme == "mysql"
    option = "binlog_transaction_compression" if is_mysql else "log_bin_compress"
    execute(source, f"SET GLOBAL {option} = ON")
    long = f"REPEAT('{'x' * 300}', 9)"
    execute(
        source,
        *_SHOP,
        f"CREATE TABLE shop.texts (id INT PRIMARY KEY, v TEXT) COMMENT '{'x' * 300}'",
        "ALTER TABLE shop.orders MODIFY state TEXT",
    )
    complete(serve)
    verify(serve)
    serve.execute_as_root("ALTER BINLOG 'orders' COMPRESS = 'ON'")
    execute(
        source,
        f"UPDATE shop.orders SET state = {long}",
        "CREATE TABLE shop.copies (KEY (id)) SELECT * FROM shop.orders",
        "BEGIN",
        f"INSERT INTO shop.orders VALUES (4, {long}, 1)",
        "DELETE FROM shop.orders WHERE id = 1",
        "COMMIT",
    )
    complete(serve)
    assert findings(verify(serve)) == dict.fromkeys(
        ("shop.orders", "shop.texts", "shop.copies"), "equal"
    )
    wanted = EventType.TRANSACTION_PAYLOAD if is_mysql else EventType.WRITE_ROWS_COMPRESSED_V1
    files = [file.path for file in StoreReader(serve.data_dir).files("orders")]
    types = {event.header.type_code for group in read_groups(files) for event in group.events}
    assert wanted in types
    # The texts themselves tell no rows, compressed or not.
    execute(
        source,
        "SET SESSION binlog_format = 'STATEMENT'",
        f"INSERT INTO shop.texts VALUES (1, {long})",
    )
    execute(source, "SET sql_log_bin = 0", "UPDATE shop.orders SET total = 7 WHERE id = 4")
    complete(serve)
    found = verify(serve)
    first = found["shop.orders", "source"]["first"]
    assert (first["key"], first["columns"]) == ("id=4", ["total"])
    assert found["shop.texts", "source"]["since"] != ""
    assert not found["shop.texts", "source"]["is_whole"]


def test_a_named_table_that_nobody_sees_is_told(source: PrivateServer, serve: ServeProcess) -> None:
    execute(source, *_SHOP)
    serve.execute_as_root("ALTER BINLOG 'orders' ADD LOG(shop.nothere)")
    complete(serve)
    found = findings(verify(serve))
    assert found["shop.nothere"].startswith("not compared the server has no such table, or")


def test_a_binlog_that_begins_with_its_rows_is_compared_as_a_whole(
    source: PrivateServer, tmp_path: Path
) -> None:
    execute(source, *_SHOP)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop.orders) WITH ROWS")
        wait_until(lambda: serve.execute_as_root("SHOW BINLOGS")[0][7] == "OPEN")
        execute(source, "UPDATE shop.orders SET total = 12 WHERE id = 1")
        complete(serve)
        (verdict,) = verify(serve).values()
        assert (verdict["finding"], verdict["rows"]) == ("equal", 3), json.dumps(verdict)
        assert verdict["is_whole"]
