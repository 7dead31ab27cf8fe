"""Prepared statements through a port that judges: binlogs hold them as their server would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct
from typing import Final

import pytest

from binlane.errors import StatementError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import (
    DatetimeValue,
    DecimalValue,
    Execution,
    TimeValue,
    Value,
)
from binlane.log.codec.packets.flags import Command, ExtendedCapability
from binlane.log.codec.packets.framing import frame, packed_bytes, text_of
from binlane.log.codec.packets.replies import ErrPacket, is_eof, is_error
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.types import ColumnType
from tests.judged_port import judged
from tests.raw_client import CAPABILITIES, RawClient
from tests.serve_process import ServeProcess
from tests.servers import ServerFactory, connect, execute

_VALUES: list[tuple[int, Value]] = [
    (ColumnType.VAR_STRING, 'é\'s \\ "q"\n\0'.encode()),
    (ColumnType.BLOB, b"\x01\r\x1a\x7f"),
    (ColumnType.LONG, -7),
    (ColumnType.DOUBLE, 1 / 3),
    (ColumnType.NEWDECIMAL, DecimalValue(b"-007.50")),
    (ColumnType.DATETIME, DatetimeValue(2020, 2, 29, 1, 2, 3, 4)),
    (ColumnType.TIME, TimeValue(True, 1, 2, 3, 4)),
    (ColumnType.VAR_STRING, None),
]


@pytest.fixture(params=["mariadb", "mysql"])
def serve(
    servers: ServerFactory, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[ServeProcess]:
    """A port with a binlog of statements, before a source with a table `d.t`."""
    source = servers.start("s") if request.param == "mariadb" else servers.start_mysql("s")
    execute(
        source,
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARBINARY(100))",
    )
    with judged(tmp_path / "serve", source) as serving:
        with serving.connect("root", "") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE BINLOG 's' FORMAT='STATEMENT'")
        yield serving


def _run(client: RawClient) -> None:
    insert = client.prepare("INSERT INTO t (v) VALUES (?)")
    for type_code, value in _VALUES:
        client.execute(Execution(statement_id=insert, types=(type_code,), values=(value,)))
    update = client.prepare("UPDATE t SET v = CONCAT(v, ?) WHERE id > ?")
    types = (ColumnType.VAR_STRING, ColumnType.LONGLONG)
    client.execute(Execution(statement_id=update, types=types, values=(b"!", 2)))


def _queries(rows: tuple[tuple[object, ...], ...]) -> list[str]:
    return [str(row[5]) for row in rows if row[2] == "Query" and "t SET v" in str(row[5])] + [
        str(row[5]) for row in rows if row[2] == "Query" and "INTO t" in str(row[5])
    ]


def test_binlog_of_statements_holds_what_the_server_would(serve: ServeProcess) -> None:
    with RawClient(serve.port, database="d") as client:
        _run(client)
    with serve.connect("root", "") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINLOG EVENTS IN 's.000001'")
        found = _queries(tuple(cursor.fetchall()))
    source = serve.source
    execute(source, "FLUSH BINARY LOGS", "TRUNCATE TABLE d.t")
    begin = execute(source, "SHOW BINARY LOGS")[-1][0]
    with RawClient(source.port, database="d") as client:
        client.query("SET SESSION binlog_format = 'STATEMENT'")
        _run(client)
    expected = _queries(execute(source, f"SHOW BINLOG EVENTS IN '{begin}'"))
    assert len(found) == len(_VALUES) + 1
    assert found == expected


_READS: Final = (
    "SELECT v FROM t WHERE id = {}",
    "SELECT COUNT(*) FROM t WHERE id > {}",
    "SELECT v FROM t WHERE id = {} FOR UPDATE",
)


class _Writer:
    """A session that reads and writes by prepared statements, or reads by texts.

    Attributes:
        client: Connection of the session to the port.
        committed: Texts of the writes that are committed.
        is_open: True if the next write waits for the end of a transaction.
    """

    def __init__(self, client: RawClient, *, reads_by_texts: bool) -> None:
        self.client = client
        self._texts = _READS if reads_by_texts else None
        self.committed: list[str] = []
        self.is_open = False
        self._waiting: list[str] = []
        self.reads = [client.prepare(text.format("?")) for text in _READS]
        self._insert = client.prepare("INSERT INTO t (v) VALUES (?)")

    def read(self, each: int, number: int) -> int:
        """Run a statement that reads; gives the number of its error, 0 for none."""
        types = (ColumnType.LONGLONG,)
        packets = self.client.say(
            Execution(statement_id=each, types=types, values=(number,)).encode()
            if self._texts is None
            else encode_query(
                self._texts[self.reads.index(each)].format(number), self.client.capabilities
            )
        )
        return ErrPacket.decode(packets[-1]).errno if is_error(packets[-1]) else 0

    def write(self, number: int) -> None:
        """Insert a row."""
        types = (ColumnType.LONGLONG,)
        self.client.execute(Execution(statement_id=self._insert, types=types, values=(number,)))
        to = self._waiting if self.is_open else self.committed
        to.append(f"INSERT INTO t (v) VALUES ({number})")

    def begin(self, text: str = "BEGIN") -> None:
        """Begin a transaction."""
        self.client.query(text)
        self.is_open = True

    def end(self, text: str = "COMMIT", *, is_open: bool = False) -> None:
        """End a transaction; in another one behind it if `is_open`."""
        self.client.query(text)
        self.committed += self._waiting if text == "COMMIT" else []
        self._waiting.clear()
        self.is_open = is_open


def _inserted(serve: ServeProcess) -> list[str]:
    with serve.connect("root", "") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINLOG EVENTS IN 's.000001'")
        rows = [str(row[5]) for row in cursor.fetchall() if row[2] == "Query"]
    return [row[row.index("INSERT") :] for row in rows if "INTO t (v)" in row]


@pytest.mark.parametrize("reads_by_texts", [False, True], ids=["prepared", "texts"])
def test_writes_between_known_reads_are_there(serve: ServeProcess, *, reads_by_texts: bool) -> None:
    chance = Random(7)
    with (
        RawClient(serve.port, database="d") as client,
        RawClient(serve.port, database="d") as other,
    ):
        one = _Writer(client, reads_by_texts=reads_by_texts)
        for number in range(1, 41):
            # What sessions know of the source's objects ends with this.
            other.query(f"CREATE TABLE t{number} (a INT)")
            is_autocommit = bool(chance.randrange(3))
            client.query(f"SET autocommit = {int(is_autocommit)}")
            one.is_open = not is_autocommit
            if chance.randrange(2):
                one.begin()
            for _ in range(chance.randrange(8)):
                if chance.randrange(3):
                    assert {one.read(each, number % 7) for each in one.reads} == {0}
                else:
                    one.write(number)
            one.end(chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))
    assert len(one.committed) > 20
    assert _inserted(serve) == one.committed


@pytest.mark.parametrize("reads_by_texts", [False, True], ids=["prepared", "texts"])
def test_a_known_read_that_fails_is_followed(serve: ServeProcess, *, reads_by_texts: bool) -> None:
    with (
        RawClient(serve.port, database="d") as client,
        RawClient(serve.port, database="d") as other,
    ):
        one = _Writer(client, reads_by_texts=reads_by_texts)
        client.query("SET SESSION innodb_lock_wait_timeout = 1")
        for number in range(5):
            one.write(number)
        for number in range(2):
            one.begin()
            one.write(10 + number)
            assert {one.read(each, 2) for _ in range(4) for each in one.reads} == {0}
            if number:
                other.query("BEGIN")
                other.query("UPDATE t SET v = 'locked' WHERE id = 1")
                assert one.read(one.reads[2], 1) == 1205
                other.query("ROLLBACK")
            assert one.read(one.reads[2], 1) == 0
            one.write(20 + number)
            one.end()
        one.write(30)
    assert _inserted(serve) == one.committed


_UNTOLD: list[tuple[int, Value]] = [
    (ColumnType.NEWDECIMAL, DecimalValue(b"2.5x")),
    (ColumnType.NEWDECIMAL, DecimalValue(b"1e3")),
    (ColumnType.VAR_STRING, b"told"),
]
"""Values that the servers do not log as they store them, and one that they do."""


def test_what_has_values_that_cannot_be_told_goes_as_rows(serve: ServeProcess) -> None:
    with RawClient(serve.port, database="d") as client:
        insert = client.prepare("INSERT INTO t (v) VALUES (?)")
        for type_code, value in _UNTOLD:
            client.execute(Execution(statement_id=insert, types=(type_code,), values=(value,)))
        delete = client.prepare("DELETE FROM t ORDER BY id LIMIT ?")
        assert client.rows("SELECT v FROM t ORDER BY id")[1:] == [("2.5",), ("1000",), ("told",)]
        if serve.source.program.scheme == "mariadb":  # MySQL takes integers alone
            counts: list[tuple[int, Value]] = [
                (ColumnType.VAR_STRING, b"1"),
                (ColumnType.DOUBLE, 1.0),
            ]
            for type_code, count in counts:
                client.execute(Execution(statement_id=delete, types=(type_code,), values=(count,)))
    events = serve.execute_as_root("SHOW BINLOG EVENTS IN 's.000001'")
    rows = [str(row[2]) for row in events if "_rows" in str(row[2]) or "Rows" in str(row[2])]
    texts = [str(row[5]) for row in events if row[2] == "Query" and " t " in str(row[5])]
    if serve.source.program.scheme == "mariadb":
        assert rows == ["Annotate_rows", "Write_rows_v1"] * 2 + ["Annotate_rows", "Delete_rows_v1"]
        assert len(texts) == 2
        assert texts[1].endswith("DELETE FROM t ORDER BY id LIMIT 1")
    else:
        assert rows == ["Write_rows"] * 2
        assert len(texts) == 1
    assert "VALUES ('told')" in texts[0]


def test_many_rows_of_values_go_as_rows(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start("s")
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
    bulk = ExtendedCapability.STMT_BULK_OPERATIONS
    with judged(tmp_path / "serve", source) as serve:
        serve.execute_as_root("CREATE BINLOG 'm' FORMAT='MIXED'")
        with RawClient(serve.port, CAPABILITIES, bulk, database="d") as client:
            for text in ("INSERT INTO t VALUES (?)", "UPDATE t SET a = a + 10 WHERE a = ?"):
                head = client.prepare(text).to_bytes(4, "little") + b"\x80\0\x03\0"
                payload = bytes((Command.STMT_BULK_EXECUTE,)) + head
                payload += b"".join(b"\0" + bytes((n, 0, 0, 0)) for n in (1, 2))
                assert client.ok(payload).affected_rows == 2
            client.query("INSERT INTO t VALUES (3)")
        serve.wait_until_complete("m")
        found = [row[2] for row in serve.execute_as_root("SHOW BINLOG EVENTS IN 'm.000001'")]
        assert found.count("Write_rows_v1") == 1
        assert found.count("Update_rows_v1") in {1, 2}
        assert found.count("Query") == 1


def test_many_rows_of_values_are_refused_as_the_server_does(
    servers: ServerFactory, tmp_path: Path
) -> None:
    source = servers.start("s")
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
    bulk = ExtendedCapability.STMT_BULK_OPERATIONS
    errors = []
    with judged(tmp_path / "serve", source) as serve:
        with serve.connect("root", "") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE BINLOG 's' FORMAT='STATEMENT'")
        for port in (serve.port, source.port):
            with RawClient(port, CAPABILITIES, bulk, database="d") as client:
                client.query("SET SESSION binlog_format = 'STATEMENT'")
                statement_id = client.prepare("INSERT INTO t VALUES (?)")
                payload = bytes((Command.STMT_BULK_EXECUTE,)) + statement_id.to_bytes(4, "little")
                payload += b"\x80\0\x03\0" + b"".join(b"\0" + bytes((n, 0, 0, 0)) for n in (1, 2))
                with pytest.raises(StatementError) as caught:
                    client.ok(payload)
                error = caught.value
                errors.append((error.errno, error.sqlstate, error.message.partition(" (hint")[0]))
                client.query("SET SESSION binlog_format = 'ROW'")
                assert client.ok(payload).affected_rows == 2
    assert errors[0] == errors[1]
    with connect(source) as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT * FROM d.t") == 4


def _executed(client: RawClient, statement_id: int) -> list[tuple[str | None, ...]]:
    """Heads and rows of a prepared statement, numbers as text."""
    _, *payloads = client.say(Execution(statement_id=statement_id).encode())
    at = next(place for place, payload in enumerate(payloads) if is_eof(payload))
    heads = list(map(ColumnDefinition.decode, payloads[:at]))
    rows: list[tuple[str | None, ...]] = [tuple(head.name for head in heads)]
    for payload in payloads[at + 1 : -1]:
        reader, cells = Reader(payload, 1), list[str | None]()
        nulls = int.from_bytes(reader.take((len(heads) + 9) // 8), "little") >> 2
        for place, head in enumerate(heads):
            if nulls >> place & 1:
                cells.append(None)
            elif head.type_code == ColumnType.LONGLONG:
                cells.append(str(reader.unpack(Struct("<q"))[0]))
            elif head.type_code == ColumnType.DOUBLE:
                cells.append(str(reader.unpack(Struct("<d"))[0]))
            else:
                cells.append(text_of(packed_bytes(reader)))
        reader.finish()
        rows.append(tuple(cells))
    return rows


def test_what_binlane_answers_may_be_prepared(serve: ServeProcess) -> None:
    is_mariadb = serve.source.program.scheme == "mariadb"
    status = "SHOW MASTER STATUS" if is_mariadb else "SHOW BINARY LOG STATUS"
    asked = (
        "SHOW BINLOGS",
        status,
        "SHOW BINARY LOGS",
        "SHOW GLOBAL VARIABLES LIKE 'binlog_checksum'",
        "SELECT name, LENGTH(name), LENGTH(name) / 2, NULL FROM system.binlogs",
    )
    with RawClient(serve.port, database="d") as client:
        ids = [client.prepare(text) for text in asked]
        for text, statement_id in zip(asked, ids, strict=True):
            expected = client.rows(text)
            assert expected[1:], text
            for _ in range(2):
                assert _executed(client, statement_id) == expected
        create = client.prepare("CREATE BINLOG 'p'")
        client.execute(Execution(statement_id=create))
        with pytest.raises(StatementError, match="exists"):
            client.execute(Execution(statement_id=create))
        assert "p" in {row[0] for row in client.rows("SHOW BINLOGS")}
        # Whoever gets this sends text.
        for text in (
            "SELECT name FROM system.binlogs WHERE name = ? LIMIT ?",
            "SHOW BINLOG EVENTS IN 's.000001' LIMIT ?",
        ):
            with pytest.raises(StatementError, match="send it as text") as refused:
                client.prepare(text)
            assert refused.value.errno == 1295
        # What stands at the source in their place goes with them.
        for statement_id in (*ids, create):
            client.send(frame(bytes((Command.STMT_CLOSE,)) + statement_id.to_bytes(4, "little"), 0))
        assert client.rows("SHOW STATUS LIKE 'Prepared_stmt_count'")[1:] == [
            ("Prepared_stmt_count", "0")
        ]


def test_rows_are_fetched_where_nothing_is_judged(serve: ServeProcess) -> None:
    serve.execute_as_root("DROP BINLOG 's'", "CREATE BINLOG 'r'")
    execute(serve.source, "INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with RawClient(serve.port, database="d") as client:
        statement_id = client.prepare("SELECT id FROM t ORDER BY id")
        client.say(Execution(statement_id=statement_id, flags=1).encode())
        fetch = bytes((Command.STMT_FETCH,)) + statement_id.to_bytes(4, "little")
        for count in (2, 1):
            rows = client.say(fetch + count.to_bytes(4, "little"))
            assert len(rows) == count + 1
        client.query("DELETE FROM t")
        assert client.rows("SELECT COUNT(*) FROM t")[1:] == [("0",)]


def test_what_a_program_prepares_from_a_variable_of_its_caller(serve: ServeProcess) -> None:
    execute(
        serve.source,
        "CREATE PROCEDURE d.p() BEGIN PREPARE s FROM @text; EXECUTE s; END",
        "CREATE TABLE d.texts (a VARCHAR(100))",
    )
    texts = ["INSERT INTO d.t (v) VALUES ('given')", "INSERT INTO d.t (v) VALUES ('selected')"]
    with serve.connect("root", "") as connection, connection.cursor() as cursor:
        cursor.execute('SET @text = "' + texts[0] + '"')
        cursor.execute("CALL d.p()")
        cursor.execute('INSERT INTO d.texts VALUES ("' + texts[1] + '")')
        cursor.execute("SELECT a INTO @text FROM d.texts")
        cursor.execute("CALL d.p()")
        serve.wait_until_complete("s")
        cursor.execute("SHOW BINLOG EVENTS IN 's.000001'")
        found = [row[5] for row in cursor.fetchall()]
    assert [text for text in found if text in texts] == texts


def _long_data(statement_id: int, data: bytes) -> bytes:
    return Struct("<BIH").pack(Command.STMT_SEND_LONG_DATA, statement_id, 0) + data


def test_a_refused_execution_leaves_nothing_behind_that_the_source_would_not(
    serve: ServeProcess,
) -> None:
    """A client tells types once: what binlane refused the source has not heard of."""
    execute(serve.source, "CREATE TABLE d.other (a INT)")
    serve.execute_as_root("CREATE BINLOG 'scoped' FORMAT='STATEMENT', LOG(d.t)")
    text, number = (ColumnType.VAR_STRING,), (ColumnType.LONGLONG,)

    def refused(client: RawClient, execution: Execution) -> None:
        client.query("BEGIN")
        client.query("INSERT INTO other VALUES (1)")
        with pytest.raises(StatementError, match="11314"):
            client.execute(execution)
        client.query("ROLLBACK")

    with RawClient(serve.port, database="d") as client:
        first, second, third = (client.prepare("INSERT INTO t (v) VALUES (?)") for _ in range(3))
        refused(client, Execution(statement_id=first, types=text, values=(b"no",)))
        again = Execution(statement_id=first, types=text, values=(b"first",), sends_types=False)
        client.execute(again)
        client.execute(again)
        # The source knows types of before, of which it would take the bytes.
        client.execute(Execution(statement_id=second, types=number, values=(7,)))
        refused(client, Execution(statement_id=second, types=text, values=(b"no",)))
        again = Execution(
            statement_id=second, types=text, values=(b"second one",), sends_types=False
        )
        client.execute(again)
        parts = (_long_data(third, b"sent "), _long_data(third, b"before"))
        client.say(*parts)
        refused(client, Execution(statement_id=third, types=(ColumnType.BLOB,), values=(None,)))
        client.say(*parts)
        payload = Execution(
            statement_id=third, types=(ColumnType.BLOB,), values=(None,), sends_types=False
        ).encode()
        # The value is not NULL: it came before.
        client.ok(payload[:10] + b"\0" + payload[11:])
    values = [row[0] for row in execute(serve.source, "SELECT v FROM d.t ORDER BY id")]
    assert values == [b"first", b"first", b"7", b"second one", b"sent before"]
