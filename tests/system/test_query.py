"""Queries of logs that real servers have just written: the page's examples, and logs that grow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import binlane
from binlane.cli import main
from binlane.errors import ConfigError
from binlane.live.provision.private_server import PrivateServer
from binlane.tables.query.log_connection import connect_log
from binlane.tables.query.log_tables import LogTables
from tests.rules import ROOT
from tests.serve_process import ADMIN, PASSWORD, ServeProcess, create_account
from tests.servers import ServerFactory, execute

_PAGE = ROOT / "docs/how-to/query.md"
_SHOP = (
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, price DECIMAL(10,2), state VARCHAR(9))",
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20))",
    "SET timestamp = 1769853600",
    "INSERT INTO orders VALUES (42, 7, 10.00, 'new')",
    "SET timestamp = 1769859000",
    "UPDATE orders SET price = 12.50 WHERE id = 42",
    "SET timestamp = 1769861700",
    "UPDATE orders SET price = 9.99 WHERE id = 42",
    "INSERT INTO orders VALUES (43, 8, 1.00, 'new')",
    "DELETE FROM orders WHERE id = 43",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, servers: ServerFactory) -> PrivateServer:
    if request.param == "mysql":
        return servers.start_mysql("source", "--binlog-rows-query-log-events=ON")
    return servers.start("source")


def _blocks(language: str) -> list[str]:
    parts = _PAGE.read_text().split(f"```{language}\n")[1:]
    return [part.partition("```")[0] for part in parts]


def _commands() -> Iterator[list[str]]:
    for block in _blocks("console"):
        for line in block.splitlines():
            if line.startswith("$ .venv/bin/binlane "):
                yield shlex.split(line)[2:]


def test_the_examples_of_the_page_run(
    source: PrivateServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    execute(source, *_SHOP)
    execute(source, "FLUSH BINARY LOGS")
    for path in source.data_directory.glob("binlog.0*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "report.sql").write_text("SELECT count(*) AS n FROM shop.orders;")
    (tmp_path / "customers.csv").write_text("id,name\n7,Ada\n")
    monkeypatch.chdir(tmp_path)
    files = sorted(path.name for path in tmp_path.glob("binlog.0*"))
    shown: list[str] = []
    for command in _commands():
        if not any("binlog.0*" in argument for argument in command):
            continue  # at a server, at a prompt
        arguments = [
            each
            for argument in command
            for each in (files if argument == "binlog.0*" else [argument])
        ]
        assert main(arguments) == 0, command
        shown.append(capsys.readouterr().out)
    assert len(shown) >= 9
    assert shown[0] == _blocks("text")[0]
    assert (tmp_path / "orders.parquet").exists()
    for block in _blocks("python"):
        exec(block.replace('"binlog.000001"', repr(files)).replace(".df()", ""), {})
    assert "(42, Decimal('10.00'), Decimal('12.50'))" in capsys.readouterr().out


def test_a_server_is_asked_while_it_goes_on(source: PrivateServer, tmp_path: Path) -> None:
    execute(source, *_SHOP)
    connected = connect_log(LogTables([source.url]))
    counted = "SELECT count(*), max(price) FROM shop.orders"
    first = connected.connection.execute(counted).fetchall()
    execute(source, "INSERT INTO shop.orders VALUES (44, 1, 99.00, 'new')")
    assert connected.connection.execute(counted).fetchall() == first
    connected.refresh()
    ((count, price),) = connected.connection.execute(counted).fetchall()
    assert (count, str(price)) == (first[0][0] + 1, "99.00")
    # A column and a table that are new appear, too.
    execute(source, "ALTER TABLE shop.orders ADD COLUMN note VARCHAR(20)")
    execute(source, "INSERT INTO shop.orders VALUES (45, 1, 1.00, 'new', 'hello')")
    execute(source, "INSERT INTO shop.customers VALUES (1, 'Ada')")
    connected.refresh()
    notes = connected.connection.execute(
        "SELECT note FROM shop.orders WHERE note IS NOT NULL"
    ).fetchall()
    assert notes == [("hello",)]
    assert connected.connection.execute("SELECT name FROM shop.customers").fetchall() == [("Ada",)]


def test_a_binlog_is_asked_at_the_port_and_in_the_store(
    servers: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.start("source")
    create_account(source)
    execute(source, *_SHOP[:2], _SHOP[2], "CREATE DATABASE crm", "CREATE TABLE crm.secret (a INT)")
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    with ServeProcess(tmp_path / "serve", source) as serve:
        serve.execute_as_root("CREATE BINLOG orders LOG(shop)")
        execute(source, "USE shop", *_SHOP[4:], "INSERT INTO crm.secret VALUES (1)")
        serve.wait_until_complete("orders")
        url = f"mariadb://{ADMIN}@127.0.0.1:{serve.port}"
        for place in (url, f"{serve.data_dir}#orders"):
            connection = binlane.connect(place)
            rows = connection.execute("SELECT _op, id, price FROM shop.orders").fetchall()
            assert [(op, number) for op, number, _ in rows] == [
                ("insert", 42),
                ("update", 42),
                ("update", 42),
                ("insert", 43),
                ("delete", 43),
            ]
            tables = connection.execute("SELECT DISTINCT unnest(tables) FROM groups").fetchall()
            assert tables == [("shop.orders",)]
        serve.execute_as_root("CREATE BINLOG whole")
        with pytest.raises(ConfigError, match="serves several binlogs") as raised:
            binlane.connect(url)
        assert raised.value.hint == f"name one: {url}#orders, {url}#whole"
        assert binlane.connect(f"{url}#orders").execute("FROM shop.orders").fetchall()
