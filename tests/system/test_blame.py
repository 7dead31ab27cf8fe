"""`binlane blame` on logs of both servers: the life of a row, whatever happens to key and table."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from binlane.cli import main
from binlane.live.provision.private_server import PrivateServer
from tests.rules import ROOT
from tests.schema_changes import SWAPPED
from tests.servers import ServerFactory, connect, execute

Capture = pytest.CaptureFixture[str]


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    """A shared server of each flavor, with a new log."""
    found: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    execute(found, "FLUSH BINARY LOGS", "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    return found


def log_of(server: PrivateServer) -> str:
    """The file that the server writes now."""
    return str(max(server.data_directory.glob("binlog.0*")))


def life(capsys: Capture, server: PrivateServer, *arguments: str, status: int = 0) -> list[Any]:
    """The objects that `blame` prints."""
    found = main(["blame", arguments[0], log_of(server), "--format=json", *arguments[1:]])
    printed = capsys.readouterr()
    assert found == status, printed.err
    return [json.loads(line) for line in printed.out.splitlines()]


def words(objects: list[Any]) -> list[str]:
    """A short word for each object: its type, and the id before and after."""
    found = []
    for each in objects:
        images = [each[name]["id"] for name in ("before", "after", "values") if name in each]
        text = each.get("query", "").split()[:2]
        found.append(" ".join([each["type"], *map(str, images), *text]))
    return found


def test_a_row_from_insert_to_its_present_state(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20), price DECIMAL(8, 2))",
        "INSERT INTO shop.orders VALUES (41, 'new', 1), (42, 'new', 2), (43, 'new', 3)",
        "UPDATE shop.orders SET state = 'paid'",
        "UPDATE shop.orders SET price = 9.90 WHERE id = 42",
        "UPDATE shop.orders SET price = 8 WHERE id = 41",
    )
    found = life(capsys, server, "shop.orders", "--key=42")
    assert words(found) == ["insert 42", "update 42 42", "update 42 42", "now 42"]
    assert found[-1]["values"] == {"id": 42, "state": "paid", "price": "9.90"}
    prices = life(capsys, server, "shop.orders", "--key=42", "--column=price")
    assert words(prices) == ["insert 42", "update 42 42", "now 42"]
    assert prices[1]["before"] == {"id": 42, "price": "2.00"}
    assert words(life(capsys, server, "shop.orders", "--key", "ID=42")) == words(found)
    assert life(capsys, server, "shop.orders", "--key=44", status=1) == []
    execute(server, "DELETE FROM shop.orders WHERE id > 41")
    assert words(life(capsys, server, "shop.orders", "--key=42"))[-2:] == ["delete 42", "deleted"]


def test_changes_of_the_key_are_followed_in_both_directions(
    server: PrivateServer, capsys: Capture
) -> None:
    execute(
        server,
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')",
        "UPDATE shop.orders SET id = 10 WHERE id = 1",
        "UPDATE shop.orders SET state = 'c' WHERE id = 10",
        "UPDATE shop.orders SET id = 20 WHERE id = 10",
        "UPDATE shop.orders SET id = 1 WHERE id = 2",
        "UPDATE shop.orders SET state = 'd' WHERE id = 20",
    )
    expected = ["insert 1", "update 1 10", "update 10 10", "update 10 20", "update 20 20", "now 20"]
    assert words(life(capsys, server, "shop.orders", "--key=20")) == expected
    assert words(life(capsys, server, "shop.orders", "--key=10")) == expected
    # Two rows had this key, one after the other.
    assert words(life(capsys, server, "shop.orders", "--key=1")) == [
        *("insert 1", "insert 2", "update 1 10", "update 10 10", "update 10 20"),
        *("update 2 1", "update 20 20", "now 20", "now 1"),
    ]


def test_renames_of_table_and_column_are_followed(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.old_orders (id INT PRIMARY KEY, cost INT)",
        "CREATE TABLE shop.other (id INT PRIMARY KEY, cost INT)",
        "INSERT INTO shop.old_orders VALUES (42, 1)",
        "INSERT INTO shop.other VALUES (42, 5)",
        "RENAME TABLE shop.old_orders TO shop.tmp, shop.tmp TO shop.orders",
        "ALTER TABLE shop.orders CHANGE cost price INT",
        "UPDATE shop.orders SET price = 2",
        "ALTER TABLE shop.other RENAME TO shop.old_orders",
        "UPDATE shop.old_orders SET cost = 6",
    )
    found = life(capsys, server, "shop.orders", "--key=42", "--column=price")
    assert words(found) == [
        *("insert 42", "QUERY RENAME TABLE", "QUERY ALTER TABLE", "update 42 42", "now 42"),
    ]
    assert found[0]["after"] == {"id": 42, "cost": 1}
    assert found[-1]["values"] == {"id": 42, "price": 2}
    # Two tables had the old name.
    both = life(capsys, server, "shop.old_orders", "--key=42")
    assert [each["values"] for each in both if each["type"] == "now"] == [
        {"id": 42, "price": 2},
        {"id": 42, "cost": 6},
    ]


def test_a_swap_by_a_schema_change_tool_is_followed(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20), total DECIMAL(8, 2))",
        "INSERT INTO shop.orders VALUES (1, 'new', 1), (2, 'new', 2)",
        *SWAPPED,
    )
    found = life(capsys, server, "shop.orders", "--key=1")
    assert [each["table"] for each in found if "after" in each] == [
        *("orders", "_orders_new", "orders", "_orders_new", "orders"),
    ]
    assert [word for word in words(found) if "QUERY" in word][1:] == [
        *("QUERY RENAME TABLE", "QUERY DROP TABLE"),
    ]
    assert words(found)[-2:] == ["update 1 1", "now 1"]
    assert found[-1]["values"] == {"id": 1, "state": "sent", "total": "3.00", "extra": 7}
    execute(server, "DELETE FROM shop.orders WHERE id = 1")
    assert words(life(capsys, server, "shop.orders", "--key=1"))[-2:] == ["delete 1", "deleted"]


def test_truncate_drop_and_a_new_table(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'a')",
        "TRUNCATE TABLE shop.orders",
        "INSERT INTO shop.orders VALUES (1, 'b')",
        "DROP TABLE shop.orders",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))",
    )
    assert words(life(capsys, server, "shop.orders", "--key=1")) == [
        *("insert 1", "QUERY TRUNCATE TABLE", "insert 1", "QUERY DROP TABLE", "deleted"),
    ]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_images_tell_the_state_together(
    image: str, server: PrivateServer, capsys: Capture
) -> None:
    execute(server, "CREATE TABLE shop.orders (id INT PRIMARY KEY, a INT, b INT, c TEXT)")
    with connect(server, autocommit=True) as session, session.cursor() as cursor:
        cursor.execute(f"SET SESSION binlog_row_image = '{image}'")
        cursor.execute("INSERT INTO shop.orders VALUES (1, 2, 3, 'x'), (5, 6, 7, 'y')")
        cursor.execute("UPDATE shop.orders SET a = 20 WHERE id = 1")
        cursor.execute("UPDATE shop.orders SET id = 10 WHERE id = 1")
        cursor.execute("UPDATE shop.orders SET b = 30 WHERE id = 10")
    found = life(capsys, server, "shop.orders", "--key=1")
    assert [each["type"] for each in found] == ["insert", "update", "update", "update", "now"]
    assert found[-1]["values"] == {"id": 10, "a": 20, "b": 30, "c": "x"}


def test_a_log_of_several_files(server: PrivateServer, capsys: Capture, tmp_path: Path) -> None:
    execute(server, "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))")
    first = Path(log_of(server))
    with connect(server) as session, session.cursor() as cursor:
        for statement in (
            "INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')",
            "COMMIT",
            "XA START 'over files'",
            "UPDATE shop.orders SET id = 10 WHERE id = 1",
            "XA END 'over files'",
            "XA PREPARE 'over files'",
        ):
            cursor.execute(statement)
        execute(server, "FLUSH BINARY LOGS")
        cursor.execute("XA COMMIT 'over files'")
    execute(
        server,
        "RENAME TABLE shop.orders TO shop.moved",
        "FLUSH BINARY LOGS",
        "DELETE FROM shop.moved",
    )
    files = [file for file in sorted(first.parent.glob("binlog.0*")) if file >= first]
    assert len(files) == 3
    expected = ["insert 1", "update 1 10", "QUERY RENAME TABLE", "delete 10", "deleted"]
    for file in files[:2]:
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    shutil.copy(files[2], tmp_path)
    for sources in ([*map(str, files)], [str(tmp_path)]):
        for name in ("shop.moved", "shop.orders"):
            assert main(["blame", name, *sources, "--key=1", "--format=json"]) == 0
            objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert words(objects) == expected
            assert [each["file"] for each in objects][1:4:2] == [files[1].name, files[2].name]


def test_composite_and_text_keys(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.parts (name VARCHAR(20), id INT, at DATE, PRIMARY KEY (id, name, at))"
        " CHARSET utf8mb4",
        "INSERT INTO shop.parts VALUES ('a, b', 1, '2026-01-02'), ('it''s', 1, '2026-01-02')",
        "UPDATE shop.parts SET at = '2026-01-03' WHERE name = 'a, b'",
    )
    expected = ["insert 1", "update 1 1", "now 1"]
    assert words(life(capsys, server, "shop.parts", "--key", "1,'a, b',2026-01-02")) == expected
    assert words(life(capsys, server, "shop.parts", "--key", "name='a, b'")) == expected
    named = ("--key", "id=1", "--key", "name='it''s'")
    assert words(life(capsys, server, "shop.parts", *named)) == ["insert 1", "now 1"]
    assert main(["blame", "shop.parts", log_of(server), "--key=1"]) == 2
    assert "id, name, at" in capsys.readouterr().err


def test_a_table_without_a_key_needs_columns(server: PrivateServer, capsys: Capture) -> None:
    execute(
        server,
        "CREATE TABLE shop.plain (id INT, state VARCHAR(20))",
        "INSERT INTO shop.plain VALUES (1, 'a'), (2, 'b')",
        "DELETE FROM shop.plain WHERE id = 1",
    )
    assert main(["blame", "shop.plain", log_of(server), "--key=1"]) == 2
    assert "as --key id=…; the log tells id, state" in capsys.readouterr().err
    found = words(life(capsys, server, "shop.plain", "--key=id=1"))
    assert found == ["insert 1", "delete 1", "deleted"]


def test_rows_of_an_xa_transaction(server: PrivateServer, capsys: Capture) -> None:
    execute(server, "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))")
    with connect(server) as session, session.cursor() as cursor:
        for statement in (
            "XA START 'blamed'",
            "INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')",
            "XA END 'blamed'",
            "XA PREPARE 'blamed'",
            "XA COMMIT 'blamed'",
            "UPDATE shop.orders SET state = 'c' WHERE id = 1",
        ):
            cursor.execute(statement)
        session.commit()
    assert words(life(capsys, server, "shop.orders", "--key=1")) == [
        *("insert 1", "update 1 1", "now 1"),
    ]


def test_statements_in_place_of_rows_are_told(server: PrivateServer, capsys: Capture) -> None:
    execute(server, "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))")
    with connect(server) as session, session.cursor() as cursor:
        cursor.execute("INSERT INTO shop.orders VALUES (1, 'a')")
        session.commit()
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("USE shop")
        cursor.execute("UPDATE shop.orders SET state = 'x'")
        session.commit()
    assert main(["blame", "shop.orders", log_of(server), "--key=1"]) == 0
    printed = capsys.readouterr()
    assert "SQL    shop: UPDATE shop.orders SET state = 'x'" in printed.out
    assert "1 statements on the table are in the log as text alone" in printed.err


def test_the_statement_that_made_a_row_is_shown(servers: ServerFactory, capsys: Capture) -> None:
    source = servers.start("s", ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"))
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'a')",
        "UPDATE shop.orders /* job 7 */ SET state = 'b'",
    )
    # Its log has no names of columns and no key: CREATE TABLE tells them.
    assert main(["blame", "shop.orders", log_of(source), "--key=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "    by: INSERT INTO shop.orders VALUES (1, 'a')"
    assert lines[2].endswith("UPDATE shop.orders id=1 state: 'a' → 'b'")
    assert lines[3] == "    by: UPDATE shop.orders /* job 7 */ SET state = 'b'"
    assert lines[4] == "now shop.orders id=1 state='b'"
    assert main(["blame", "shop.orders", source.url, "--key=1"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_the_lines_that_the_documentation_shows(server: PrivateServer, capsys: Capture) -> None:
    page = (ROOT / "docs/how-to/blame.md").read_text()
    [statements] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    is_mysql = server.program.scheme == "mysql"
    execute(
        server,
        "FLUSH BINARY LOGS",
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop",
        *(["SET SESSION binlog_rows_query_log_events = ON"] if is_mysql else []),
        *filter(None, statements.replace("\n", "").split(";")),
    )
    assert main(["blame", "shop.orders", log_of(server), "--key=42"]) == 0
    # MySQL's log has the thread of each transaction.
    thread = r"  \(thread \d+\)$" if is_mysql else r"(?<=\(thread )\d+"
    moment = re.compile(rf"^\S+ \S+ \S+ (?=┌)|{thread}", re.MULTILINE)
    assert moment.sub("", capsys.readouterr().out) == moment.sub("", shown)
