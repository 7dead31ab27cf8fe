"""Sessions whose statements are judged, between ordinary clients and real servers."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, Final

import pymysql
import pytest

from binlane.api import read
from binlane.errors import BinlaneError, StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.judge import (
    ClientStatement,
    Done,
    Give,
    Pass,
    Refuse,
    RunVerdict,
    StatementReply,
    TextReading,
    Verdict,
)
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.execution import (
    DatetimeValue,
    DateValue,
    DecimalValue,
    Execution,
    TimeValue,
    Value,
)
from binlane.log.codec.packets.flags import Capability, Command, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.framing import bytes_of, frame
from binlane.log.codec.packets.replies import is_error, is_ok
from binlane.log.codec.query import AnnotateRowsEvent, RowsQueryEvent
from binlane.log.codec.types import ColumnType
from binlane.statements.sql.servers import Dialect
from tests.listening import wait_until
from tests.raw_client import CAPABILITIES, RawClient
from tests.recording_judge import MARIADB, MYSQL, JudgingPort, RecordingJudge
from tests.servers import ServerFactory, execute

UNSIGNED: Final = 0x8000
_TRACK: Final = {
    "mariadb": "SET SESSION session_track_system_variables = 'last_gtid'",
    "mysql": "SET SESSION session_track_gtids = OWN_GTID",
}
_READINGS: Final = {"mariadb": MARIADB, "mysql": MYSQL}
_MULTI: Final = CAPABILITIES | Capability.MULTI_STATEMENTS


def _flavor(session: HandlerSession) -> str:
    return "mariadb" if "MariaDB" in session.server_version else "mysql"


def _judge(session: HandlerSession) -> RecordingJudge:
    """One that has the source tell GTIDs."""

    def first(statements: Sequence[ClientStatement]) -> Verdict:
        del statements
        judge.verdict = lambda _: RunVerdict()
        return RunVerdict(before=(_TRACK[_flavor(session)],))

    async def reset() -> None:
        judge.verdict = first

    judge = RecordingJudge(reading=_READINGS[_flavor(session)], verdict=first, resetting=reset)
    return judge


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server with a database `judged`, whose log says what it ran."""
    server: PrivateServer = request.getfixturevalue(f"{request.param}_server")
    if request.param == "mysql":
        execute(server, "SET GLOBAL binlog_rows_query_log_events = 1")
    execute(
        server,
        "SET GLOBAL local_infile = 1",
        "SET GLOBAL max_allowed_packet = 67108864",
        "CREATE DATABASE judged",
        "CREATE TABLE judged.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)",
        "CREATE PROCEDURE judged.opens() BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; SELECT 5; "
        "SELECT 6, 7; END",
        "CREATE FUNCTION judged.opening() RETURNS INT DETERMINISTIC BEGIN DECLARE found INT; "
        "DECLARE c CURSOR FOR SELECT 8; OPEN c; FETCH c INTO found; RETURN found; END",
        "CREATE PROCEDURE judged.two() BEGIN SELECT 1; INSERT INTO judged.t (v) VALUES (1); END",
    )
    yield server
    execute(server, "DROP DATABASE judged")


@pytest.fixture
def port(source: PrivateServer) -> Iterator[JudgingPort]:
    """A port whose sessions are judged."""
    with JudgingPort(source, _judge) as judging:
        yield judging


def _reply(port: JudgingPort) -> StatementReply:
    """The last reply of the last session."""
    return port.judges[-1].replies[-1][-1]


@pytest.mark.parametrize("capabilities", [_MULTI, _MULTI | Capability.DEPRECATE_EOF])
@pytest.mark.parametrize("cursor", [0, 1])
def test_cursors_of_routines_and_of_clients(
    source: PrivateServer, port: JudgingPort, capabilities: Capability, cursor: int
) -> None:
    """A cursor that a routine opened leaves its flag to results whose rows follow."""
    texts = ["CALL opens()", "SELECT 1; CALL opens()", "SELECT opening()", "SELECT 1"]
    with (
        RawClient(port.port, capabilities, database="judged") as client,
        RawClient(source.port, capabilities, database="judged") as direct,
    ):
        for text in texts:
            query = encode_query(text, client.capabilities)
            assert client.say(query) == direct.say(query)
        for text in ("CALL opens()", "SELECT opening()"):
            statement = client.prepare(text)
            execution = Execution(statement_id=statement, flags=cursor).encode()
            own = Execution(statement_id=direct.prepare(text), flags=cursor).encode()
            assert client.say(execution) == direct.say(own)
        if cursor:
            fetch = bytes((Command.STMT_FETCH,)) + statement.to_bytes(4, "little") + b"\x05\0\0\0"
            assert client.say(fetch)[0][2:] == (8).to_bytes(4, "little")
        elif source.program.scheme == "mysql":
            # What it gives are its own rows, behind what it has run.
            explained = client.prepare("EXPLAIN ANALYZE SELECT opening()")
            client.say(Execution(statement_id=explained).encode())
        assert client.rows("SELECT 9")[1:] == [("9",)]


def test_session_is_judged_from_its_beginning(port: JudgingPort) -> None:
    with port.connect(database="judged") as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t (v) VALUES ('a'), ('b')")
        assert (cursor.rowcount, bool(cursor.lastrowid)) == (2, True)
        reply = _reply(port)
        assert (reply.affected_rows, reply.insert_id) == (2, cursor.lastrowid)
        assert reply.info == "Records: 2  Duplicates: 0  Warnings: 0"
        assert reply.tracked.get("last_gtid") or reply.gtids
        cursor.execute("UPDATE t SET v = 'c' WHERE v = 'a'")
        assert _reply(port).info.startswith("Rows matched: 1  Changed: 1")
        with pytest.raises(pymysql.err.ProgrammingError):
            cursor.execute("INSERT INTO nowhere VALUES (1)")
        assert _reply(port).errno == 1146
        cursor.execute("SELECT v FROM t ORDER BY id")
        assert cursor.fetchall() == ((b"c",), (b"b",))
        assert _reply(port).is_result_set
        connection.begin()
        assert _reply(port).status & ServerStatus.IN_TRANSACTION
        cursor.execute("DELETE FROM t")
        connection.commit()
    judge = port.judges[0]
    wait_until(lambda: judge.calls[-1:] == ["ended"], what="the judge knows of the end")
    assert judge.calls.count("ended") == 1


def test_refusal_and_answers(port: JudgingPort, source: PrivateServer) -> None:
    def verdict(statements: Sequence[ClientStatement]) -> Verdict:
        text = statements[0].text
        if text.startswith("DELETE"):
            return Refuse(StatementError("unsafe", errno=11314, sqlstate="HY000"))
        if text == "SHOW WARNINGS":
            return Give(RowsAnswer(["Level", "Code", "Message"], [("Note", 1592, "Unsafe")]))
        return Pass() if text.startswith("SELECT") else Give(OkAnswer(warnings=3))

    port.judge = lambda _: RecordingJudge(verdict=verdict)
    execute(source, "INSERT INTO judged.t (id) VALUES (1000)")
    with port.connect(database="judged") as connection:
        cursor = connection.cursor()
        with pytest.raises(pymysql.err.OperationalError) as caught:
            cursor.execute("DELETE FROM t")
        assert caught.value.args == (11314, "unsafe")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall() == (("Error", 11314, "unsafe"),)
        cursor.execute("SET @a = 1")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall() == (("Note", "1592", "Unsafe"),)
        cursor.execute("SELECT COUNT(*) FROM t WHERE id = 1000")
        assert cursor.fetchone() == (1,)
    execute(source, "DELETE FROM judged.t")


def test_statements_of_binlanes_own(port: JudgingPort) -> None:
    asked: list[str | None] = []

    async def then() -> None:
        session = port.judges[-1].session
        assert session is not None
        asked.append((await session.query_source("SELECT @before")).texts()[0][0])

    def judge(session: HandlerSession) -> RecordingJudge:
        judging = _judge(session)
        judging.verdict = lambda _: RunVerdict(before=("SET @before = 'b'", "SELECT 5"))
        judging.after = lambda replies: Done(then=then if replies else None)
        return judging

    port.judge = judge
    with port.connect(database="judged") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT @before, 'of the client'")
        assert cursor.fetchall() == (("b", "of the client"),)
        port.judges[-1].verdict = lambda _: RunVerdict(before=("DO 1", "SELEC"))
        with pytest.raises(pymysql.err.ProgrammingError, match="SELEC"):
            cursor.execute("INSERT INTO t (v) VALUES ('not run')")
        assert port.judges[-1].replies[-1] == ()
        port.judges[-1].verdict = lambda _: RunVerdict()
        cursor.execute("SELECT COUNT(*) FROM t WHERE v = 'not run'")
        assert cursor.fetchall() == ((0,),)
    assert asked
    assert set(asked) == {"b"}


def test_warnings_that_binlane_adds(port: JudgingPort) -> None:
    def judge(session: HandlerSession) -> RecordingJudge:
        judging = _judge(session)
        judging.after = lambda _: Done(warnings=2)
        return judging

    port.judge = judge
    with RawClient(port.port, database="judged") as client:
        ok = client.query("INSERT INTO t (v) VALUES (1)")
        assert ok.warnings == 2
        ok = client.query("UPDATE t SET v = 2")
        assert ok.info.endswith(b"Warnings: 2")
        *_, end = client.say(encode_query("SELECT CAST('1x' AS SIGNED)"))
        assert end[1:3] == b"\x03\x00"
        client.query("DELETE FROM t")


@pytest.mark.parametrize(
    "wanted",
    [
        0,
        Capability.DEPRECATE_EOF,
        Capability.SESSION_TRACK,
        Capability.SESSION_TRACK | Capability.DEPRECATE_EOF,
    ],
)
def test_clients_get_what_they_asked_for(port: JudgingPort, wanted: int) -> None:
    def judge(session: HandlerSession) -> RecordingJudge:
        judging = _judge(session)
        judging.verdict = lambda statements: (
            Pass()
            if "Pass" in statements[0].text
            else RunVerdict(before=(_TRACK[_flavor(session)],))
        )
        return judging

    port.judge = judge
    with RawClient(port.port, _MULTI | Capability(wanted), database="judged") as client:
        for text in ("USE judged", "USE judged /* Pass */", "INSERT INTO t (v) VALUES (7)"):
            ok = client.query(text)
            assert bool(ok.session_state) == bool(wanted & Capability.SESSION_TRACK)
        packets = client.say(encode_query("SELECT 1; DELETE FROM t /* Pass */; SELECT 2"))
        assert client.numbers == [number % 256 for number in range(1, 1 + len(packets))]
        assert len(packets) == (9 if wanted & Capability.DEPRECATE_EOF else 11)
        client.say(bytes((Command.INIT_DB,)) + b"judged", bytes((Command.PING,)))
    assert port.judges[-1].databases == ["judged"]


def test_several_statements(port: JudgingPort, source: PrivateServer) -> None:
    with RawClient(port.port, _MULTI, database="judged") as client:
        begin = _log_ends(source)
        client.say(
            encode_query(
                " INSERT INTO t (v) VALUES (';') ; /* ; */ INSERT INTO t (v) VALUES (2);\n"
                "INSERT INTO t (v) VALUES (3) -- end ;\n ;;"
            )
        )
        assert [each.text.encode() for each in port.judges[-1].statements[-1]] == _logged(
            source, begin
        )
        assert len(port.judges[-1].replies[-1]) == 3
        client.say(encode_query("CALL two(); DO 1"))
        assert [reply.is_result_set for reply in port.judges[-1].replies[-1]] == [
            True,
            False,
            False,
        ]
        client.say(encode_query("DO 1; SELEC; DO 2"))
        assert [reply.errno for reply in port.judges[-1].replies[-1]] == [0, 1064]
        assert len(client.say(encode_query("DO 1; /* nothing */"))) == 2
        assert len(port.judges[-1].statements[-1]) == 2


def _log_ends(source: PrivateServer) -> str:
    """Begin a file of the server's log; its name."""
    execute(source, "FLUSH BINARY LOGS")
    return str(execute(source, "SHOW BINARY LOGS")[-1][0])


def _logged(source: PrivateServer, begin: str) -> list[bytes]:
    """The statements whose rows a file of the server's log holds, which ends."""
    execute(source, "FLUSH BINARY LOGS")
    folder = Path(str(execute(source, "SELECT @@log_bin_basename")[0][0])).parent
    return [
        event.body.query
        for group in read(folder / begin)
        for event in group.events
        if isinstance(event.body, AnnotateRowsEvent | RowsQueryEvent)
    ]


_DOUBLE: Final = Struct("<d")


def _random_values(flavor: str, chance: random.Random) -> Iterator[tuple[int, Value]]:
    """A type and a value of it, without end."""
    integers = {
        ColumnType.TINY: 8,
        ColumnType.SHORT: 16,
        ColumnType.LONG: 32,
        ColumnType.LONGLONG: 64,
    }
    texts = [ColumnType.VAR_STRING, ColumnType.STRING, ColumnType.BLOB, ColumnType.VARCHAR]
    while True:
        type_code, bits = chance.choice(list(integers.items()))
        yield type_code, chance.randrange(-(1 << bits - 1), 1 << bits - 1)
        yield type_code | UNSIGNED, chance.randrange(1 << bits)
        number = _DOUBLE.unpack(chance.randbytes(8))[0]
        if number - number == 0:
            yield ColumnType.DOUBLE, number
        yield ColumnType.DOUBLE, round(chance.uniform(-1e6, 1e6), chance.randrange(8))
        yield ColumnType.DOUBLE, chance.choice([0.0, -0.0, 1e15, 1e14, 5e-324, 0.1, 100.0])
        yield ColumnType.FLOAT, chance.uniform(-1e20, 1e20)
        digits = f"{chance.randrange(10**20)}.{chance.randrange(10**9)}"
        sign = chance.choice(["", "-", "+", "00", "-0"])
        whole = chance.choice([digits, digits.partition(".")[0], "0.00", "." + digits[-3:], "5."])
        yield ColumnType.NEWDECIMAL, DecimalValue((sign + whole).encode())
        yield chance.choice(texts), chance.randbytes(chance.randrange(30))
        character = chance.choice("é€😀'\"\\\0\n\r\x1a\tx")
        yield chance.choice(texts), (character * chance.randrange(4)).encode()
        clock = (chance.randrange(24), chance.randrange(60), chance.randrange(60))
        microsecond = chance.choice([0, 5, 120_000])
        date = (chance.randrange(10_000), chance.randrange(1, 13), chance.randrange(0, 29))
        yield ColumnType.DATE, DateValue(*date)
        temporal = chance.choice([ColumnType.DATETIME, ColumnType.TIMESTAMP])
        yield temporal, DatetimeValue(*date, *clock, microsecond)
        time = TimeValue(chance.random() < 0.5, chance.randrange(34), *clock, microsecond)
        if any(time[1:]) or flavor == "mariadb":
            yield ColumnType.TIME, time
        yield ColumnType.VAR_STRING, None


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
@pytest.mark.parametrize("charset", ["utf8mb4", "utf8mb3", "latin1", "gbk", "binary"])
def test_prepared_statements_are_judged_as_servers_log_them(
    source: PrivateServer, charset: str, mode: str
) -> None:
    flavor = source.url.partition(":")[0]

    def judge(_: HandlerSession) -> RecordingJudge:
        dialect = Dialect(flavor=flavor, no_backslash_escapes=bool(mode))
        return RecordingJudge(reading=TextReading(dialect, charset))

    chance = random.Random(f"{charset} {mode}")
    values = _random_values(flavor, chance)
    with JudgingPort(source, judge) as port:
        with RawClient(port.port, database="judged") as client:
            client.query(f"SET NAMES {charset}")
            client.query(f"SET sql_mode = '{mode}'")
            statement_id = client.prepare("INSERT INTO t (v) VALUES (?), ('?'),(/* ? */?) -- ?")
            begin = _log_ends(source)
            for _ in range(400):
                (one, first), (two, second) = next(values), next(values)
                execution = Execution(
                    statement_id=statement_id, types=(one, two), values=(first, second)
                )
                client.execute(execution)
            client.query("DELETE FROM t")
        judged = [each for packet in port.judges[0].statements for each in packet]
    executed = [each for each in judged if each.is_prepared]
    logged = _logged(source, begin)[: len(executed)]
    assert len(logged) == len(executed) == 400
    complete = 0
    for one_of, text in zip(executed, logged, strict=True):
        if one_of.is_complete:
            complete += 1
            assert bytes_of(one_of.text) == text
    # What cannot be told is rare.
    assert complete > 300


def test_values_that_were_sent_before_and_counts_of_rows(
    port: JudgingPort, source: PrivateServer
) -> None:
    with RawClient(port.port, database="judged") as client:
        insert = client.prepare("INSERT INTO t (v, id) VALUES (?, ?)")
        begin = _log_ends(source)
        long_data = bytes((Command.STMT_SEND_LONG_DATA,)) + insert.to_bytes(4, "little") + b"\0\0"
        types = (ColumnType.BLOB, ColumnType.LONG)
        client.say(long_data + b"it's", long_data + b" long", bytes((Command.PING,)))
        client.execute(Execution(statement_id=insert, types=types, values=(None, 5001)))
        client.execute(
            Execution(statement_id=insert, types=types, values=(b"x", 5002), sends_types=False)
        )
        delete = client.prepare("DELETE FROM t WHERE id > ? ORDER BY id LIMIT ?")
        for count_type, count in ((ColumnType.LONG, 1), (ColumnType.VAR_STRING, b"1")):
            types = (ColumnType.LONG, count_type)
            client.execute(Execution(statement_id=delete, types=types, values=(5000, count)))
        client.say(bytes((Command.STMT_CLOSE,)) + delete.to_bytes(4, "little"), b"\x0e")
    *complete, last = [each for packet in port.judges[0].statements for each in packet]
    assert [each.text.encode() for each in complete] == _logged(source, begin)[:3]
    assert all(each.is_complete for each in complete)
    assert last == ClientStatement(
        "DELETE FROM t WHERE id > ? ORDER BY id LIMIT ?",
        is_prepared=True,
        is_complete=False,
    )


def test_query_attributes_are_no_values(
    mysql_server: PrivateServer,
) -> None:
    execute(mysql_server, "CREATE DATABASE attributes", "CREATE TABLE attributes.t (a INT, b INT)")
    with (
        JudgingPort(mysql_server, lambda _: RecordingJudge(reading=MYSQL)) as port,
        RawClient(
            port.port, CAPABILITIES | Capability.QUERY_ATTRIBUTES, database="attributes"
        ) as client,
    ):
        assert Capability.QUERY_ATTRIBUTES in client.capabilities
        client.query("INSERT INTO t VALUES (1, 2)")
        statement_id = client.prepare("INSERT INTO t VALUES (?, ?)")
        long_type = ColumnType.LONG.to_bytes(2, "little")
        for flags, names in ((0, ()), (8, (b"trace",))):
            count = 2 + len(names)
            payload = bytes((Command.STMT_EXECUTE,)) + statement_id.to_bytes(4, "little")
            payload += bytes((flags,)) + b"\x01\0\0\0" + bytes((count,)) + b"\0\x01"
            for name in (b"", b"", *names):
                payload += long_type + bytes((len(name),)) + name
            payload += b"".join(number.to_bytes(4, "little") for number in (7, 8, 9)[:count])
            client.ok(payload)
        assert port.judges[0].texts == [
            "INSERT INTO t VALUES (1, 2)",
            "INSERT INTO t VALUES (7, 8)",
            "INSERT INTO t VALUES (7, 8)",
        ]
    execute(mysql_server, "DROP DATABASE attributes")


def test_many_rows_of_values(mariadb_server: PrivateServer) -> None:
    execute(mariadb_server, "CREATE DATABASE bulk", "CREATE TABLE bulk.t (a INT)")
    with (
        JudgingPort(mariadb_server, lambda _: RecordingJudge()) as port,
        RawClient(
            port.port,
            CAPABILITIES,
            ExtendedCapability.STMT_BULK_OPERATIONS | ExtendedCapability.CACHE_METADATA,
            database="bulk",
        ) as client,
    ):
        statement_id = client.prepare("INSERT INTO t VALUES (?)")
        payload = bytes((Command.STMT_BULK_EXECUTE,)) + statement_id.to_bytes(4, "little")
        rows = b"".join(b"\0" + number.to_bytes(4, "little") for number in range(3))
        assert client.ok(payload + b"\x80\0" + b"\x03\0" + rows).affected_rows == 3
        last = (0xFFFFFFFF).to_bytes(4, "little")
        with pytest.raises(StatementError):
            client.ok(bytes((Command.STMT_EXECUTE,)) + last + b"\0\x01\0\0\0" + b"\0\0")
        one = Execution(statement_id=0xFFFFFFFF, types=(ColumnType.LONG,), values=(4,))
        assert client.execute(one).affected_rows == 1
        assert port.judges[0].statements[0] == (
            ClientStatement(
                "INSERT INTO t VALUES (?)",
                is_prepared=True,
                is_complete=False,
                is_bulk=True,
            ),
        )
        assert port.judges[0].texts[-1] == "INSERT INTO t VALUES (4)"
    execute(mariadb_server, "DROP DATABASE bulk")


def test_session_that_is_reset_begins_again(port: JudgingPort) -> None:
    with RawClient(port.port, database="judged") as client:
        statement_id = client.prepare("INSERT INTO t (v) VALUES (1)")
        client.ok(bytes((Command.RESET_CONNECTION,)))
        ok = client.query("INSERT INTO t (v) VALUES (2)")
        assert ok.affected_rows == 1
        reply = _reply(port)
        assert reply.tracked.get("last_gtid") or reply.gtids
        with pytest.raises(StatementError) as caught:
            client.execute(Execution(statement_id=statement_id))
        assert caught.value.errno == 1243
        assert is_ok(client.change_user("root", "judged"))
        client.query("DELETE FROM t")
        assert is_error(client.change_user("nobody", "judged"))
    calls = port.judges[0].calls
    assert calls.count("reset") >= 2
    assert port.judges[0].session is not None
    assert port.judges[0].session.user == "root"
    wait_until(lambda: calls[-1:] == ["ended"], what="the judge knows of the end")


def test_local_file(port: JudgingPort, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{number}\tx\n" for number in range(20_000, 60_000)))
    with port.connect(database="judged", local_infile=True) as connection:
        cursor = connection.cursor()
        cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t")
        assert cursor.rowcount == 40_000
        assert _reply(port).affected_rows == 40_000
        *content, end = port.judges[-1].content
        assert end is None
        assert b"".join(part or b"" for part in content) == file.read_bytes()
        cursor.execute("DELETE FROM t")


def test_large_statement_is_held_where_its_text_is_wanted(port: JudgingPort) -> None:
    length = 17 << 20
    with port.connect(database="judged", max_allowed_packet=64 << 20) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * length,))
        assert _reply(port).affected_rows == 1
        unread = ClientStatement("", is_complete=False)
        assert port.judges[-1].statements[-1] == (unread,)
        port.judges[-1].reads_long_texts = True
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("y" * length,))
        assert _reply(port).affected_rows == 1
        text = f"INSERT INTO t (v) VALUES ('{'y' * length}')"
        assert port.judges[-1].statements[-1] == (ClientStatement(text),)
        cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * 2 * length,))
        assert _reply(port).affected_rows == 1
        assert port.judges[-1].statements[-1] == (unread,)
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone() == (3,)
        cursor.execute("DELETE FROM t")


def test_command_line(mariadb_server: PrivateServer) -> None:
    script = "SELECT 1; SELECT 'a;b' AS c; SHOW WARNINGS; DO 1; SELECT 3"
    with JudgingPort(mariadb_server, lambda _: RecordingJudge()) as port:
        done = subprocess.run(
            ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port.port}", "-uroot", "-N"],
            input=script,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == ["1", "a;b", "3"]
        assert port.judges[0].texts[-5:] == script.split("; ")


@pytest.mark.parametrize("what", ["CONNECTION", "QUERY"])
def test_statement_that_is_killed(port: JudgingPort, source: PrivateServer, what: str) -> None:
    failures: list[Exception] = []
    victim: Any
    with port.connect() as victim:
        thread_id = victim.thread_id()

        def sleep() -> None:
            try:
                with victim.cursor() as cursor:
                    cursor.execute("SELECT SLEEP(60) FROM (SELECT 1) AS t WHERE 1 = SLEEP(60)")
            except pymysql.err.MySQLError as error:
                failures.append(error)

        thread = threading.Thread(target=sleep)
        thread.start()
        running = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
        wait_until(lambda: bool(execute(source, running)), what="the statement runs")
        execute(source, f"KILL {what} {thread_id}")
        thread.join(30)
        assert not thread.is_alive()
        judge = port.judges[0]
        if what == "QUERY":
            with victim.cursor() as cursor:
                cursor.execute("SELECT 1")
                assert cursor.fetchall() == ((1,),)
        else:
            assert failures
            wait_until(lambda: judge.calls[-1:] == ["ended"], what="the judge knows of the end")
    wait_until(lambda: judge.calls[-1:] == ["ended"], what="the judge knows of the end")
    assert judge.calls.count("ended") == 1


@pytest.mark.parametrize("when", ["idle", "running", "judging", "resetting", "before"])
def test_client_that_goes_away(port: JudgingPort, when: str) -> None:
    started = threading.Event()

    def judge(session: HandlerSession) -> RecordingJudge:
        async def wait(_: object) -> Verdict:
            started.set()
            await session.query_source("SELECT SLEEP(60)")
            return RunVerdict()

        async def reset() -> None:
            await wait(None)

        judging = RecordingJudge(resetting=reset, later=wait)
        verdicts: dict[str, Verdict] = {"before": RunVerdict(before=("SELECT SLEEP(60)",))}
        judging.verdict = lambda _: None if when == "judging" else verdicts.get(when, RunVerdict())
        return judging

    port.judge = judge
    client = RawClient(port.port)
    payload = encode_query("SELECT SLEEP(60)")
    if when == "resetting":
        payload = bytes((Command.RESET_CONNECTION,))
    if when != "idle":
        client._socket.sendall(frame(payload, 0))
        wait_until(
            lambda: started.is_set() or bool(port.judges[0].statements), what="it is under way"
        )
    client.close()
    calls = port.judges[0].calls
    wait_until(lambda: calls[-1:] == ["ended"], what="the judge knows of the end")
    assert calls.count("ended") == 1


@pytest.mark.parametrize("says_goodbye", [False, True])
def test_client_that_does_not_wait(
    port: JudgingPort, source: PrivateServer, *, says_goodbye: bool
) -> None:
    followed: list[int] = []

    def judge(session: HandlerSession) -> RecordingJudge:
        async def then() -> None:
            await session.query_source("SELECT SLEEP(0.2)")
            followed.append(1)

        return RecordingJudge(after=lambda _: Done(then=then))

    port.judge = judge
    begin = execute(source, "SELECT COUNT(*) FROM judged.t WHERE v = 'gone'")[0][0]
    client = RawClient(port.port, database="judged")
    packets = [encode_query("INSERT INTO t (v) VALUES ('gone')")]
    packets += [bytes((Command.QUIT,))] if says_goodbye else []
    client._socket.sendall(b"".join(frame(payload, 0) for payload in packets))
    client.close()
    calls = port.judges[0].calls
    wait_until(lambda: calls[-1:] == ["ended"], what="the judge knows of the end")
    assert calls == ["judge", "done", "ended"]
    assert followed == [1]
    end = execute(source, "SELECT COUNT(*) FROM judged.t WHERE v = 'gone'")[0][0]
    assert end == begin + 1


def test_client_that_sends_much_before_it_reads(port: JudgingPort) -> None:
    with RawClient(port.port, database="judged") as client:
        packets = client.say(*[encode_query(f"DO {number}{' ' * 600}") for number in range(3000)])
    assert len(packets) == 3000
    assert port.judges[0].texts == [f"DO {number}" for number in range(3000)]


def test_source_that_goes_away(servers: ServerFactory) -> None:
    source = servers.start("gone")

    async def later(_: Sequence[ClientStatement]) -> Verdict:
        await session_of().query_source("SELECT SLEEP(60)")
        return RunVerdict()

    def session_of() -> HandlerSession:
        session = port.judges[-1].session
        assert session is not None
        return session

    with JudgingPort(source, lambda _: RecordingJudge(later=later)) as port:
        idle, running = port.connect(), port.connect()
        port.judges[1].verdict = lambda _: None
        thread = threading.Thread(target=lambda: _fails(running))
        thread.start()
        asleep = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
        wait_until(lambda: bool(execute(source, asleep)), what="the judge asks")
        source.kill()
        thread.join(30)
        assert not thread.is_alive()
        _fails(idle)
        for judge in port.judges:
            wait_until(lambda: judge.calls[-1:] == ["ended"], what="the judge knows of the end")  # noqa: B023
            assert judge.calls.count("ended") == 1


def _fails(connection: pymysql.connections.Connection) -> None:
    with pytest.raises(pymysql.err.MySQLError), connection.cursor() as cursor:
        cursor.execute("SELECT 2")


def test_judge_that_cannot_begin_anew_ends_the_session(port: JudgingPort) -> None:
    async def reset() -> None:
        raise BinlaneError("nobody can judge")

    port.judge = lambda _: RecordingJudge(resetting=reset)
    with RawClient(port.port) as client:
        client.ok(bytes((Command.RESET_CONNECTION,)))
        with pytest.raises((OSError, EOFError, AssertionError)):
            client.query("DO 1")
    calls = port.judges[0].calls
    wait_until(lambda: calls == ["reset", "ended"], what="the judge knows of the end")


def test_sessions_without_a_judge_pass(source: PrivateServer) -> None:
    with (
        JudgingPort(source, lambda _: None) as port,
        RawClient(port.port, _MULTI, database="judged") as client,
    ):
        assert is_ok(client.say(encode_query("DO 1"))[0])
        assert len(client.say(encode_query("DO 1; DO 2"))) == 2
