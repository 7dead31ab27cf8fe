"""FOLLOW CASCADES: a replica of the children alone, while clients change their parents outside."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pymysql
import pytest

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.rows import DeleteRowsEvent, UpdateRowsEvent
from binlane.log.codec.types import RowsFlag
from tests.port_replicas import replica_status
from tests.replica_matrix import tables
from tests.schema_changes import RESTARTING
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account, wait_until
from tests.servers import ServerFactory, connect, execute

_PARENT = "REFERENCES crm.parent"
SETUP = (
    *("CREATE DATABASE crm", "CREATE DATABASE shop"),
    (
        "CREATE TABLE crm.parent (id INT PRIMARY KEY, code VARCHAR(300) UNIQUE, a INT, b BIGINT,"
        " v INT, UNIQUE (a, b)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
    ),
    (
        "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, parent INT, note TEXT,"
        f" FOREIGN KEY (parent) {_PARENT} (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ),
    (
        "CREATE TABLE shop.items (id INT PRIMARY KEY AUTO_INCREMENT, o INT,"
        " FOREIGN KEY (o) REFERENCES shop.orders (id) ON DELETE CASCADE)"
    ),
    # Both kinds of keys, of which one takes the row away; a text, which the other table has longer.
    (
        "CREATE TABLE shop.tags (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(20), parent INT,"
        f" CONSTRAINT z FOREIGN KEY (code) {_PARENT} (code) ON DELETE SET NULL ON UPDATE CASCADE,"
        f" CONSTRAINT y FOREIGN KEY (parent) {_PARENT} (id) ON DELETE CASCADE)"
        " DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
    ),
    # Without a primary key: rows may be equal.
    (
        f"CREATE TABLE shop.pairs (a INT, b BIGINT, FOREIGN KEY (a, b) {_PARENT} (a, b)"
        " ON DELETE CASCADE ON UPDATE SET NULL)"
    ),
    (
        "CREATE TABLE shop.tree (id INT PRIMARY KEY AUTO_INCREMENT, up INT, parent INT, f DOUBLE,"
        " CONSTRAINT up FOREIGN KEY (up) REFERENCES shop.tree (id) ON DELETE CASCADE,"
        f" CONSTRAINT out_of_shop FOREIGN KEY (parent) {_PARENT} (id) ON DELETE CASCADE"
        " ON UPDATE SET NULL)"
    ),
)


CHILDREN = ("orders", "items", "tags", "pairs", "tree")


def derived(serve: ServeProcess) -> int:
    """Number of rows events in the binlog that no server has logged."""
    paths = [file.path for file in StoreReader(serve.data_dir).files("shop")]
    return sum(
        isinstance(event.body, UpdateRowsEvent | DeleteRowsEvent)
        and event.body.flags & RowsFlag.NO_FOREIGN_KEY_CHECKS > 0
        for group in read_groups(paths)
        for event in group.events
    )


def _statement(chance: random.Random) -> str:
    one, other = chance.randrange(60), chance.randrange(60)
    case = chance.choice(("x", "X"))
    some = "(SELECT * FROM (SELECT id FROM shop.{} ORDER BY RAND() LIMIT 1) t)"
    return chance.choice(
        (
            f"INSERT IGNORE INTO crm.parent VALUES ({one}, '{case}{one}', {one}, {one * 7}, 1)",
            f"INSERT IGNORE INTO crm.parent VALUES ({other}, '{case}{other}', {other}, {one}, 1)",
            f"INSERT INTO shop.orders (parent, note) VALUES ({one}, REPEAT('n', {one}))",
            f"INSERT INTO shop.items (o) VALUES ({some.format('orders')})",
            f"INSERT INTO shop.tags (code, parent) VALUES ('x{one}', {one})",
            f"INSERT INTO shop.tags (code, parent) VALUES ('X{one} ', NULL)",
            f"INSERT INTO shop.pairs SELECT a, b FROM crm.parent WHERE id = {one}",
            f"INSERT INTO shop.tree (up, parent, f) VALUES ({some.format('tree')}, {one}, 0.5)",
            f"INSERT INTO shop.tree (up, parent) VALUES (NULL, {one})",
            f"DELETE FROM crm.parent WHERE id = {one}",
            f"DELETE FROM crm.parent WHERE id BETWEEN {one} AND {one + 1}",
            f"UPDATE IGNORE crm.parent SET id = {other} WHERE id = {one}",
            f"UPDATE crm.parent SET v = v + 1 WHERE id = {one}",
            f"UPDATE crm.parent SET code = '{case}{one}' WHERE id = {one}",
            f"UPDATE IGNORE crm.parent SET code = 'x{other}', b = b + 100 WHERE id = {one}",
            f"UPDATE crm.parent SET b = NULL WHERE id = {one}",
            f"REPLACE INTO crm.parent VALUES ({one}, 'x{one}', {other}, {one}, 2)",
            f"UPDATE shop.orders SET parent = {one} WHERE id = {some.format('orders')}",
            f"DELETE FROM shop.orders WHERE parent = {one}",
            f"DELETE FROM shop.tree WHERE id = {some.format('tree')}",
            (
                f"DELETE crm.parent, shop.orders FROM crm.parent JOIN shop.orders"
                f" ON shop.orders.parent = crm.parent.id WHERE crm.parent.id = {one}"
            ),
        )
    )


class Clients:
    """Clients that change parents and children at random.

    Attributes:
        done: Number of transactions that were committed.
    """

    def __init__(self, source: PrivateServer, count: int) -> None:
        self._source, self._ends = source, threading.Event()
        self.done = 0
        self._threads = [threading.Thread(target=self._run, args=(seed,)) for seed in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seed: int) -> None:
        chance = random.Random(seed)
        with connect(self._source, autocommit=False) as session:
            while not self._ends.is_set():
                for _ in range(chance.randint(1, 4)):
                    # Without its parent no child can be, and clients wait for each other.
                    with suppress(pymysql.MySQLError), session.cursor() as cursor:
                        cursor.execute(_statement(chance))
                if chance.random() < 0.1:
                    session.rollback()
                else:
                    session.commit()
                    self.done += 1


@pytest.fixture(params=["mariadb", "mysql"])
def pair(request: pytest.FixtureRequest, servers: ServerFactory) -> list[PrivateServer]:
    """A source of which the log lacks what keys do, and a replica that has nothing yet."""
    if request.param == "mariadb":
        return [servers.start("source"), servers.start("replica", ("--server-id=40",))]
    native, gtids = (
        "--innodb-native-foreign-keys=ON",
        ("--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
    )
    return [
        servers.start_mysql("source", native, *gtids),
        servers.start_mysql("replica", "--server-id=40", *gtids),
    ]


@pytest.fixture
def serve(pair: list[PrivateServer], tmp_path: Path) -> Iterator[ServeProcess]:
    create_account(pair[0])
    with ServeProcess(tmp_path / "serve", pair[0]) as process:
        yield process


def follow(replica: PrivateServer, serve: ServeProcess, begin: str) -> None:
    """Have a replica follow the only binlog from its beginning."""
    host = f"HOST='127.0.0.1', {{0}}PORT={serve.port}, {{0}}USER='{ADMIN}'"
    if replica.program.scheme == "mysql":
        how = host.format("SOURCE_")
        execute(
            replica,
            "RESET BINARY LOGS AND GTIDS",
            f"SET GLOBAL gtid_purged = '{begin}'",
            f"CHANGE REPLICATION SOURCE TO SOURCE_{how}, SOURCE_PASSWORD='{PASSWORD}', SOURCE_SSL=0,"
            " GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=1000,"
            " SOURCE_AUTO_POSITION=1",
            "START REPLICA",
        )
        return
    how = host.format("MASTER_")
    execute(
        replica,
        f"SET GLOBAL gtid_slave_pos = '{begin}'",
        f"CHANGE MASTER TO MASTER_{how}, MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1,"
        " MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )


def expect_equal(source: PrivateServer, replica: PrivateServer, serve: ServeProcess) -> None:
    """The replica comes to have the tables that the source has in scope."""
    serve.wait_until_complete("shop")
    expected = {name: value for name, value in tables(source).items() if name[0] == "shop"}
    found: dict[Any, object] = {}

    def is_equal() -> bool:
        status = replica_status(replica)
        assert not status["Last_SQL_Error"], status["Last_SQL_Error"]
        # It may not have come back yet since `serve` was restarted.
        assert status["Last_IO_Errno"] in RESTARTING, status["Last_IO_Error"]
        found.clear()
        with suppress(pymysql.MySQLError):  # not made yet
            found.update(tables(replica))
        return found == expected

    try:
        wait_until(is_equal)
    except AssertionError:
        assert found == expected, replica_status(replica)
        raise


def test_a_replica_of_children_alone(pair: list[PrivateServer], serve: ServeProcess) -> None:
    source, replica = pair
    serve.execute("CREATE BINLOG 'shop' LOG(shop) FOLLOW CASCADES")
    begin = serve.wait_until_complete("shop")
    execute(source, *SETUP)
    follow(replica, serve, begin)
    with Clients(source, 3) as clients:
        wait_until(lambda: clients.done > 300)
        serve.kill()
        serve.start()
        wait_until(lambda: clients.done > 600)
    expect_equal(source, replica, serve)
    assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
    assert derived(serve) > 20
    assert any(execute(source, f"SELECT 1 FROM shop.{name} LIMIT 1") for name in CHILDREN)
    names = sorted(path.name for path in (serve.data_dir / "children").glob("*.sqlite"))
    assert len(names) == 1
    serve.execute("ALTER BINLOG 'shop' NOFOLLOW CASCADES")
    assert not list((serve.data_dir / "children").glob("*"))


def test_what_is_not_known_stays_an_incident(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    create_account(source)
    execute(source, *SETUP[:4], "INSERT INTO shop.orders VALUES (100, NULL, NULL)")
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG 'shop' LOG(shop) FOLLOW CASCADES")
        told: list[str] = []

        def expect(reason: str, *statements: str) -> None:
            """What a parent's DELETE behind some statements is, with a child."""
            execute(source, "REPLACE INTO crm.parent VALUES (1, 'x', 1, 1, 1)")
            child = "INSERT INTO shop.orders (parent, note) VALUES (1, 'a')"
            execute(source, child, *statements, "DELETE FROM crm.parent WHERE id = 1")
            serve.wait_until_complete("shop")
            rows = [str(row) for row in serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'")]
            added = rows[len(told) :]
            told[:] = rows
            assert len(added) == bool(reason)
            assert all(reason in row for row in added)

        expect("its CREATE TABLE is not in the binlog")
        # Nobody knows its columns: they may follow from others.
        child = "INSERT INTO shop.orders (parent) VALUES (1)"
        expect("its CREATE TABLE is not in the binlog", "TRUNCATE TABLE shop.orders", child)
        again = "DROP TABLE shop.orders", SETUP[3]
        execute(source, *again)
        expect("")
        expect("it was altered", "ALTER TABLE shop.orders ADD more INT")
        expect("it was altered")
        execute(source, "TRUNCATE TABLE shop.orders")
        expect("")
        expect("", "ALTER TABLE shop.orders ADD INDEX (note(5)), AUTO_INCREMENT=500")
        statement = "INSERT INTO shop.orders (note) VALUES ('z')"
        format_ = "SET SESSION binlog_format = '{}'".format
        text = format_("STATEMENT"), statement, format_("ROW")
        expect("logged as a statement", *text)
        execute(source, "TRUNCATE TABLE shop.orders")
        change = "UPDATE shop.orders SET note = 'b'"
        image = "SET SESSION binlog_row_image = '{}'".format
        expect("does not have its whole rows", image("MINIMAL"), change, image("FULL"))
        execute(source, *again, SETUP[5])
        parents = "INSERT INTO crm.parent VALUES (2, 'ä', 2, 2, 2), (3, 'ö', 3, 3, 3)"
        tag = "INSERT INTO shop.tags (code) VALUES ('ä')"
        expect("not known when its foreign keys are equal", parents, tag)
        execute(source, "TRUNCATE TABLE shop.tags", "TRUNCATE TABLE shop.orders")
        expect("")
        assert serve.execute("SHOW BINLOGS")


def test_it_needs_whole_rows(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        for clauses in ("FORMAT='MIXED', FOLLOW CASCADES", "ROW_IMAGE='MINIMAL' FOLLOW CASCADES"):
            with pytest.raises(pymysql.MySQLError, match="does not have whole rows"):
                serve.execute(f"CREATE BINLOG 'shop' LOG(shop) {clauses}")
        serve.execute("CREATE BINLOG 'shop' LOG(shop)", "ALTER BINLOG 'shop' FOLLOW CASCADES")
        with pytest.raises(pymysql.MySQLError, match="does not have whole rows"):
            serve.execute("ALTER BINLOG 'shop' FORMAT='STATEMENT'")
        serve.execute("ALTER BINLOG 'shop' NOFOLLOW CASCADES, FORMAT='STATEMENT'")


def test_tables_that_come_with_their_rows(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("source")
    create_account(source)
    execute(
        source,
        *SETUP,
        "INSERT INTO crm.parent VALUES (1, 'x', 1, 1, 1), (2, 'y', 2, 2, 2), (3, 'z', 3, 3, 3)",
        "INSERT INTO shop.orders (parent) VALUES (1), (2), (2), (3)",
        "INSERT INTO shop.items (o) VALUES (1), (2)",
        "INSERT INTO shop.tags (parent) VALUES (2), (3)",
    )
    with ServeProcess(tmp_path / "serve", source) as serve:
        scope = "LOG(shop.orders, shop.items)"
        serve.execute(f"CREATE BINLOG 'shop' {scope} FOLLOW CASCADES WITH ROWS")
        wait_until(lambda: "has its tables' rows" in serve.log)
        execute(source, "DELETE FROM crm.parent WHERE id = 1")
        serve.wait_until_complete("shop")
        assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
        assert derived(serve) == 2
        serve.execute("ALTER BINLOG 'shop' ADD LOG(shop.tags) WITH ROWS")
        wait_until(lambda: serve.log.count("has its tables' rows") == 2)
        execute(source, "DELETE FROM crm.parent WHERE id = 2")
        serve.wait_until_complete("shop")
        assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
        assert derived(serve) == 6
        # Of these no rows are known; of the others they are, but an INCIDENT says nothing of them.
        serve.execute("ALTER BINLOG 'shop' ADD LOG(shop.tree)")
        execute(source, "DELETE FROM crm.parent WHERE id = 3")
        serve.wait_until_complete("shop")
        told = str(serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'"))
        assert "its CREATE TABLE is not in the binlog" in told


def _fill(source: PrivateServer) -> None:
    """Make so many rows of children that they are read beside the routing thread."""
    execute(source, *SETUP, "CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
    execute(source, "INSERT INTO crm.parent (id) SELECT seq FROM crm.seq_1_to_50")
    for _ in range(6):
        execute(
            source,
            "INSERT INTO shop.orders (parent, note)"
            " SELECT 1 + seq % 50, REPEAT('n', 300) FROM crm.seq_1_to_10000",
        )


def _state(serve: ServeProcess) -> str:
    return next(str(row[7]) for row in serve.execute("SHOW BINLOGS") if row[0] == "shop")


def test_others_go_on_while_a_changed_scope_waits_for_rows_of_children(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("source")
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG 'shop' LOG(shop)")
        _fill(source)
        serve.wait_until_complete("shop")
        serve.execute("CREATE BINLOG 'other' LOG(other)")
        serve.execute("ALTER BINLOG 'shop' FOLLOW CASCADES")
        wider = "ALTER BINLOG 'shop' ADD LOG(more)"

        def alter() -> None:
            with suppress(pymysql.MySQLError):  # `serve` is killed
                serve.execute(wider)

        altering = threading.Thread(target=alter)
        altering.start()
        wait_until(lambda: "reading rows of children" in _state(serve))
        execute(source, "INSERT INTO other.t VALUES (1)")
        serve.wait_until_complete("other")
        assert altering.is_alive()
        serve.kill()
        altering.join()
        serve.start()
        serve.execute(wider)
        execute(source, "DELETE FROM crm.parent WHERE id = 1")
        serve.wait_until_complete("shop")
        assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
        assert derived(serve) > 0


def test_others_go_on_while_many_rows_of_children_are_read(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source, replica = servers.start("source"), servers.start("replica", ("--server-id=40",))
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG 'shop' LOG(shop)")
        begin = serve.wait_until_complete("shop")
        _fill(source)
        serve.wait_until_complete("shop")
        serve.execute("ALTER BINLOG 'shop' FOLLOW CASCADES")
        serve.execute("CREATE BINLOG 'other' LOG(other)")
        execute(source, "DELETE FROM crm.parent WHERE id = 1")
        wait_until(lambda: "reading rows of children" in _state(serve))
        execute(source, "INSERT INTO other.t VALUES (1)")
        serve.wait_until_complete("other")
        assert _state(serve).startswith("CATCHING UP: reading rows of children")
        serve.kill()
        serve.start()
        wait_until(lambda: _state(serve) == "OPEN")
        execute(source, "DELETE FROM crm.parent WHERE id = 2")
        serve.execute("DROP BINLOG 'other'")
        follow(replica, serve, begin)
        expect_equal(source, replica, serve)
        assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
        assert derived(serve) > 1
        # A new beginning has all rows: those of children are read from there.
        serve.execute("ALTER BINLOG 'shop' COMPACT")
        wait_until(lambda: "has its tables' rows" in serve.log)
        wait_until(lambda: _state(serve) == "OPEN")
        execute(source, "DELETE FROM crm.parent WHERE id = 3")
        expect_equal(source, replica, serve)
        assert serve.execute("SHOW BINLOG INCIDENTS FOR 'shop'") == ()
        assert derived(serve) > 0
