"""What queries over the system tables give, from the SQL of the servers to rows with types."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlogs.store.catalog import ScopeChange
from binlane.errors import StatementError
from binlane.live.answers.system_tables.question import (
    QuestionSession,
    SystemSelect,
    may_ask,
    question_of,
)
from binlane.live.answers.system_tables.run import QueryLimits, QueryRunner, SessionFunctions
from binlane.live.answers.system_tables.snapshot import BinlogFacts, ReplicaFacts, snapshot
from binlane.live.answers.system_tables.system_columns import TABLES
from binlane.live.answers.system_tables.translate import translate
from binlane.live.gateway.answers import RowsAnswer
from binlane.log.codec.packets.results import Cell
from binlane.log.codec.types import ColumnType
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.sql.tokens import SqlSyntaxError

LOG_ID: Final = 6057996416246436865
ENDLESS: Final = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT COUNT(*) FROM n, system.binlogs"
)


def _define(text: str, log_id: int) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG {text}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, log_id)


def _facts(definition: Definition, position: int) -> BinlogFacts:
    return BinlogFacts(
        definition=definition,
        state="OPEN",
        file=f"{definition.name}.000001",
        position=position,
        gtid_complete="0-1-7",
    )


BINNY = _define("'binny' LOG(`test`, `baz`.`bar`), IGNORE(`test`.`foo`), FORMAT='ROW'", LOG_ID)
SNAPSHOT = snapshot(
    [_facts(_define("'all'", 2), 4), _facts(BINNY, 300)],
    [
        ScopeChange(2, "all", "create", "0-1-1", 0, "ROW", 1, "", ""),
        ScopeChange(2, "all", "alter", "0-1-5", 2**40, "MIXED", 1, "", "a"),
    ],
    [ReplicaFacts(server_id=30, host="h:1", user="u", binlog="binny", connection_id=9)],
)


def ask(
    statement: str,
    *,
    modes: str = "",
    database: str = "",
    limits: QueryLimits | None = None,
    version: str = "10.11.19",
) -> RowsAnswer:
    """The answer to a statement that is known to ask system tables."""
    session = QuestionSession(database=database, modes=frozenset(modes.split(",")))
    assert may_ask(statement)
    question = question_of(statement, session)
    assert isinstance(question, SystemSelect)
    sql = translate(statement, question.tokens, pipes_concat="PIPES_AS_CONCAT" in session.modes)
    circumstances = SessionFunctions(user="dba@%", version=version, default_database=database)

    async def run() -> RowsAnswer:
        return await QueryRunner(limits or QueryLimits()).run(sql, SNAPSHOT, circumstances)

    return asyncio.run(run())


def rows(statement: str, **session: str) -> list[tuple[Cell, ...]]:
    return [tuple(row) for row in ask(statement, **session).rows]  # type: ignore[arg-type]  # no limits among them


@pytest.mark.rule("000:system-binlogs")
@pytest.mark.rule("000:log-id")
def test_the_seed_asks_for_a_binlog() -> None:
    answer = ask(
        """SELECT name, log_id, log_all_dbs
        FROM system.binlogs
        WHERE name = 'binny';"""
    )
    assert [head.name for head in answer.heads] == ["name", "log_id", "log_all_dbs"]
    assert answer.rows == [["binny", LOG_ID, 0]]
    assert [head.type_code for head in answer.heads] == [
        *(ColumnType.VAR_STRING, ColumnType.LONGLONG, ColumnType.LONGLONG)
    ]


@pytest.mark.rule("000:system-log-databases")
@pytest.mark.rule("000:system-log-tables")
@pytest.mark.rule("000:system-ignore-databases")
@pytest.mark.rule("000:system-ignore-tables")
@pytest.mark.parametrize(
    "which, listed", [("LOG", [["test"], ["baz.bar"]]), ("IGNORE", [["test.foo"]])]
)
def test_the_seed_asks_for_lists(which: str, listed: list[list[str]]) -> None:
    answer = ask(
        f"""SELECT `database` AS {which}
        FROM system.binlog_{which.lower()}_databases
        WHERE log_id = {LOG_ID}
        UNION
            SELECT CONCAT(`database`, '.', `table`)
            FROM system.binlog_{which.lower()}_tables
            WHERE log_id = {LOG_ID};"""
    )
    assert [head.name for head in answer.heads] == [which]
    assert answer.rows == listed


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("SELECT COUNT(*), MAX(position) / 3 FROM system.binlogs", [(2, "100.0")]),
        ("SELECT 7 DIV 2, 7 MOD 4, 1 || 0, 2 <=> NULL FROM system.binlog_replicas", [(3, 3, 1, 0)]),
        ('SELECT "it\'s", \'a\\\'b\', \'c\'\'d\' FROM system.binlog_replicas', [("it's", "a'b", "c'd")]),
        (
            ("SELECT b.name, GROUP_CONCAT(d.`database` ORDER BY 1 DESC SEPARATOR '; ') FROM "
            "system.binlogs b LEFT JOIN system.binlog_log_databases d ON d.log_id = b.log_id "
            "GROUP BY b.name HAVING COUNT(*) > 0 ORDER BY 1"),
            [("all", None), ("binny", "test")],
        ),
        (
            ("SELECT GROUP_CONCAT(DISTINCT state), GROUP_CONCAT(name, '!' ORDER BY position DESC)"
            " FROM system.binlogs"),
            [("OPEN", "binny!,all!")],
        ),
        (
            "(SELECT name FROM system.binlogs) UNION DISTINCT (SELECT 'x' FROM DUAL) ORDER BY name",
            [("all",), ("binny",), ("x",)],
        ),
        (
            "SELECT name FROM system.binlogs UNION ALL SELECT name FROM system.binlogs LIMIT 1, 2",
            [("binny",), ("all",)],
        ),
        (
            ("SELECT s.name FROM (SELECT * FROM system.binlogs WHERE name LIKE 'B%') s WHERE EXISTS "
            "(SELECT 1 FROM system.binlog_replicas r WHERE r.binlog = s.name)"),
            [("binny",)],
        ),
        ("SELECT name FROM system.binlogs WHERE name LIKE '%\\_%' OR name RLIKE '^a'", [("all",)]),
        (
            ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
            "SELECT i, name FROM n, system.binlogs WHERE name = 'all'"),
            [(1, "all"), (2, "all"), (3, "all")],
        ),
        (
            ("SELECT h.change, h.gtid, h.changed, format FROM system.binlog_scope_history h "
            "ORDER BY h.change DESC"),
            [
                ("create", "0-1-1", "1970-01-01 00:00:00", "ROW"),
                ("alter", "0-1-5", "1099511627776", "MIXED"),
            ],
        ),
        ("TABLE system.binlog_ignore_tables", [(LOG_ID, "test", "foo")]),
        ("SELECT LEFT(name, 2), IF(log_all_dbs, 'all', 'some') AS what FROM system.binlogs", [
            ("al", "all"), ("bi", "some"),
        ]),
        (
            ("SELECT CAST(log_id AS CHAR), CAST('5' AS UNSIGNED) + 1, USER(), VERSION(), "
            "IFNULL(NULL, 3) FROM system.binlogs WHERE name = 'all'"),
            [("2", 6, "dba@%", "10.11.19", 3)],
        ),
        ("SELECT /* c */ name /*!50000 , log_id */ FROM system . `binlogs` # x", [
            ("all", 2), ("binny", LOG_ID),
        ]),
        ("SELECT SQL_NO_CACHE DISTINCT host, X'41' FROM system.binlog_replicas", [("h:1", b"A")]),
        ("SELECT created FROM system.binlogs ORDER BY name", [("1970-01-01 00:00:00",), (None,)]),
        ("SELECT ROW_NUMBER() OVER (ORDER BY name) FROM system.binlogs", [(1,), (2,)]),
        ("SELECT server_id, connection_id, log_id FROM SYSTEM.binlog_replicas", [(30, 9, LOG_ID)]),
    ],
)  # fmt: skip
def test_any_select_is_answered(statement: str, expected: list[tuple[Cell, ...]]) -> None:
    assert rows(statement) == expected


@pytest.mark.parametrize(
    "statement, is_possible",
    [
        ("select * from `system` /* a */ . -- b\n`binlogs`", True),
        ("SHOW TABLES FROM system", True),
        ("SHOW FULL COLUMNS IN binlogs IN `system`", True),
        ("SELECT * FROM system_config, binlogs", False),
        ("SELECT * FROM the system", False),
        ("SHOW TABLES", False),
    ],
)
def test_the_session_is_asked_for_few_statements(statement: str, *, is_possible: bool) -> None:
    assert may_ask(statement) is is_possible
    if is_possible:
        assert question_of(statement, QuestionSession()) is not None


def test_the_session_decides_how_a_statement_is_read() -> None:
    assert rows('SELECT "name" FROM system.binlogs', modes="ANSI_QUOTES") == [("all",), ("binny",)]
    assert rows("SELECT 'a\\' FROM system.binlog_replicas", modes="NO_BACKSLASH_ESCAPES") == [
        ("a\\",)
    ]
    piped = "SELECT name || '!' FROM system.binlogs"
    assert rows(piped, modes="PIPES_AS_CONCAT") == [("all!",), ("binny!",)]
    both = (
        "SELECT DATABASE(), b.name FROM binlogs b, system.binlog_replicas r WHERE r.binlog = name"
    )
    assert rows(both, database="system") == [("system", "binny")]


def test_columns_have_heads_and_types_as_of_the_servers() -> None:
    answer = ask(
        "SELECT log_id, name, position / 2, LEFT(name, 1), COUNT(*) OVER () FROM system.binlogs "
        "WHERE 1 = 0"
    )
    assert [(head.name, head.type_code) for head in answer.heads] == [
        ("log_id", ColumnType.LONGLONG),
        ("name", ColumnType.VAR_STRING),
        ("position / 2", ColumnType.VAR_STRING),
        ("LEFT(name, 1)", ColumnType.VAR_STRING),
        ("COUNT(*) OVER ()", ColumnType.VAR_STRING),
    ]


@pytest.mark.parametrize(
    "statement, errno, problem",
    [
        ("SELECT nope FROM system.binlogs", 1064, "no such column: nope"),
        ("SELECT name FROM system.binlogs FOR UPDATE", 1064, 'near "UPDATE": syntax error'),
        ("SELECT load_extension('x') FROM system.binlogs", 1064, "not authorized"),
        ("SELECT * FROM system.binlogs INTO OUTFILE '/tmp/x'", 1064, "syntax error"),
        ("SELECT '\udcff' FROM system.binlogs", 1300, "Invalid utf8mb4"),
        ("SELECT zeroblob(100000000) FROM system.binlogs", 1064, "too big"),
    ],
)
def test_what_sqlite_refuses_is_told(statement: str, errno: int, problem: str) -> None:
    with pytest.raises(StatementError, match=problem) as raised:
        ask(statement)
    assert raised.value.errno == errno


@pytest.mark.parametrize(
    "statement, near, expected",
    [
        (
            "SELECT * FROM system.binlogs, shop.orders",
            "orders",
            "tables of system alone: `shop`.`orders` is none beside `system`.`binlogs`",
        ),
        (
            "SELECT * FROM system.binlogs WHERE name IN (SELECT a FROM mysql.user)",
            "user)",
            "tables of system alone: `mysql`.`user` is none beside `system`.`binlogs`",
        ),
        (
            "SELECT 1 FROM system.binlogs; DROP TABLE t",
            "; DROP TABLE t",
            "one statement over system tables",
        ),
    ],
)
def test_what_else_is_asked_is_an_error(statement: str, near: str, expected: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        question_of(statement, QuestionSession())
    assert f"near '{near}'" in str(raised.value)
    assert str(raised.value).endswith(f"expected {expected}")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM shop.orders WHERE a = 'system.binlogs'",
        "SELECT system.binlogs FROM t AS system",
        "SELECT * FROM system.other",
        "SELECT * FROM binlogs",
        "SHOW TABLES FROM shop",
        "SHOW TABLES",
        "SHOW SYSTEM",
        "DESCRIBE system.other",
        "EXPLAIN SELECT 1 FROM system.binlogs",
        "SHOW COLUMNS FROM system.binlogs WHERE a",
        "SELECT 'system.binlogs",
        "",
    ],
)
def test_what_asks_no_system_table_is_not_ours(statement: str) -> None:
    assert question_of(statement, QuestionSession(database="shop")) is None


@pytest.mark.parametrize("name", ["?", ":a", "@a", "@@a", "a[1]", "{d '2020-01-01'}", "'a\\0b'"])
def test_what_cannot_be_translated_is_an_error(name: str) -> None:
    statement = f"SELECT {name} FROM system.binlogs"
    with pytest.raises(SqlSyntaxError):
        ask(statement)


@pytest.mark.parametrize(
    "statement",
    [
        (
            "WITH RECURSIVE n(i) AS (SELECT zeroblob(1000000) UNION ALL SELECT i FROM n) "
            "SELECT i FROM n, system.binlogs ORDER BY i"
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
            "SELECT i FROM n, system.binlogs"
        ),
    ],
)
def test_what_takes_too_much_ends(statement: str) -> None:
    # So much time that what ends first is never the time, on any machine.
    limits = QueryLimits(cpu_s=60, wall_s=120, rows_max=1000, memory_bytes=256 << 20)
    with pytest.raises(StatementError, match="needs more than") as raised:
        ask(statement, limits=limits)
    assert (raised.value.errno, raised.value.sqlstate) == (1317, "70100")


@pytest.mark.parametrize("version, errno", [("10.11.19-MariaDB", 1969), ("9.7.4", 3024)])
@pytest.mark.parametrize(
    "statement, limits",
    [
        (ENDLESS, QueryLimits(cpu_s=1)),
        (ENDLESS, QueryLimits(wall_s=0.3)),
        (f"SELECT '{'a' * 40}!' REGEXP '^(a+)+$' FROM system.binlogs", QueryLimits(cpu_s=1)),
    ],
)
def test_what_takes_too_long_ends_as_on_its_server(
    statement: str, limits: QueryLimits, version: str, errno: int
) -> None:
    with pytest.raises(StatementError, match="over system tables it may take") as raised:
        ask(statement, limits=limits, version=version)
    assert raised.value.errno == errno


def test_who_goes_away_leaves_no_process() -> None:
    async def run() -> None:
        runner = QueryRunner(QueryLimits(wall_s=0.3))
        sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        questions = [
            asyncio.create_task(runner.run(sql, SNAPSHOT, SessionFunctions())) for _ in range(3)
        ]
        await asyncio.sleep(0.1)
        questions[0].cancel()
        results = await asyncio.gather(*questions, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert [type(result) for result in results[1:]] == [StatementError] * 2

    asyncio.run(run())


WORDS = st.sampled_from(
    """
    SELECT FROM system . binlogs `binlogs` , ( ) * = AS a `b c` 'x' "y" 1 2.5 -- /* */ /*! ; UNION
    ALL DISTINCT WITH RECURSIVE GROUP_CONCAT CAST LEFT ( SEPARATOR ORDER BY LIMIT COUNT || && ! /
    DIV MOD COLLATE utf8mb4_bin _utf8mb4 @a ? [ ] TABLE IN EXISTS CASE WHEN END JOIN ON DUAL
    """.split()  # noqa: SIM905
)


@given(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=25).map(" ".join)))
@settings(max_examples=300)
def test_any_text_is_a_question_or_none_or_wrong(text: str) -> None:
    for statement in (text, f"SELECT {text} FROM system.binlogs"):
        may_ask(statement)
        try:
            question = question_of(statement, QuestionSession())
            if isinstance(question, SystemSelect):
                translate(statement, question.tokens)
        except SqlSyntaxError:
            continue


def test_tables_are_described() -> None:
    for table, columns in TABLES.items():
        answer = ask(f"SELECT * FROM system.{table}")
        assert [head.name for head in answer.heads] == [name for name, _ in columns]
