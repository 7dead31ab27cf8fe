"""Binlogs that begin with their tables, with replicas that have nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest

from binlane.binlogs.store.verify import verify
from binlane.live.provision.private_server import PrivateServer
from tests.landed_select import current_schema, current_values, selected_values
from tests.serve_process import wait_until, worker_processes
from tests.servers import connect, execute
from tests.with_rows import FLAVORS, RowsStage

CREATE = "CREATE BINLOG 'orders' LOG(shop.orders, shop.items, shop.notes) WITH ROWS"
ALL = ("items", "notes", "orders", "others")
_SMALL_FILES = "[binlog]\nmax_binlog_size = 16384\n"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_replica_begins_with_nothing(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=3000) as stage:
        stage.fill_tables(2000)
        early, late = stage.replica(), stage.replica()
        with stage.writing():
            stage.serve.execute_as_root(CREATE)
            stage.follow(early)  # before there is anything
            wait_until(lambda: "%" in stage.state())
            assert stage.state().startswith("READING ROWS: ")
            assert "@" not in str(stage.serve.execute_as_root("SHOW BINLOGS"))
            stage.wait_until_filled()
            time.sleep(0.5)
            stage.follow(late)
            time.sleep(0.5)
        assert not stage.differences(early)
        assert not stage.differences(late)
        assert execute(early, "SHOW TABLES FROM shop") == execute(late, "SHOW TABLES FROM shop")
        stage.serve.stop()
        assert not list(verify([stage.serve.data_dir]))
        assert not list((stage.serve.data_dir / "fills").iterdir())
        assert [each.name for each in (stage.serve.data_dir / "binlogs").iterdir()] == ["orders"]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_whatever_is_killed_meanwhile(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=1500) as stage:
        stage.fill_tables(2000)
        replica = stage.replica()
        with stage.writing():
            stage.serve.execute_as_root(CREATE)
            stage.follow(replica)
            for wait_s in (0.5, 1.0, 0.3):
                time.sleep(wait_s)
                stage.serve.kill()
                stage.serve.start()
            stage.source.kill()
            stage.source.restart()
            stage.serve.kill()
            stage.serve.start()
            deadline = time.monotonic() + 15
            # Until then it is killed whenever it places rows.
            while stage.state() != "OPEN" and time.monotonic() < deadline:
                if "placing" in stage.state() or "reconciling" in stage.state():
                    stage.serve.kill()
                    stage.serve.start()
                    time.sleep(0.5)
                time.sleep(0.02)
            stage.wait_until_filled()
        assert not stage.differences(replica)
        fresh = stage.replica()
        stage.follow(fresh)
        assert not stage.differences(fresh)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("flavor", FLAVORS)
def test_twenty_kills_beside_eight_writers(tmp_path: Path, flavor: str, workers: int) -> None:
    chance = random.Random(20)
    settings = f"[gateway]\nworkers = {workers}\n"
    with RowsStage(tmp_path, flavor, rows_per_s=1500, settings=settings) as stage:
        stage.fill_tables(4000)
        replica = stage.replica()
        with stage.writing(8):
            stage.serve.execute_as_root(CREATE)
            stage.follow(replica)
            for number in range(20):
                time.sleep(chance.uniform(0.1, 1.2))
                if number % 5 == 4:
                    stage.source.kill()
                    stage.source.restart()
                elif workers and number % 2:
                    os.kill(chance.choice(worker_processes(stage.serve)), signal.SIGKILL)
                else:
                    stage.serve.kill()
                    stage.serve.start()
            stage.wait_until_filled()
        assert not stage.differences(replica)
        fresh = stage.replica()
        stage.follow(fresh)
        assert not stage.differences(fresh)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_replica_stops_within_the_beginning_and_goes_on(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(2000)
        stage.serve.execute_as_root(CREATE)
        stage.wait_until_filled()
        replica = stage.replica()
        lock = "LOCK TABLES shop.orders READ"
        execute(replica, "CREATE DATABASE shop")
        stage.follow(replica)
        blocked = pymysql.connect(host="127.0.0.1", port=replica.port, user="root")
        wait_until(lambda: bool(execute(replica, "SHOW TABLES FROM shop LIKE 'orders'")))
        with blocked, blocked.cursor() as cursor:
            cursor.execute(lock)
            cursor.execute("SELECT SLEEP(0.5)")
            replica.kill()
        replica.restart()
        stage.go_on(replica)
        execute(stage.source, "DELETE FROM shop.orders WHERE id < 10")
        assert not stage.differences(replica)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_replica_that_has_the_tables_skips_the_beginning(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(300)
        stage.serve.execute_as_root(CREATE)
        stage.wait_until_filled()
        execute(stage.source, "DELETE FROM shop.orders WHERE id < 10")
        stage.serve.wait_until_complete("orders")
        copied, part = stage.replica(), stage.replica()
        for each in (copied, part):
            _copy(stage, each)
        variable, begin = _known_positions(stage)
        execute(copied, f"SET GLOBAL {variable} = '{begin[-1]}'")
        execute(part, f"SET GLOBAL {variable} = '{begin[0]}'")
        for each in (copied, part):
            stage.follow(each)
        execute(stage.source, "DELETE FROM shop.orders WHERE id < 20")
        assert not stage.differences(copied)
        # This one has something of the source, and not what the rows stand for.
        assert "begins with the rows as of" in stage.differences(part)


def _known_positions(stage: RowsStage) -> tuple[str, list[str]]:
    """A variable for what a replica has; a position within the source's log, and its end."""
    if stage.is_mysql:
        end = str(execute(stage.source, "SELECT @@GLOBAL.gtid_executed")[0][0])
        return "gtid_purged", [f"{end.rpartition(':')[0]}:1-3", end]
    end = str(execute(stage.source, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
    return "gtid_slave_pos", ["0-1-3", end]


def _copy(stage: RowsStage, replica: PrivateServer) -> None:
    """Give a replica the tables as they are now, as a backup would."""
    with (
        connect(stage.source) as source,
        connect(replica) as copy,
        source.cursor() as read,
        copy.cursor() as write,
    ):
        write.execute("SET sql_log_bin = 0")
        write.execute("CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4")
        write.execute("USE shop")
        for table in ("orders", "items", "notes"):
            read.execute(f"SHOW CREATE TABLE shop.{table}")
            write.execute(read.fetchall()[0][1])
            read.execute(f"SELECT * FROM shop.{table}")
            rows = read.fetchall()
            marks = ", ".join(["%s"] * len(rows[0]))
            write.executemany(f"INSERT INTO shop.{table} VALUES ({marks})", rows)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_table_comes_in_with_its_rows(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=3000) as stage:
        stage.fill_tables(1500)
        stage.serve.execute_as_root(CREATE)
        stage.wait_until_filled()
        replica = stage.replica()
        stage.follow(replica)
        with stage.writing():
            stage.serve.execute_as_root("ALTER BINLOG 'orders' ADD LOG(shop.others) WITH ROWS")
            wait_until(lambda: "reading rows" in stage.state())
            with pytest.raises(pymysql.MySQLError, match="is being given rows"):
                stage.serve.execute_as_root("ALTER BINLOG 'orders' FORMAT='MIXED'")
            stage.serve.kill()
            stage.serve.start()
            stage.wait_until_filled()
            time.sleep(0.5)
        assert not stage.differences(replica, ALL)
        fresh = stage.replica()
        stage.follow(fresh)
        assert not stage.differences(fresh, ALL)


@pytest.mark.parametrize(
    ("flavor", "settings"),
    [
        ("mariadb", ""),
        ("mysql", _SMALL_FILES),
        pytest.param("mysql", "", marks=pytest.mark.slow),
        pytest.param("mariadb", _SMALL_FILES, marks=pytest.mark.slow),
    ],
)
def test_a_later_beginning_takes_the_place_of_what_was_before(
    tmp_path: Path, flavor: str, settings: str
) -> None:
    with RowsStage(tmp_path, flavor, settings=settings) as stage:
        stage.fill_tables(1000)
        stage.serve.execute_as_root(CREATE)
        stage.wait_until_filled()
        replica, stopped = stage.replica(), stage.replica()
        for each in (replica, stopped):
            stage.follow(each)
            assert not stage.differences(each)
        stage.stop(stopped)
        with stage.writing():
            time.sleep(0.5)
            stage.serve.execute_as_root("ALTER BINLOG 'orders' COMPACT")
            wait_until(lambda: stage.state() != "OPEN")
            stage.wait_until_filled()
            time.sleep(0.5)
        assert not stage.differences(replica)
        files = [row[0] for row in stage.serve.execute_as_root("SHOW BINARY LOGS FOR 'orders'")]
        assert "orders.000001" not in files
        fresh = stage.replica()
        stage.follow(fresh)
        assert not stage.differences(fresh)
        stage.go_on(stopped)
        assert "begins with the rows as of" in stage.differences(stopped)
        # It goes on from within, whatever was dropped.
        stage.stop(replica)
        execute(stage.source, "DELETE FROM shop.items WHERE order_id < 50")
        stage.go_on(replica)
        assert not stage.differences(replica)


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_later_beginning_leaves_the_files_that_a_replica_reads(
    tmp_path: Path, flavor: str
) -> None:
    with RowsStage(tmp_path, flavor, settings='[binlog]\nmax_binlog_size = "1M"\n') as stage:
        stage.fill_tables(100)
        run = stage.serve.execute_as_root
        run(CREATE)
        stage.wait_until_filled()
        # It takes no more than its small relay log has room for, while its SQL thread waits.
        replica = stage.replica("--relay-log-space-limit=65536", "--max-relay-log-size=16384")
        stage.follow(replica)
        assert not stage.differences(replica)
        with connect(replica) as held, held.cursor() as cursor:
            cursor.execute("LOCK TABLES shop.notes READ")
            for first in range(0, 300, 20):
                rows = (f"('big', {n}, REPEAT('x', 60000))" for n in range(first, first + 20))
                execute(stage.source, f"INSERT INTO shop.notes VALUES {', '.join(rows)}")
            execute(stage.source, "DELETE FROM shop.notes WHERE a = 'big'")
            stage.serve.wait_until_complete("orders")
            run("ALTER BINLOG 'orders' COMPACT")
            wait_until(lambda: stage.state() != "OPEN")
            stage.wait_until_filled()
            files = [row[0] for row in run("SHOW BINARY LOGS")]
            assert len(files) > 10
            fresh = stage.replica()
            stage.follow(fresh)
            assert not stage.differences(fresh)
        assert not stage.differences(replica)
        # Nobody reads them any more.
        wait_until(lambda: len(run("SHOW BINARY LOGS")) < 5)
        last = stage.replica()
        stage.follow(last)
        assert not stage.differences(last)


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_binlog_is_dropped_while_it_is_filled(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=200) as stage:
        stage.fill_tables(1000)
        stage.serve.execute_as_root(CREATE)
        wait_until(lambda: "%" in stage.state())
        stage.serve.execute_as_root("DROP BINLOG 'orders'")
        assert stage.state() == ""
        folders = [stage.serve.data_dir / name for name in ("fills", "binlogs")]
        wait_until(lambda: not [each for folder in folders for each in folder.iterdir()])
        stage.serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop.notes) WITH ROWS")
        wait_until(lambda: "%" in stage.state())
        stage.serve.kill()
        stage.serve.start()
        stage.serve.execute_as_root("DROP BINLOG 'orders'")
        assert stage.state() == ""
        assert not list((stage.serve.data_dir / "binlogs").iterdir())


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_binlog_without_its_rows_hinders_nobody(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=200) as stage:
        stage.fill_tables(1000)
        run = stage.serve.execute_as_root
        run(CREATE)
        wait_until(lambda: "%" in stage.state())
        # Clients that begin ask for all variables; these do not ask where the binlog is.
        assert len(run("SHOW VARIABLES")) > 100
        assert len(run("SHOW GLOBAL VARIABLES")) > 100
        assert len(run("SHOW GLOBAL STATUS")) > 100
        position = "gtid_executed" if stage.is_mysql else "gtid_binlog_pos"
        for asked in (f"SHOW GLOBAL VARIABLES LIKE '{position}'", "SHOW BINARY LOGS"):
            with pytest.raises(pymysql.MySQLError, match="it is being given rows"):
                run(asked)
        run("CREATE BINLOG 'others' LOG(shop.others)")
        assert {row[0] for row in run("SHOW BINARY LOGS")} == {"orders.000001", "others.000001"}
        with pytest.raises(pymysql.MySQLError, match="it is being given rows"):
            run("SHOW BINARY LOGS FOR 'orders'")


def test_tables_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with RowsStage(tmp_path, "mariadb") as stage:
        stage.fill_tables(100)
        execute(stage.source, "REVOKE SELECT ON *.* FROM binlane@'%'")
        stage.serve.kill()
        stage.serve.start()
        stage.serve.execute_as_root(CREATE)
        wait_until(lambda: "cannot be read" in stage.state())
        with stage.serve.connect("root", "") as session, session.cursor() as cursor:
            cursor.execute("SHOW BINLOGS")
            cursor.execute("SHOW WARNINGS")
            told = str(cursor.fetchall())
        assert "rows cannot be read" in told
        execute(stage.source, "GRANT SELECT ON *.* TO binlane@'%'")
        wait_until(lambda: stage.state() == "OPEN")
        replica = stage.replica()
        stage.follow(replica)
        assert not stage.differences(replica)


def test_rows_beyond_the_limit_wait_for_another_limit(tmp_path: Path) -> None:
    with RowsStage(tmp_path, "mariadb") as stage:
        stage.fill_tables(300)
        stage.serve.configure(listen="", extra='[rows]\nmax_size = "4K"\n')
        os.kill(stage.serve.process_id, signal.SIGHUP)
        stage.serve.execute_as_root(CREATE)
        wait_until(lambda: "more than the 4,096 bytes" in stage.state())
        assert stage.state().startswith("STOPPED: rows cannot be read: ")
        stage.serve.configure(listen="", extra='[rows]\nmax_size = "1G"\n')
        os.kill(stage.serve.process_id, signal.SIGHUP)
        wait_until(lambda: stage.state() == "OPEN")
        replica = stage.replica()
        stage.follow(replica)
        assert not stage.differences(replica)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_tables_of_all_kinds_come_as_they_are(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        execute(
            stage.source,
            "CREATE DATABASE crm",
            "CREATE TABLE crm.people (id INT PRIMARY KEY)",
            "CREATE TABLE shop.bought (id INT PRIMARY KEY, who INT, what INT COMMENT 'crm.people',"
            " CONSTRAINT by_whom FOREIGN KEY (who) REFERENCES crm.people (id),"
            " CONSTRAINT of_what FOREIGN KEY (what) REFERENCES shop.orders (id))",
            "CREATE TABLE shop.keyless (a INT, b VARCHAR(10))",
            "CREATE TABLE shop.`odd ``name` (`k``` CHAR(5) CHARACTER SET latin1 PRIMARY KEY,"
            " twice BIGINT AS (u * 2) STORED, e ENUM('x', 'ü'), u INT UNSIGNED)"
            " DEFAULT CHARSET=utf8mb4",
            "INSERT INTO crm.people VALUES (1), (2)",
            "INSERT INTO shop.bought VALUES (1, 1, NULL), (2, 2, NULL)",
            "INSERT INTO shop.keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL)",
            "INSERT INTO shop.`odd ``name` (`k```, e, u) VALUES ('é', 'ü', 4294967295)",
        )
        stage.fill_tables(20)
        stage.serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop) WITH ROWS")
        stage.wait_until_filled()
        replica = stage.replica()
        stage.follow(replica)
        execute(
            stage.source,
            "INSERT INTO shop.bought VALUES (3, 1, 5)",
            "DELETE FROM shop.keyless WHERE a = 1 LIMIT 1",
            "UPDATE shop.`odd ``name` SET e = 'x'",
            "ALTER TABLE shop.bought DROP FOREIGN KEY by_whom",
            "CREATE TABLE shop.later (id INT PRIMARY KEY) SELECT 1 AS id",
        )
        names = (*ALL, "bought", "keyless", "`odd ``name`", "later")
        assert not stage.differences(replica, names)
        text = execute(replica, "SHOW CREATE TABLE shop.bought")[0][1]
        assert "of_what" in text
        assert "crm" not in text


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_tables_come_and_go_while_rows_are_read(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor, rows_per_s=1500) as stage:
        stage.fill_tables(1000)
        replica = stage.replica()
        with stage.writing(1):
            stage.serve.execute_as_root("CREATE BINLOG 'orders' LOG(shop) WITH ROWS")
            stage.follow(replica)
            wait_until(lambda: "%" in stage.state())
            execute(
                stage.source,
                "CREATE TABLE shop.brief (id INT PRIMARY KEY)",
                "INSERT INTO shop.brief VALUES (1)",
                "DROP TABLE shop.brief",
                "CREATE TABLE shop.one (id INT PRIMARY KEY)",
                "RENAME TABLE shop.one TO shop.two",
                "DROP TABLE shop.two",
                "CREATE VIEW shop.seen AS SELECT id FROM shop.orders",
                # As a schema change does.
                "CREATE TABLE shop._notes_new LIKE shop.notes",
                "INSERT INTO shop._notes_new SELECT * FROM shop.notes",
                "RENAME TABLE shop.notes TO shop._notes_old, shop._notes_new TO shop.notes",
                "DROP TABLE shop._notes_old",
                "RENAME TABLE shop.others TO shop.moved",
                "RENAME TABLE shop.moved TO shop.others",
                "DROP TABLE shop.items",
            )
            wait_until(lambda: stage.state() == "OPEN")
        assert not stage.differences(replica, ("notes", "orders", "others"))
        assert "items" not in str(execute(replica, "SHOW TABLES FROM shop"))


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def test_a_table_that_is_held_locked_is_told_and_holds_up_no_other_binlog(
    tmp_path: Path, flavor: str
) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(300)
        with connect(stage.source) as holder, holder.cursor() as cursor:
            cursor.execute("LOCK TABLES shop.items WRITE")
            stage.serve.execute_as_root(CREATE)
            wait_until(lambda: stage.state().startswith("READING ROWS"))
            stage.serve.execute_as_root("CREATE BINLOG 'beside' LOG(shop.others) WITH ROWS")
            wait_until(lambda: "shop.items: a session of the server has held" in stage.state())
            stage.wait_until_filled("beside")
            # It is tried again a second or two later, and stops again.
            assert stage.state().startswith(("STOPPED: rows cannot be read", "READING ROWS"))
        wait_until(lambda: stage.state() == "OPEN")


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_binlog_alone_lands_as_select(tmp_path: Path, flavor: str) -> None:
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(700)
        with stage.writing():
            stage.serve.execute_as_root(CREATE)
            stage.wait_until_filled()
        stage.serve.wait_until_complete("orders")
        stage.serve.stop()
        into = tmp_path / "lake"
        land = [sys.executable, "-m", "binlane", "land", f"{stage.serve.data_dir}#orders"]
        command = [*land, "--into", str(into), "--mode", "current"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        _check_landed(stage.source, into)


@pytest.mark.parametrize(
    ("flavor", "engine"),
    [
        ("mariadb", "embedded"),
        pytest.param("mysql", "spark", marks=pytest.mark.spark),
        pytest.param("mysql", "embedded", marks=pytest.mark.slow),
        pytest.param("mariadb", "spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_the_port_alone_lands_as_select(tmp_path: Path, flavor: str, engine: str) -> None:
    """Also anew behind COMPACT, with which a landing that follows ends."""
    with RowsStage(tmp_path, flavor) as stage:
        stage.fill_tables(300)
        log = f"{flavor}://root@127.0.0.1:{stage.serve.port}#orders"
        with stage.writing():
            stage.serve.execute_as_root(CREATE)
            stage.wait_until_filled()
            assert not _landed(log, tmp_path / "one", engine)
        stage.serve.wait_until_complete("orders")
        assert not _landed(log, tmp_path / "one", engine)
        _check_landed(stage.source, tmp_path / "one")
        stage.serve.execute_as_root("ALTER BINLOG 'orders' COMPACT")
        stage.wait_until_filled()
        execute(stage.source, "UPDATE shop.orders SET price = 0 WHERE id < 50")
        stage.serve.wait_until_complete("orders")
        told = _landed(log, tmp_path / "one", engine)
        assert "the file was purged" in told
        assert "start anew with an empty checkpoint and target: a binlog of binlane that" in told
        assert not _landed(log, tmp_path / "two", engine)
        _check_landed(stage.source, tmp_path / "two")


def _landed(log: str, into: Path, engine: str) -> str:
    """Land once; give what went wrong, else nothing."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "land", log, "--into", str(into)),
            *("--mode", "current", "--engine", engine),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "MYSQL_PWD": ""},
    )
    return done.stderr if done.returncode else ""


def _check_landed(source: PrivateServer, into: Path) -> None:
    for table in ("orders", "items", "notes"):
        path = into / "current" / "shop" / table
        expected = selected_values(_rows(source, table), current_schema(path))
        assert current_values(path) == expected
        assert expected


def _rows(source: PrivateServer, table: str) -> list[tuple[bytes | None, ...]]:
    with connect(source, charset="utf8mb4") as session, session.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM shop.{table}")
        return [
            tuple(
                None if v is None else v if isinstance(v, bytes) else str(v).encode() for v in row
            )
            for row in cursor.fetchall()
        ]


def test_tables_that_cannot_be_had_are_told_and_given_up(tmp_path: Path) -> None:
    with RowsStage(tmp_path, "mariadb", rows_per_s=200) as stage:
        stage.fill_tables(600)
        execute(
            stage.source,
            "CREATE TABLE shop.versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            "CREATE SEQUENCE shop.numbers",
        )
        run = stage.serve.execute_as_root
        run("CREATE BINLOG 'orders' LOG(shop.orders)")
        run("ALTER BINLOG 'orders' ADD LOG(shop.versioned) WITH ROWS")
        wait_until(lambda: "shop.versioned: it is system-versioned" in stage.state())
        wait_until(lambda: not list((stage.serve.data_dir / "binlogs").glob("@*")))
        assert stage.state().startswith("OPEN: rows cannot be read: ")
        run("ALTER BINLOG 'orders' WITHOUT ROWS")
        assert stage.state() == "OPEN"
        run("ALTER BINLOG 'orders' ADD LOG(shop.items) WITH ROWS")
        assert "reading rows" in stage.state()
        run("ALTER BINLOG 'orders' WITHOUT ROWS")
        wait_until(lambda: not list((stage.serve.data_dir / "binlogs").glob("@*")))
        assert stage.state() == "OPEN"
        assert run("SHOW BINLOGS")[0][4] == "shop.orders"
        run("CREATE BINLOG 'all' LOG(shop), IGNORE(shop.versioned) WITH ROWS")
        wait_until(lambda: "shop.numbers: it is a sequence" in stage.state("all"))
        assert stage.state("all").startswith("STOPPED: ")
        with pytest.raises(pymysql.MySQLError, match="is being given rows"):
            run("STOP BINLOG 'all'")
        run("DROP BINLOG 'all'")
