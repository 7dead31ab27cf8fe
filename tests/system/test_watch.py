"""`binlane watch` of running servers, both flavors: as changes come, and through restarts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from tests.rules import ROOT
from tests.schema_changes import SWAPPED
from tests.serve_process import ServeProcess, create_account, source_position
from tests.servers import ServerFactory, connect, execute, mysql_program
from tests.watching import Watching, watching

FLAVORS = ["mariadb", "mysql"]
_NO_NAMES = ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")
_SHOP = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20), total DECIMAL(8, 2))",
)


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest) -> PrivateServer:
    """A shared server of each flavor."""
    found: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    execute(found, "DROP DATABASE IF EXISTS shop", *_SHOP)
    return found


def rows(process: Watching) -> list[dict[str, Any]]:
    return [each for each in process.objects if each["type"] in {"insert", "update", "delete"}]


def has_rows(process: Watching, count: int) -> bool:
    return len(rows(process)) == count


def texts(process: Watching, word: str) -> list[str]:
    """What stands behind the operation, of the lines that have a word."""
    return [line.partition(f" {word} ")[2].strip() for line in process.lines if f" {word} " in line]


def test_changes_are_shown_as_they_come(server: PrivateServer) -> None:
    with watching(server) as process:
        execute(server, "INSERT INTO shop.orders VALUES (1, 'new', 9.90), (2, 'new', 1)")
        process.wait_for(lambda: len(texts(process, "INSERT")) == 2)
        execute(server, "UPDATE shop.orders SET state = 'paid' WHERE id = 1")
        process.wait_for(lambda: bool(texts(process, "UPDATE")))
        execute(server, "DELETE FROM shop.orders WHERE id = 2")
        process.wait_for(lambda: bool(texts(process, "DELETE")))
        assert texts(process, "INSERT")[1].startswith("shop.orders id=2 state='new' total=1.00")
        assert texts(process, "UPDATE")[0].startswith("shop.orders id=1 state: 'new' → 'paid'")
        assert texts(process, "DELETE")[0].startswith("shop.orders id=2 state='new' total=1.00")
        first, second = (line for line in process.lines if " INSERT " in line)
        assert " ┌ " in first
        assert " │ " in second
        assert first.split()[:3] == second.split()[:3]
        assert process.interrupt() == 130


def test_only_chosen_tables_and_operations(server: PrivateServer) -> None:
    execute(
        server,
        "CREATE TABLE shop.picked (id INT PRIMARY KEY, name TEXT)",
        "CREATE TABLE shop.items (id INT PRIMARY KEY, name TEXT)",
    )
    arguments = ("--tables", "shop.picked", "--op", "insert,delete", "--format=json", "--count=2")
    with Watching(server.url, "--since", "1m", *arguments) as process:
        execute(
            server,
            "INSERT INTO shop.items VALUES (1, 'x')",
            "INSERT INTO shop.picked VALUES (1, 'new')",
            "UPDATE shop.picked SET name = 'paid'",
            "DELETE FROM shop.items",
            "DELETE FROM shop.picked",
        )
        assert process.end() == 0
        kinds = [(each["type"], each["table"]) for each in process.objects]
    assert kinds == [("insert", "picked"), ("delete", "picked")]


def test_a_name_is_watched_through_a_swap(server: PrivateServer) -> None:
    now = source_position(server)
    with Watching(server.url, "--tables=shop.orders", f"--since={now}", "--count=5") as process:
        execute(server, "INSERT INTO shop.orders VALUES (1, 'new', 1)", *SWAPPED)
        assert process.end() == 0
    assert [text.partition(" (")[0].strip() for text in texts(process, "┌ UPDATE")] == [
        "shop.orders id=1 total: 1.00 → 3.00",
        "shop.orders id=1 state: 'new' → 'sent'",
    ]
    (trigger, renamed) = texts(process, "DDL")
    assert "TRIGGER" in trigger
    assert (
        "RENAME TABLE shop.orders TO shop._orders_old, shop._orders_new TO shop.orders" in renamed
    )
    assert not process.remarks


def test_a_table_that_was_chosen_as_such_is_followed_out_of_its_name(server: PrivateServer) -> None:
    now = source_position(server)
    execute(server, "INSERT INTO shop.orders VALUES (1, 'new', 1)", *SWAPPED)
    with Watching(server.url, "--do-table=shop.orders", f"--since={now}", "--no-follow") as process:
        assert process.end() == 0
    assert len(texts(process, "┌ UPDATE")) == 1
    assert "DROP TABLE `shop`.`_orders_old`" in texts(process, "DDL")[-1]
    assert any("changes of shop.orders are left out from here on" in x for x in process.remarks)


@pytest.mark.parametrize(
    "flavor, end",
    [
        ("mariadb", PrivateServer.stop),
        ("mariadb", PrivateServer.kill),
        # A clean shutdown of MySQL waits ten seconds for those whom it sends its log.
        pytest.param("mysql", PrivateServer.stop, marks=pytest.mark.slow),
        ("mysql", PrivateServer.kill),
    ],
)
def test_it_goes_on_when_the_server_is_back(
    flavor: str, end: Callable[[PrivateServer], None], servers: ServerFactory
) -> None:
    source = servers.start("s") if flavor == "mariadb" else servers.start_mysql("s")
    execute(source, *_SHOP)
    with watching(source, "--format=json", "--quiet") as process:
        execute(source, "INSERT INTO shop.orders VALUES (1, 'new', 1)")
        process.wait_for(lambda: len(rows(process)) == 1)
        for number in (2, 3):
            end(source)
            source.restart()
            execute(source, f"INSERT INTO shop.orders VALUES ({number}, 'new', 1)")
            process.wait_for(partial(has_rows, process, number))
        assert [each["after"]["id"] for each in rows(process)] == [1, 2, 3]


def test_a_lost_server_and_its_return_are_told(servers: ServerFactory) -> None:
    source = servers.start("s")
    with watching(source) as process:
        source.kill()
        process.wait_for(lambda: any("trying again" in line for line in process.remarks))
        source.restart()
        process.wait_for(lambda: any("is back" in line for line in process.remarks))
        assert sum("trying again" in line for line in process.remarks) == 1


def test_a_log_that_was_reset_is_an_error(servers: ServerFactory) -> None:
    source = servers.start("s")
    execute(source, *_SHOP)
    with watching(source) as process:
        execute(source, "RESET MASTER")
        source.stop()
        source.restart()
        assert process.end() == 3
        assert any("1236" in line or "log" in line for line in process.remarks)


def test_names_come_from_the_server_where_its_log_has_none(servers: ServerFactory) -> None:
    source = servers.start("s", _NO_NAMES)
    execute(source, *_SHOP, "INSERT INTO shop.orders VALUES (1, 'new', 1)")
    with watching(source) as process:
        execute(
            source,
            "UPDATE shop.orders SET state = 'paid'",
            "ALTER TABLE shop.orders RENAME COLUMN state TO phase, ADD COLUMN more INT FIRST",
            "UPDATE shop.orders SET phase = 'sent'",
        )
        process.wait_for(lambda: len(texts(process, "UPDATE")) == 2)
        assert texts(process, "UPDATE") == [
            "shop.orders id=1 state: 'new' → 'paid'",
            "shop.orders id=1 phase: 'paid' → 'sent'",
        ]
    # Of what was logged before, the log's own statements tell the names.
    with Watching(source.url, "--from-beginning", "--no-follow", "--op=insert") as process:
        assert process.end() == 0
        assert texts(process, "INSERT") == ["shop.orders id=1 state='new' total=1.00"]


def test_files_are_followed_into_later_ones(servers: ServerFactory) -> None:
    source = servers.start("s")
    execute(source, *_SHOP)
    file = source.data_directory / "binlog.000001"
    for log in (file, file.with_name("binlog.index")):
        execute(source, "DELETE FROM shop.orders")
        with Watching(str(log), "--since=1h", "--tables=shop.orders", "--format=json") as process:
            seen = len([row for row in rows_of_files(source) if row["table"] == "orders"])
            process.wait_for(partial(has_rows, process, seen))
            execute(
                source,
                "INSERT INTO shop.orders VALUES (1, 'new', 1)",
                "FLUSH BINARY LOGS",
                "FLUSH BINARY LOGS",
                "INSERT INTO shop.orders VALUES (2, 'new', 1)",
            )
            process.wait_for(partial(has_rows, process, seen + 2))
            assert [each["after"]["id"] for each in rows(process)[-2:]] == [1, 2]
            assert process.interrupt() == 130


def rows_of_files(server: PrivateServer) -> list[dict[str, Any]]:
    """All rows in the files of a server, as `cat` prints them."""
    files = sorted(map(str, server.data_directory.glob("binlog.0*")))
    printed = subprocess.run(
        [sys.executable, "-m", "binlane", "cat", "--format=json", "-v", *files],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = [json.loads(line) for line in printed.splitlines()]
    return [each for each in found if "row" in each]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_binlogs_of_binlane_are_watched_at_its_port_and_in_its_store(
    flavor: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if flavor == "mysql":
        mysql_program()
    source: PrivateServer = request.getfixturevalue(f"{flavor}_server")
    execute(source, "DROP DATABASE IF EXISTS shop", *_SHOP, "CREATE TABLE shop.other (id INT)")
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute(
            "CREATE BINLOG orders LOG (shop.orders)", "CREATE BINLOG other LOG (shop.other)"
        )
        port = f"{source.url.partition('@')[0].partition('://')[0]}://binlane@127.0.0.1:{serve.port}#orders"
        secret = str(serve.directory / "secret")
        common = ("--format=json", "--from-beginning", "--count=2", "--op=insert")
        with (
            Watching(port, f"--password-file={secret}", *common) as at_port,
            Watching(f"{serve.directory / 'data'}#orders", *common) as in_store,
        ):
            execute(
                source,
                "INSERT INTO shop.orders VALUES (1, 'new', 1)",
                "INSERT INTO shop.other VALUES (5)",
                "INSERT INTO shop.orders VALUES (2, 'new', 1)",
            )
            for process in (at_port, in_store):
                assert process.end() == 0, process.remarks
                assert [each["after"]["id"] for each in process.objects] == [1, 2]
                assert {each["file"] for each in process.objects} == {"orders.000001"}


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_name_in_a_binlog_is_watched_through_a_swap(
    flavor: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The binlog gets the rows that come in under names of its own."""
    source: PrivateServer = request.getfixturevalue(f"{flavor}_server")
    execute(source, "DROP DATABASE IF EXISTS shop", "DROP USER IF EXISTS binlane@'%'")
    execute(source, "CREATE DATABASE shop")
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG orders LOG (shop.orders)")
        execute(source, _SHOP[1], "INSERT INTO shop.orders VALUES (1, 'new', 1)", *SWAPPED)
        common = ("--format=json", "--tables=shop.orders", "--from-beginning", "--op=insert,update")
        with Watching(f"{serve.data_dir}#orders", *common, "--count=3") as process:
            assert process.end() == 0, process.remarks
    kinds = [(each["type"], each["after"].get("extra")) for each in process.objects]
    assert kinds == [("insert", None), ("update", None), ("update", 7)]


def test_the_lines_that_the_documentation_shows(server: PrivateServer) -> None:
    page = (ROOT / "docs/how-to/watch.md").read_text()
    [statements] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    execute(server, "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop", "FLUSH BINARY LOGS")
    start = execute(server, "SHOW BINARY LOGS")[-1][0]
    execute(server, "USE shop", *filter(None, statements.replace("\n", "").split(";")))
    with Watching(server.url, f"--since={start}:4", "--count=5") as process:
        assert process.end() == 0
        lines = [line.split(maxsplit=2)[2].partition(" ")[2] for line in process.lines]
    expected = [line.split(maxsplit=1)[1].partition(" ")[2] for line in shown.splitlines()[1:]]
    assert len(lines) == len(expected) == 5
    for line, cut in zip(lines, expected, strict=True):
        assert line.startswith(cut.removesuffix("…"))


def test_it_goes_on_when_binlane_is_back(mariadb_server: PrivateServer, tmp_path: Path) -> None:
    source = mariadb_server
    execute(source, "DROP DATABASE IF EXISTS shop", "DROP USER IF EXISTS binlane@'%'", *_SHOP)
    create_account(source)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute("CREATE BINLOG orders LOG (shop.orders)")
        port = f"mariadb://binlane@127.0.0.1:{serve.port}#orders"
        common = ("--format=json", "--from-beginning", "--op=insert")
        with (
            Watching(port, f"--password-file={serve.directory / 'secret'}", *common) as at_port,
            Watching(f"{serve.directory / 'data'}#orders", *common) as in_store,
        ):
            for number in range(1, 4):
                execute(source, f"INSERT INTO shop.orders VALUES ({number}, 'new', 1)")
                at_port.wait_for(partial(has_rows, at_port, number))
                in_store.wait_for(partial(has_rows, in_store, number))
                serve.kill()
                serve.start()
            for process in (at_port, in_store):
                assert [each["after"]["id"] for each in process.objects] == [1, 2, 3]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_is_lost_or_doubled_beside_writers(flavor: str, servers: ServerFactory) -> None:
    options = ("--max-binlog-size=65536",)
    if flavor == "mariadb":
        source = servers.start("s", (*SOURCE_OPTIONS, *options))
    else:
        source = servers.start_mysql("s", *options)
    execute(source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, x TEXT)")
    rows_wanted = 4 * 150
    arguments = ("--format=json", "--tables=shop.t", "--op=insert", f"--count={rows_wanted}")
    index = str(source.data_directory / "binlog.index")
    with (
        Watching(source.url, "--from-beginning", *arguments) as of_server,
        Watching(index, "--from-beginning", *arguments) as of_files,
    ):
        writers = [Thread(target=_write, args=(source, number)) for number in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        for process in (of_server, of_files):
            assert process.end() == 0, process.remarks
            places = [(each["file"], each["position"], each["row"]) for each in process.objects]
            assert places == sorted(set(places))
            found = {each["after"]["id"] for each in process.objects}
            assert found == {1000 * writer + row for writer in range(4) for row in range(150)}
        assert of_server.objects == of_files.objects
        assert len({each["file"] for each in of_files.objects}) > 3


def _write(server: PrivateServer, writer: int) -> None:
    with connect(server, autocommit=True) as session, session.cursor() as cursor:
        for row in range(0, 150, 3):
            values = ", ".join(
                f"({1000 * writer + row + each}, REPEAT('x', 900))" for each in range(3)
            )
            cursor.execute(f"INSERT INTO shop.t VALUES {values}")
