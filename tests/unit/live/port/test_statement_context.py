"""The context of a session's statements, from what its source answers, and their events with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from binlane.errors import StatementError
from binlane.live.port.context_reader import ContextReader, reads_diagnostics
from binlane.live.port.context_use import PLAIN, ContextUse
from binlane.live.port.context_values import asked_values
from binlane.live.port.statement_context import (
    FILE_BYTES_MAX,
    StatementContext,
    complete,
)
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.framing import text_of
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.codec.types import ColumnType, EventType, Flavor, HeaderFlag
from binlane.names import TableName
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.session.log_events import (
    BEGIN_LOAD,
    INSERT_ID,
    LAST_INSERT_ID,
    RANDOM_SEEDS,
    Body,
    MappedTable,
    query,
)
from binlane.statements.sql.evaluation.values import UNKNOWN, Text, constant
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

NOW: Final = 1_800_000_000.25
OFFSET_S: Final = 5.0
"""How far the source's clock is ahead."""
TIMED: Final = ContextUse(time_zone=True, has_microseconds=True, needs_microseconds=True)
ANSWERS: Final[Mapping[str, str]] = {
    "@@pseudo_thread_id": "77",
    "DATABASE()": "d",
    "@@sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
    "@@auto_increment_increment": "1",
    "@@auto_increment_offset": "1",
    "@@character_set_client": "utf8mb4",
    "@@collation_connection": "utf8mb4_general_ci",
    "@@collation_server": "latin1_swedish_ci",
    "@@time_zone": "SYSTEM",
    "@@lc_time_names": "en_US",
    "@@collation_database": "latin1_swedish_ci",
    "@@sql_auto_is_null": "0",
    "@@foreign_key_checks": "1",
    "@@unique_checks": "1",
    "@@check_constraint_checks": "1",
    "@@explicit_defaults_for_timestamp": "1",
    "@@sql_if_exists": "0",
    "@@system_versioning_insert_history": "0",
    "@@secure_timestamp": "NO",
    "@@default_collation_for_utf8mb4": "utf8mb4_0900_ai_ci",
    "@@sql_require_primary_key": "0",
    "@@enable_cascade_triggers": "0",
    "LAST_INSERT_ID()": "9",
    "@@rand_seed1": "11",
    "@@rand_seed2": "12",
}


@dataclass
class Source:
    """Answers as a source does; `asked` has the statements, `answers` what differs."""

    flavor: str = "mariadb:10.11"
    answers: dict[str, str | None] = field(default_factory=dict)
    numbers: dict[str, ColumnType] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    now: float = NOW

    def reader(self) -> ContextReader:
        reader = ContextReader(
            Server.parse(self.flavor), clock=lambda: self.now, seed=lambda most: most // 2
        )
        asyncio.run(reader.read(self.ask))
        return reader

    async def ask(self, statement: str) -> ResultSet:
        self.asked.append(statement)
        if "information_schema" in statement:
            columns = ["answer"]
            cells = [self.answers.get("schema", "latin1_swedish_ci")]
        else:
            columns = statement.removeprefix("SELECT ").removesuffix(" LIMIT 1").split(", ")
            cells = [self._cell(column) for column in columns]
        heads = tuple(
            ColumnDefinition(name=column, type_code=self.numbers.get(column, ColumnType.VAR_STRING))
            for column in columns
        )
        row = tuple(None if cell is None else cell.encode() for cell in cells)
        return ResultSet(tuple(columns), (row,), ServerStatus.AUTOCOMMIT, heads=heads)

    def _cell(self, column: str) -> str | None:
        if column == "@@timestamp" and column not in self.answers:
            self.now += 0.001
            return f"{self.now + OFFSET_S:.6f}"
        return self.answers[column] if column in self.answers else ANSWERS[column]


def facts_of(text: str) -> StatementFacts:
    return read(text, database="d", dialect=Dialect(flavor="mariadb", version=(10, 11, 0)))


def context_of(source: Source, use: ContextUse = PLAIN) -> StatementContext:
    values = source.reader().values
    assert values is not None
    return StatementContext(values, use)


def status_of(body: bytes) -> list[tuple[str, object]]:
    length = int.from_bytes(body[11:13], "little")
    return [(one.name, one.value) for one in decode_status_vars(body[13 : 13 + length])]


INSERT: Final = query("INSERT INTO t VALUES (1)", "d")


# Events -----------------------------------------------------------------------------------------------


def test_statement_of_mariadb() -> None:
    (event,) = complete([INSERT], context_of(Source()), Flavor.MARIADB) or ()

    assert event.type_code == EventType.QUERY
    assert event.flags == 0
    assert event.body[:4] == (77).to_bytes(4, "little")
    assert event.body.endswith(b"d\0INSERT INTO t VALUES (1)")
    assert status_of(event.body) == [
        ("FLAGS2", 1 << 24),
        ("SQL_MODE", 1 << 21 | 1 << 30),
        ("CATALOG_NZ", "std"),
        ("CHARSET", (45, 45, 8)),
    ]


def test_statement_of_mysql_has_more_of_its_session() -> None:
    use = TIMED._replace(
        databases=("d", "e"),
        updated_tables=1,
        has_cascade_switch=True,
        creates_table=True,
        creates_timestamps=True,
    )
    source = Source("mysql:9.7", {"@@lc_time_names": "de_DE", "@@auto_increment_offset": "2"})
    context = context_of(source, use)
    context.microseconds = 123456
    (event,) = complete([INSERT], context, Flavor.MYSQL) or ()

    assert status_of(event.body) == [
        ("FLAGS2", 0),
        ("SQL_MODE", 1 << 21 | 1 << 30),
        ("CATALOG_NZ", "std"),
        ("AUTO_INCREMENT", (1, 2)),
        ("CHARSET", (255, 45, 8)),
        ("TIME_ZONE", "SYSTEM"),
        ("LC_TIME_NAMES", 4),
        ("TABLE_MAP_FOR_UPDATE", 1),
        ("UPDATED_DB_NAMES", ("d", "e")),
        ("MICROSECONDS", 123456),
        ("EXPLICIT_DEFAULTS_FOR_TIMESTAMP", 1),
        ("DEFAULT_COLLATION_FOR_UTF8MB4", 255),
        ("SQL_REQUIRE_PRIMARY_KEY", 0),
        ("ENABLE_CASCADE_TRIGGERS", 0),
    ]


@pytest.mark.parametrize(
    ("flavor", "flags2"),
    [
        ("mariadb:10.11.19", 1 << 15 | 1 << 24 | 1 << 30),
        ("mariadb:11.4.5", 1 << 24 | 1 << 30),
        ("mariadb:11.8.9", 1 << 15 | 1 << 24 | 1 << 30),
    ],
)
def test_options_are_logged_as_the_version_does(flavor: str, flags2: int) -> None:
    """Measured on these servers."""
    answers: dict[str, str | None] = {
        "@@check_constraint_checks": "0",
        "@@system_versioning_insert_history": "1",
        "@@character_set_collations": "",
    }
    (event,) = complete([INSERT], context_of(Source(flavor, answers)), Flavor.MARIADB) or ()
    assert status_of(event.body)[0] == ("FLAGS2", flags2)


def test_flags_say_what_belongs_to_the_connection_and_what_needs_no_database() -> None:
    context = context_of(Source(), ContextUse(is_thread_specific=True))
    (event,) = complete([query("SAVEPOINT `a`")], context, Flavor.MARIADB) or ()

    assert event.flags == HeaderFlag.THREAD_SPECIFIC | HeaderFlag.SUPPRESS_USE
    assert event.body.endswith(b"d\0SAVEPOINT `a`")


def test_values_stand_before_the_statement() -> None:
    context = context_of(Source())
    context.last_insert_id, context.insert_id, context.seeds = 9, 10, (11, 12)
    events = complete([LAST_INSERT_ID, INSERT_ID, RANDOM_SEEDS, INSERT], context, Flavor.MARIADB)

    assert events is not None
    assert [event.body for event in events[:3]] == [
        b"\x01" + (9).to_bytes(8, "little"),
        b"\x02" + (10).to_bytes(8, "little"),
        (11).to_bytes(8, "little") + (12).to_bytes(8, "little"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        LAST_INSERT_ID,
        RANDOM_SEEDS,
        LoggedVariable("x", 5),
        BEGIN_LOAD,
        MappedTable(TableName("d", "t")),
    ],
)
def test_a_value_that_is_not_known_makes_rows(body: Body) -> None:
    assert complete([body, INSERT], context_of(Source()), Flavor.MARIADB) is None


def test_what_a_program_may_change_on_its_way_makes_rows() -> None:
    use = ContextUse(is_program=True, sets_user_variables=frozenset(("x",)))
    context = context_of(Source(), use)
    context.last_insert_id, context.seeds = 9, (11, 12)
    context.variables = {"x": b"x", "y": b"y"}

    for body in (LAST_INSERT_ID, RANDOM_SEEDS, LoggedVariable("x", 5), LoggedVariable("ä", 5)):
        assert complete([body, INSERT], context, Flavor.MARIADB) is None
    assert complete([LoggedVariable("y", 5), INSERT], context, Flavor.MARIADB) is not None


def test_microseconds_that_nothing_depends_on_need_not_be_known() -> None:
    context = context_of(Source(), TIMED._replace(needs_microseconds=False))
    (event,) = complete([INSERT], context, Flavor.MARIADB) or ()

    assert ("HRNOW", 0) in status_of(event.body)
    assert complete([INSERT], context_of(Source(), TIMED), Flavor.MARIADB) is None


@pytest.mark.parametrize(
    "insert_id, affected_rows, info, known",
    [
        (5, 1, "", 5),
        (5, 2, "", None),
        (5, 0, "", None),
        (5, 3, "Records: 3  Duplicates: 0  Warnings: 0", 5),
        (5, 2, "Records: 3  Duplicates: 1  Warnings: 1", None),
        (5, 2, "Records: 3  Duplicates: 0  Warnings: 0", None),
        (5, 3, "Datensätze: 3  Duplikate: 0  Warnungen: 0", 5),
        (5, 3, "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0", 5),
        (5, 3, "Records: 3  Deleted: 0  Skipped: 1  Warnings: 0", None),
        (5, 3, "Rows matched: 3", None),
    ],
)
def test_insert_id_where_rows_may_be_left_out(
    insert_id: int, affected_rows: int, info: str, known: int | None
) -> None:
    context = context_of(Source(), ContextUse(may_skip_rows=True))
    context.answered(insert_id=insert_id, affected_rows=affected_rows, info=info)

    assert context.insert_id == known
    events = complete([INSERT_ID, INSERT], context, Flavor.MARIADB)
    assert (events is None) is (known is None)


def test_before_the_reply_rows_that_may_be_left_out_have_no_insert_id() -> None:
    reader = Source().reader()
    for may_skip, known in ((True, None), (False, 0)):
        needs = reader.needs([INSERT_ID, INSERT], ContextUse(may_skip_rows=may_skip))
        assert needs is not None
        begun = reader.begin(needs)
        assert begun is not None
        assert begun[0].insert_id == known


def test_errors_of_the_moment_make_rows() -> None:
    context = context_of(Source())
    context.answered(errno=1062)
    (event,) = complete([INSERT], context, Flavor.MARIADB) or ()
    assert event.body[9:11] == (1062).to_bytes(2, "little")

    context.answered(errno=1205)
    assert complete([INSERT], context, Flavor.MARIADB) is None


def test_a_drop_of_what_was_there_succeeds_elsewhere() -> None:
    context = context_of(Source())
    context.answered(errno=1051)
    dropped = query("DROP TEMPORARY TABLE `t` /* generated by server */")
    (event,) = complete([dropped], context, Flavor.MARIADB) or ()
    assert event.body[9:11] == bytes(2)


def test_file_of_the_client_in_blocks() -> None:
    context = context_of(Source())
    context.add_data(b"a" * 100_000)
    context.add_data(b"b" * 100_000)
    events = complete([BEGIN_LOAD], context, Flavor.MARIADB)

    assert events is not None
    first, second = events
    kinds = (first.type_code, second.type_code)
    assert kinds == (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK)
    assert len(first.body) == 4 + (1 << 17)
    assert first.body[4:] + second.body[4:] == b"a" * 100_000 + b"b" * 100_000


def test_file_that_is_too_large_is_not_held() -> None:
    context = context_of(Source())
    context.add_data(bytes(FILE_BYTES_MAX))
    assert context.data is not None
    context.add_data(b"x")
    context.add_data(b"x")

    assert context.data is None
    assert complete([BEGIN_LOAD], context, Flavor.MARIADB) is None


def test_text_is_written_in_the_client_character_set() -> None:
    source = Source(answers={"@@character_set_client": "gbk"})
    reader = source.reader()
    text = reader.read_text(text_of(b"INSERT INTO t VALUES ('\x81\x5c')"))
    assert text is not None
    assert text.endswith("'乗')")
    context = context_of(source)
    (event,) = complete([query(text, "d")], context, Flavor.MARIADB) or ()

    assert event.body.endswith(b"INSERT INTO t VALUES ('\x81\x5c')")
    assert complete([query("SELECT '😀'", "d")], context, Flavor.MARIADB) is None


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1"])
def test_values_in_texts_are_in_their_own_character_sets(charset: str) -> None:
    source = Source(answers={"@@character_set_client": charset})
    collations = ("utf8mb4_bin", "gbk_chinese_ci")
    shown = [constant(Text("é", collation), is_mariadb=True) for collation in collations]
    told = [
        complete([query(f"INSERT INTO t VALUES ({one})", "d")], context_of(source), Flavor.MARIADB)
        for one in (*shown, constant(UNKNOWN, is_mariadb=True))
    ]
    assert [one is not None for one in told] == [charset == "utf8mb4", False, False]
    if told[0] is not None:
        (event,) = told[0]
        assert event.body.endswith("_utf8mb4'é' COLLATE 'utf8mb4_bin')".encode())


# Reading ----------------------------------------------------------------------------------------------


def test_values_are_asked_for_once() -> None:
    source = Source()
    reader = source.reader()
    needs = reader.needs([INSERT], PLAIN)

    assert needs is not None
    assert not reader.must_ask(needs)
    assert len(source.asked) == 1
    assert source.asked[0].endswith(" LIMIT 1")  # sql_select_limit may be 0


@pytest.mark.parametrize(
    "statement, is_dirty",
    [
        ("SET sql_mode = ''", True),
        ("SET NAMES latin1", True),
        ("SET autocommit = 0", False),
        ("SET SESSION autocommit = ON", False),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", False),
        ("SET autocommit = 1, sql_mode = ''", True),
        ("SET autocommit = f()", True),
        ("SET autocommit = (SELECT a FROM v)", True),
        ("SET @x = 5", False),
        ("SET @x = f()", True),
        ("USE e", True),
        ("ALTER DATABASE d COLLATE latin1_bin", True),
        ("DROP DATABASE d", True),
        ("CALL p()", True),
        ("EXECUTE s", True),
        ("BEGIN NOT ATOMIC SET sql_mode = ''; END", True),
        ("DO f()", True),
        ("SELECT f()", True),
        ("SELECT NOW(), CONCAT(a) FROM t", False),
        ("SELECT 1", False),
        ("INSERT INTO t VALUES (1)", True),  # a trigger may set anything, as nothing else is told
        ("COMMIT", False),
        ("CREATE TABLE x (a INT)", False),
    ],
)
def test_values_are_asked_for_again(statement: str, *, is_dirty: bool) -> None:
    reader = Source().reader()
    reader.ran(facts_of(statement))

    assert reader.is_dirty is is_dirty


def test_programs_that_set_nothing_leave_the_values() -> None:
    reader = Source().reader()
    reader.ran(facts_of("CALL p()"), ContextUse(is_program=True))
    reader.ran(facts_of("INSERT INTO t VALUES (f())"), PLAIN)
    assert not reader.is_dirty

    reader.ran(facts_of("INSERT INTO t VALUES (f())"), ContextUse(changes_session=True))
    assert reader.is_dirty


def test_values_of_a_statement() -> None:
    source = Source(
        answers={
            "@`x`": "5",
            "HEX(@`x`)": "5",
            "COLLATION(@`x`)": "binary",
            "@`Y``z`": "abc",
            "HEX(@`Y``z`)": "616263",
            "COLLATION(@`Y``z`)": "latin1_bin",
        },
        numbers={"@`x`": ColumnType.LONGLONG},
    )
    reader = source.reader()
    variables = [LoggedVariable("x", 5), LoggedVariable("Y`z", 5)]
    bodies: Sequence[Body] = [LAST_INSERT_ID, RANDOM_SEEDS, *variables, INSERT]
    needs = reader.needs(bodies, PLAIN)
    assert needs is not None
    assert reader.must_ask(needs)
    asyncio.run(reader.read(source.ask, needs))
    begun = reader.begin(needs)
    assert begun is not None
    context, before = begun

    assert not before
    assert (context.last_insert_id, context.seeds) == (9, (11, 12))
    number = b"\x02\x08\x00\x00\x00\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"
    assert context.variables == {
        "x": b"\x01\x00\x00\x00x\x00" + number,
        "y`z": b"\x03\x00\x00\x00Y`z\x00\x00\x2f\x00\x00\x00\x03\x00\x00\x00abc",
    }


def test_mysql_tells_no_seeds_so_they_are_set() -> None:
    reader = Source("mysql:9.7").reader()
    needs = reader.needs([RANDOM_SEEDS, INSERT], PLAIN)
    assert needs is not None
    assert not reader.must_ask(needs)
    begun = reader.begin(needs)
    assert begun is not None
    context, before = begun
    assert context.seeds is not None
    first, second = context.seeds
    assert before == (f"SET rand_seed1={first}, rand_seed2={second}",)

    # Whoever set them himself counts on what follows.
    reader.ran(facts_of("SET rand_seed1 = 1"))
    assert reader.needs([RANDOM_SEEDS, INSERT], PLAIN) is None


def test_microseconds_are_set_by_the_clock_of_the_source() -> None:
    source = Source()
    reader = source.reader()
    needs = reader.needs([INSERT], TIMED)
    assert needs is not None
    begun = reader.begin(needs)
    assert begun is not None
    context, (setting,) = begun

    assert setting == f"SET timestamp={context.timestamp}.{context.microseconds:06}"
    assert context.timestamp == int(source.now + OFFSET_S)
    again = reader.begin(needs)
    assert again is not None
    assert again[1] > (setting,)  # never the same moment twice


def test_a_set_timestamp_ends_before_the_next_statement_but_one_that_asks_for_the_last() -> None:
    source = Source()
    reader = source.reader()
    needs = reader.needs([INSERT], TIMED)
    assert needs is not None
    assert not reader.owed(facts_of("SELECT 1"))
    for plain in (reader.needs([INSERT], PLAIN), None):
        assert reader.begin(needs) is not None
        for left in ("SELECT ROW_COUNT()", "SHOW WARNINGS", "SELECT @@warning_count"):
            assert not reader.owed(facts_of(left))
        begun = None if plain is None else reader.begin(plain)
        before = reader.owed(facts_of("SELECT 1")) if begun is None else begun[1]
        assert before == ("SET timestamp=DEFAULT",)
        assert not reader.owed(None)


def test_a_set_timestamp_ends_later_where_its_end_was_not_sent() -> None:
    reader = Source().reader()
    needs = reader.needs([INSERT], TIMED)
    assert needs is not None
    assert reader.begin(needs) is not None
    end = ("SET timestamp=DEFAULT",)
    assert reader.owed(None) == end
    reader.unsent()
    assert reader.owed(None) == end
    assert reader.owed(None) == ()
    reader.unsent()
    assert reader.owed(None) == ()


def test_a_timestamp_of_the_client_is_left_alone() -> None:
    source = Source()
    reader = source.reader()
    source.answers["@@timestamp"] = "1000000000.123456"
    reader.ran(facts_of("SET timestamp = 1000000000.123456"))
    asyncio.run(reader.read(source.ask))
    needs = reader.needs([INSERT], TIMED._replace(needs_server_time=True))
    assert needs is not None
    begun = reader.begin(needs)
    assert begun is not None
    context, before = begun

    assert not before
    assert (context.timestamp, context.microseconds) == (1_000_000_000, 123456)
    assert context.execution_time_s == int(source.now + OFFSET_S) - 1_000_000_000


def test_what_cannot_be_set_or_asked_makes_rows() -> None:
    secure = Source(answers={"@@secure_timestamp": "YES"}).reader()
    needs = secure.needs([INSERT], TIMED)
    assert needs is not None
    assert secure.begin(needs) is None
    reader = Source().reader()
    assert reader.needs([INSERT], TIMED._replace(needs_server_time=True)) is None
    assert reader.needs([INSERT], TIMED._replace(is_program=True)) is None
    assert reader.needs([INSERT], ContextUse(is_known=False)) is None
    assert reader.needs([INSERT], ContextUse(sets_context=True)) is None
    left = ContextUse(reads_diagnostics=True)
    assert reader.needs([INSERT], left) is not None
    assert reader.needs([LAST_INSERT_ID, INSERT], left) is None


@pytest.mark.parametrize(
    ("text", "is_about_the_last"),
    [
        ("SHOW WARNINGS", True),
        ("SELECT @@error_count", True),
        ("SELECT a FROM t WHERE a = FOUND_ROWS()", True),
        ("SELECT trace FROM information_schema.OPTIMIZER_TRACE", True),
        ("SELECT SUM(duration) FROM INFORMATION_SCHEMA.profiling", True),
        ("SHOW PROFILES", True),
        ("SHOW STATUS LIKE 'Last_query_cost'", True),
        ("SHOW SESSION STATUS LIKE 'Handler%'", True),
        ("SHOW GLOBAL STATUS", False),
        ("SELECT 1 FROM d.profiling, information_schema.tables", False),
    ],
)
def test_what_reads_what_the_last_statement_left(text: str, *, is_about_the_last: bool) -> None:
    facts = read(text, database="d", dialect=Dialect(flavor="mariadb"))
    assert reads_diagnostics(facts) is is_about_the_last


@pytest.mark.parametrize(
    "answers",
    [
        {"@@sql_mode": "A_MODE_OF_TOMORROW"},
        {"@@lc_time_names": "tlh_KX"},
        {"@@collation_connection": "utf8mb4_own_ci"},
        {"@@character_set_client": "klingon"},
    ],
)
def test_unknown_values_make_rows(answers: dict[str, str | None]) -> None:
    reader = Source(answers=answers).reader()
    needs = reader.needs([INSERT], PLAIN)

    assert needs is not None
    assert reader.begin(needs) is None


def test_collation_of_the_database_where_somebody_set_another_one() -> None:
    source = Source()
    reader = source.reader()
    source.answers["@@collation_database"] = "latin1_bin"
    reader.ran(facts_of("SET collation_database = latin1_bin"))
    asyncio.run(reader.read(source.ask))
    assert reader.values is not None
    assert reader.values.database_collation == 47
    reader.ran(facts_of("USE e"))
    source.answers["DATABASE()"] = "e"
    asyncio.run(reader.read(source.ask))
    assert reader.values.database_collation == 0

    # Which one the database has is asked where USE and SET came between two questions.
    reader.ran(facts_of("USE d"))
    reader.ran(facts_of("SET collation_database = latin1_bin"))
    source.answers["DATABASE()"] = "d"
    asyncio.run(reader.read(source.ask))
    assert "information_schema.SCHEMATA" in source.asked[-1]
    assert reader.values.database_collation == 47


def test_character_set_of_a_text_must_be_known() -> None:
    reader = Source().reader()
    assert reader.read_text("SELECT 'ü'") == "SELECT 'ü'"
    reader.ran(facts_of("SET NAMES latin1"))

    assert not reader.is_charset_known
    assert reader.read_text("SELECT 'ü'") is None
    assert reader.read_text("SELECT 'u'") == "SELECT 'u'"


def test_a_question_that_the_source_refuses_makes_rows() -> None:
    source = Source()
    reader = source.reader()
    reader.ran(facts_of("SET sql_mode = ''"))
    needs = reader.needs([INSERT], PLAIN)
    assert needs is not None

    async def refuse(statement: str) -> ResultSet:
        raise StatementError(f"interrupted: {statement}", errno=1317, sqlstate="70100")

    asyncio.run(reader.read(refuse, needs))
    assert reader.begin(needs) is None
    asyncio.run(reader.read(source.ask, needs))
    assert reader.begin(needs) is not None


def test_context_of_a_procedure_is_that_of_its_creation() -> None:
    source = Source()
    reader = source.reader()
    use = ContextUse(is_program=True, routines=(TableName("d", "p"),))
    needs = reader.needs([INSERT], use)
    assert needs is not None

    async def ask(statement: str) -> ResultSet:
        assert "0x" + b"PROCEDURE".hex() in statement
        row = (b"ANSI_QUOTES", b"latin1", b"latin1_german1_ci", b"latin1_bin", b"latin1_bin")
        heads = tuple(ColumnDefinition(name=str(number)) for number in range(5))
        names = tuple(head.name for head in heads)
        return ResultSet(names, (row,), ServerStatus.AUTOCOMMIT, heads=heads)

    asyncio.run(reader.read(ask, needs))
    begun = reader.begin(needs)
    assert begun is not None
    values = begun[0].values
    assert (values.sql_mode, values.client_charset) == (4, "latin1")
    assert (values.charset, values.database_collation) == ((8, 5, 8), 0)


def test_old_servers_are_not_asked_for_what_they_do_not_have() -> None:
    assert "@@sql_if_exists" in asked_values(Server.parse("mariadb:10.11"))
    assert "@@sql_if_exists" not in asked_values(Server("mariadb", (10, 4, 0)))
    assert "@@enable_cascade_triggers" not in asked_values(Server("mysql", (8, 4, 0)))
