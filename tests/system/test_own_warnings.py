"""SHOW WARNINGS and its like of what binlane itself answers or refuses, as servers tell of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.packets.flags import Command
from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.raw_client import RawClient
from tests.serve_process import ServeProcess
from tests.servers import connect, execute

KINDS = {
    "judged": "",
    "relayed": "[gateway]\nenabled = false\n",
    "workers": "[gateway]\nworkers = 2\n",
}
CASES = ["mariadb-judged", "mariadb-relayed", "mariadb-workers", "mysql-judged", "mysql-relayed"]


@pytest.fixture(scope="module", params=CASES)
def serving(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    flavor, _, kind = request.param.partition("-")
    with LENT.lend_source(flavor) as source:
        execute(
            source,
            "CREATE DATABASE shop",
            "CREATE DATABASE crm",
            "CREATE TABLE shop.orders (a INT PRIMARY KEY)",
            "CREATE TABLE shop.items (a INT PRIMARY KEY)",
        )
        with judged(tmp_path_factory.mktemp("warnings"), source, extra=KINDS[kind]) as process:
            yield process


@pytest.fixture
def serve(serving: ServeProcess) -> Iterator[ServeProcess]:
    """It without a binlog."""
    yield serving
    for name, *_ in serving.execute_as_root("SHOW BINLOGS"):
        serving.execute_as_root(f"DROP BINLOG '{name}'")
    execute(serving.source, "DROP TABLE IF EXISTS shop.oders")


def run(connection: Connection[Cursor], statement: str) -> tuple[tuple[Any, ...], ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def warned(connection: Connection[Cursor], statement: str) -> list[tuple[str, int, str]]:
    """What SHOW WARNINGS lists of a statement, which has to agree with what is counted."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except pymysql.MySQLError:
            counted = None
        else:
            counted = connection.warning_count if hasattr(connection, "warning_count") else None
            counted = cursor.warning_count if counted is None else counted
    listed = [
        (str(level), int(code), str(text)) for level, code, text in run(connection, "SHOW WARNINGS")
    ]
    assert counted in (None, len(listed))
    assert run(connection, "SHOW COUNT(*) WARNINGS") == ((len(listed),),)
    return listed


def test_names_that_are_not_there_are_told(serve: ServeProcess) -> None:
    with serve.connect("root", "") as root:
        told = warned(
            root, "CREATE BINLOG 'b' LOG(shop.oders, crm, shop.later), IGNORE(shp, `shop`.`Items`)"
        )
        assert [(level, code) for level, code, _ in told] == [("Warning", 1105)] * 3
        texts = "\n".join(text for *_, text in told)
        assert "LOG names what is not there: no table `shop`.`oders`" in texts
        assert "near is `shop`.`orders`" in texts
        assert "IGNORE names what is not there: no database `shp`" in texts
        assert "near is `shop`\n" in texts + "\n"
        assert "near is `shop`.`items`" in texts
        assert "later" not in texts, "which is no slip of anything"
        assert "no table `shop`.`later`" in serve.log
        assert run(root, "SHOW BINLOGS")[0][0] == "b", "it is taken, since the table may come"
        # What was told once is not told again.
        (again,) = warned(root, "ALTER BINLOG 'b' ADD LOG(shop.orders, orders)")
        assert "no database `orders`" in again[2]
        assert "there is the table `shop`.`orders`" in again[2]
        assert warned(root, "ALTER BINLOG 'b' ADD IGNORE(shop.items)") == []
        assert warned(root, "CREATE BINLOG 'all'") == []
        exists, missing = "binlog 'all' exists already", "unknown binlog 'none'"
        assert warned(root, "CREATE BINLOG IF NOT EXISTS 'all'") == [("Note", 1, exists)]
        assert warned(root, "DROP BINLOG IF EXISTS 'none'") == [("Note", 1, missing)]
        run(root, "CREATE TABLE shop.oders (a INT)")
        assert warned(root, "ALTER BINLOG 'all' LOG(shop.oders)") == []


FOLLOWING = (
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SHOW COUNT(*) ERRORS",
    "show errors limit 1",
    "SHOW ERRORS LIMIT 0, 1",
    "SHOW ERRORS LIMIT 1 OFFSET 1",
    "SHOW COUNT(*) ERRORS",
    "SELECT @@error_count",
    "SELECT @@error_count, @@session.error_count",
    "SHOW COUNT(*) ERRORS",
    "SHOW ERRORS",
    "SELECT @@session.error_count",
)
BEHIND = ("SELECT COUNT(*) FROM shop.orders", "SELECT 1 / 0", "INSERT INTO shop.items VALUES (1)")


def test_what_was_refused_is_listed_as_the_servers_do(serve: ServeProcess) -> None:
    """Beside a statement that the server refuses itself: the same rows, and for as long."""
    source = serve.source
    with serve.connect("root", "") as port, connect(source, autocommit=True) as direct:
        run(port, "CREATE BINLOG 'b' LOG(shop.orders)")
        for behind in BEHIND:
            execute(source, "DELETE FROM shop.items")
            told = []
            for session, wrong in (
                (port, "CREATE BINLOG 'b'"),
                (direct, "SELECT a FROM shop.none"),
            ):
                with pytest.raises(pymysql.MySQLError):
                    run(session, wrong)
                shape = []
                for statement in (*FOLLOWING, behind, "SHOW ERRORS", "SHOW COUNT(*) WARNINGS"):
                    rows = run(session, statement)
                    if statement.lower().startswith(("show warnings", "show errors")):
                        rows = tuple((level,) for level, *_ in rows if level == "Error")
                    shape.append((statement, rows))
                told.append(shape)
                execute(source, "DELETE FROM shop.items")
            assert told[0] == told[1]


def test_they_are_gone_where_servers_forget_them(serve: ServeProcess) -> None:
    with serve.connect("root", "") as port:
        wrong = "ALTER BINLOG 'none' LOG(shop)"
        for forget in (
            lambda: port.select_db("shop"),
            lambda: run(port, "SELECT * FROM shop.orders"),
            lambda: run(port, "CREATE BINLOG IF NOT EXISTS 'b'"),
            lambda: run(port, "SELECT name FROM system.binlogs"),
        ):
            with pytest.raises(pymysql.MySQLError):
                run(port, wrong)
            ((level, code, text), *hints) = run(port, "SHOW WARNINGS")
            assert (level, int(code)) == ("Error", 1)
            assert str(text).startswith("unknown binlog 'none'")
            assert [str(hint[0]) for hint in hints] == ["Note"]
            forget()
            assert run(port, "SHOW WARNINGS") == ()
            run(port, "DROP BINLOG IF EXISTS 'b'")


def test_diagnostics_and_prepared_statements(serve: ServeProcess) -> None:
    is_judged = "[gateway]\nenabled" not in (serve.directory / "binlane.toml").read_text()
    with RawClient(serve.port) as client:
        client.query("CREATE BINLOG 'b' LOG(shop.oders)")
        client.query("GET DIAGNOSTICS @n = NUMBER")
        client.query(
            "GET CURRENT DIAGNOSTICS CONDITION 1 @text = MESSAGE_TEXT, @code = MYSQL_ERRNO"
        )
        listed = client.rows("SHOW WARNINGS")[1:]
        ((number, text, code),) = client.rows("SELECT @n, @text, @code")[1:]
        assert (number, code) == ("1", "1105")
        assert listed == [("Warning", "1105", text)]
        client.query("CREATE BINLOG 'c' LOG(shp)")
        if is_judged and serve.source.program.scheme == "mariadb":  # MySQL prepares none
            statement = client.prepare("SHOW WARNINGS")
            reply = client.say(Execution(statement_id=statement).encode())
            assert any(b"no database `shp`" in packet for packet in reply)
            client.query("CREATE BINLOG 'd' LOG(shq)")
        client.say(bytes((Command.RESET_CONNECTION,)))
        assert client.rows("SHOW WARNINGS")[1:] == []
