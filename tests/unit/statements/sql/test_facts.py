"""What the text of a statement says about how it is logged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.statements.sql.facts import RowChange, StatementFacts, VariableScope
from binlane.statements.sql.tokens import LONG, TokenKind
from binlane.statements.sql.tree.expressions import Literal, walk
from tests.reading import read, read_expression


def _read(statement: str) -> StatementFacts:
    facts = read(statement, database="d")
    assert facts.effects.stopped_at is None, facts.effects.stopped_at
    return facts


def _calls(statement: str) -> list[str]:
    facts = _read(statement)
    return [
        f"{call.database + '.' if call.database else ''}{call.name}"
        f"({'|'.join(map(facts.text_of, call.arguments))})"
        for call in facts.functions
    ]


@pytest.mark.parametrize(
    ("statement", "verb"),
    [
        ("/* a */ insert into t values (1)", "INSERT"),
        ("create or replace temporary table t (a int)", "CREATE TABLE"),
        ("create unique index i on t (a)", "CREATE INDEX"),
        ("drop schema x", "DROP DATABASE"),
        ("create definer=root@localhost function f() returns int return 1", "CREATE FUNCTION"),
        ("truncate t", "TRUNCATE TABLE"),
        ("rename user a to b", "RENAME USER"),
        ("show binlog events in 'x' from 4", "SHOW BINLOG EVENTS"),
        ("show create table t", "SHOW CREATE TABLE"),
        ("show tables from x", "SHOW TABLES"),
        ("show warnings limit 1", "SHOW WARNINGS"),
        ("use x", "USE"),
        ("reset master", "RESET MASTER"),
        ("flush local binary logs", "FLUSH BINARY LOGS"),
        ("flush tables t with read lock", "FLUSH TABLES"),
        ("analyze local table t", "ANALYZE TABLE"),
        ("analyze format=json delete from t", "DELETE"),
        ("xa begin 'a'", "XA START"),
        ("lock tables t read", "LOCK TABLES"),
        ("unlock tables", "UNLOCK TABLES"),
        ("lock instance for backup", "LOCK INSTANCE"),
        ("drop prepare s", "DEALLOCATE"),
        ("handler t open", "HANDLER OPEN"),
        ("load xml infile 'f' into table t", "LOAD XML"),
        ("start slave", "START SLAVE"),
        ("set password = 'x'", "SET PASSWORD"),
        ("grant select on *.* to x", "GRANT"),
        ("get diagnostics condition 1 @a = message_text", "GET DIAGNOSTICS"),
        ("set statement max_statement_time=1 for select 1", "SELECT"),
        ("with x as (select 1) delete from t", "DELETE"),
        ("table t", "TABLE"),
        ("(select 1)", "SELECT"),
    ],
)
def test_verb(statement: str, verb: str) -> None:
    assert _read(statement).verb == verb


@pytest.mark.parametrize(
    ("statement", "calls"),
    [
        ("SELECT a IN (1), NOT (b), x AND (y), EXISTS (SELECT 1)", []),
        ("INSERT INTO t (a, b) VALUES (1, VALUES(a)) ON DUPLICATE KEY UPDATE a = VALUES(a)", []),
        ("SELECT CAST(a AS CHAR(3)), CONVERT(b, DECIMAL(1, 2))", []),
        ("SELECT f( 1 , (2), 'a,b' ), x.g(), `h`(1)", ["f(1|2|'a,b')", "x.g()", "h(1)"]),
        ("SELECT f(g(1, h()), k())", ["f(g(1, h())|k())", "g(1|h())", "h()", "k()"]),
        (
            "SELECT current_user, CURRENT_USER(), t.current_user",
            ["current_user()", "CURRENT_USER()"],
        ),
        ("SELECT a FROM t ORDER BY rand() LIMIT 1", ["rand()"]),
        ("SELECT LEFT(a, 1), REPLACE(a, b, c), INSERT(a, 1, 2, b) FROM t", None),
        ("SELECT trim(both 'x' from a), extract(year from b)", None),
        ("SELECT NEXT VALUE FOR x.s, PREVIOUS VALUE FOR s", ["NEXTVAL(x.s)", "LASTVAL(s)"]),
        ("SELECT * FROM JSON_TABLE(a, '$' COLUMNS (b CHAR(3) PATH '$')) j", None),
        ("CALL x.p(1, (SELECT a FROM t))", ["x.p(1|(SELECT a FROM t))"]),
        ("CALL p", ["p()"]),
        ("SELECT sum(a) OVER (PARTITION BY f(b) ORDER BY c), max(d) OVER w", None),
        ("CREATE FUNCTION f() RETURNS INT RETURN uuid()", []),
        ("CREATE VIEW v AS SELECT uuid()", []),
    ],
)
def test_functions(statement: str, calls: list[str] | None) -> None:
    found = _calls(statement)
    if calls is None:
        calls = found
        assert all(not name.upper().startswith(("OVER", "COLUMNS", "FROM")) for name in found)
        assert found
    assert found == calls


def test_places_of_calls_and_tables() -> None:
    statement = "INSERT INTO `x`.t  SELECT uuid (), y.u.a FROM y . u AS u"
    facts = _read(statement)
    assert [statement[use.offset :][: use.length] for use in facts.functions] == ["uuid ()"]
    assert [statement[use.offset :][: use.length] for use in facts.tables] == ["`x`.t", "y . u"]
    assert facts.has_query
    assert facts.query_offset == statement.index("SELECT")
    assert facts.functions[0].upper_name == "UUID"
    assert not facts.functions[0].is_quoted


def _tables(statement: str) -> dict[str, str]:
    return {
        table.name.table: " ".join(sorted(change.name for change in table.changes))
        for table in _read(statement).tables
    }


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("INSERT INTO t SELECT * FROM u", {"t": "INSERT", "u": ""}),
        ("REPLACE t VALUES (1)", {"t": "REPLACE"}),
        ("INSERT t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", {"t": "INSERT UPSERT"}),
        ("UPDATE t, u SET t.a = u.a", {"t": "UPDATE", "u": ""}),
        ("UPDATE t x, u SET x.a = 1, b = 1", {"t": "UPDATE", "u": "UPDATE"}),
        ("UPDATE t, (SELECT 1 FROM u) v SET a = 1", {"t": "UPDATE", "u": ""}),
        ("DELETE t FROM t JOIN u", {"t": "DELETE", "u": ""}),
        ("LOAD DATA INFILE 'f' INTO TABLE t", {"t": "LOAD"}),
        ("CREATE TABLE t SELECT * FROM u", {"t": "INSERT", "u": ""}),
        ("CREATE TABLE t (a INT) REPLACE SELECT * FROM u", {"t": "REPLACE", "u": ""}),
        ("CREATE TABLE t LIKE u", {"t": "", "u": ""}),
        ("DROP TABLE t, u", {"t": "", "u": ""}),
        ("RENAME TABLE t TO u", {"t": "", "u": ""}),
        ("ALTER TABLE t RENAME u, ENGINE = Aria", {"t": "", "u": ""}),
        ("SELECT nextval(s), lastval(r)", {"s": "SEQUENCE", "r": ""}),
        ("CREATE VIEW v AS SELECT * FROM t", {"t": ""}),
        ("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (1)", {"t": ""}),
    ],
)
def test_tables(statement: str, tables: dict[str, str]) -> None:
    assert _tables(statement) == tables


def test_tables_of_subqueries_are_not_outermost() -> None:
    tables = _read(
        "SELECT * FROM t JOIN (SELECT * FROM u) x WHERE a IN (SELECT 1 FROM v) UNION TABLE w"
    ).tables
    outermost = {table.name.table: table.is_outermost for table in tables}
    assert outermost == {"t": True, "u": False, "v": False, "w": True}


def test_for_update_means_the_tables_of_its_own_select() -> None:
    def locked(statement: str) -> set[str]:
        return {table.alias for table in _read(statement).tables if table.is_locked_for_update}

    assert locked("SELECT * FROM t a, u WHERE x IN (SELECT 1 FROM v) FOR UPDATE") == {"a", "u"}
    assert locked("SELECT * FROM t a, u FOR UPDATE OF u SKIP LOCKED") == {"u"}
    assert locked("SELECT * FROM t FOR SHARE") == set()
    assert locked("SELECT * FROM t WHERE a = (SELECT 1 FROM u FOR UPDATE)") == {"u"}


def test_locking_reads() -> None:
    facts = _read("SELECT 1 FROM t FOR UPDATE SKIP LOCKED")
    assert (facts.skip_locked, facts.nowait) == (27, None)
    facts = _read("SELECT 1 FROM t LOCK IN SHARE MODE NOWAIT")
    assert (facts.skip_locked, facts.nowait) == (None, 35)


@pytest.mark.parametrize(
    ("statement", "limits"),
    [
        ("DELETE FROM t LIMIT 1", ["LIMIT 1"]),
        ("SELECT 1 LIMIT 0", ["0:LIMIT 0"]),
        ("SELECT 1 LIMIT 5, 0", ["0:LIMIT 5, 0"]),
        ("SELECT 1 LIMIT 0 OFFSET 5", ["0:LIMIT 0 OFFSET 5"]),
        ("SELECT 1 LIMIT 0, 5", ["LIMIT 0, 5"]),
        ("SELECT 1 LIMIT ?", ["LIMIT ?"]),
        ("SELECT 1 LIMIT 5 ROWS EXAMINED 7", ["LIMIT 5 ROWS EXAMINED 7"]),
        ("SELECT 1 LIMIT ROWS EXAMINED 7", ["LIMIT ROWS EXAMINED 7"]),
        ("SELECT 1 OFFSET 1 ROW FETCH FIRST ROW ONLY", ["OFFSET 1 ROW FETCH FIRST ROW ONLY"]),
        ("SELECT 1 FETCH NEXT 3 ROWS WITH TIES", ["FETCH NEXT 3 ROWS WITH TIES"]),
        ("UPDATE t SET a = (SELECT 1 LIMIT 2) LIMIT 3", ["LIMIT 2", "LIMIT 3"]),
        ("SELECT offset, window FROM t", []),
    ],
)
def test_limits(statement: str, limits: list[str]) -> None:
    found = [
        ("0:" if limit.is_zero else "") + statement[limit.offset :][: limit.length]
        for limit in _read(statement).limits
    ]
    assert found == limits


def test_inserts() -> None:
    facts = _read("INSERT IGNORE INTO t (a, t.b) VALUES (1, DEFAULT), (2, 3)")
    assert facts.is_ignore
    assert facts.columns == ("a", "b")
    assert (facts.row_count, facts.defaults, facts.has_query) == (2, True, False)
    facts = _read("REPLACE DELAYED t SET a = 1, b = 2")
    assert (facts.is_replace, facts.is_delayed, facts.columns) == (True, True, ("a", "b"))
    assert facts.set_columns == ()
    facts = _read("INSERT INTO t () VALUES () ON DUPLICATE KEY UPDATE x.a = 1, b = 2 RETURNING a")
    assert facts.columns == ()
    assert facts.has_returning
    assert facts.is_on_duplicate
    assert facts.on_duplicate_offset == 27
    assert [(one.qualifier, one.name) for one in facts.set_columns] == [("x", "a"), (None, "b")]
    assert _read("INSERT INTO t VALUES (1)").columns is None
    assert not _read("INSERT INTO t SELECT DEFAULT(a) FROM t").defaults


def test_loads() -> None:
    facts = _read(
        "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t CHARACTER SET utf8 (a, @b) SET c = @b"
    )
    assert (facts.is_local, facts.is_replace, facts.name) == (True, True, "f")
    assert facts.columns == ("a", "@b")
    assert [column.name for column in facts.set_columns] == ["c"]


@pytest.mark.parametrize(
    ("statement", "is_multi_table", "has_where"),
    [
        ("UPDATE t USE INDEX (a) SET a = 1 WHERE b = (SELECT 1 FROM u, v)", False, True),
        ("UPDATE t, u SET t.a = 1", True, False),
        ("UPDATE t JOIN u USING (a) SET t.a = (SELECT 1 FROM w WHERE 1)", True, False),
        ("UPDATE (t) SET a = 1", False, False),
        ("DELETE FROM t WHERE a IN (SELECT 1 FROM u JOIN v)", False, True),
        ("DELETE FROM t", False, False),
        ("DELETE t FROM t WHERE 1", True, True),
    ],
)
def test_updates_and_deletes(statement: str, *, is_multi_table: bool, has_where: bool) -> None:
    facts = _read(statement)
    assert facts.is_multi_table is is_multi_table
    assert facts.has_where is has_where


def test_variables() -> None:
    facts = _read("SELECT @A, @`b` := 1, @@x, @@GLOBAL.Y, @@local.z, @@a.b INTO @c")
    assert [(one.name, one.is_assigned) for one in facts.user_variables] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]
    assert [(one.name, one.scope) for one in facts.system_variables] == [
        ("x", VariableScope.UNSAID),
        ("y", VariableScope.GLOBAL),
        ("z", VariableScope.SESSION),
        ("a.b", VariableScope.UNSAID),
    ]
    assert facts.has_into


@pytest.mark.parametrize(
    ("statement", "assignments"),
    [
        ("SET autocommit = ON", "autocommit= ON"),
        ("SET @A = 1, @@session.X := DEFAULT", "@a= 1; x=SESSION DEFAULT"),
        ("SET GLOBAL a = 1, b = 2, SESSION c = 3", "a=GLOBAL 1; b=GLOBAL 2; c=SESSION 3"),
        ("SET PERSIST a = f(1, 2), @@persist_only.b = 2", "a=PERSIST f(1, 2); b=PERSIST 2"),
        ("SET NAMES utf8 COLLATE utf8_bin, a = 1", "names= utf8 COLLATE utf8_bin; a= 1"),
        ("SET CHARACTER SET 'latin1'", "character set= latin1"),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ  COMMITTED, READ ONLY",
            (
                "transaction isolation level=SESSION READ COMMITTED; "
                "transaction access mode=SESSION READ ONLY"
            ),
        ),
        ("SET TRANSACTION READ WRITE", "transaction access mode= READ WRITE"),
        ("SET ROLE ALL EXCEPT x", "role= ALL EXCEPT x"),
        ("SET a = (SELECT max(x) FROM t), b = 2", "a= (SELECT max(x) FROM t); b= 2"),
        ("SET NEW.A = 1, names = 2", "new.a= 1; names= 2"),
        ("SET hot.key_buffer_size = 1", "hot.key_buffer_size= 1"),
    ],
)
def test_assignments(statement: str, assignments: str) -> None:
    found = [
        f"{one.name}={one.scope.name if one.scope.value else ''} {one.value}"
        for one in _read(statement).assignments
    ]
    assert "; ".join(found) == assignments


def test_assignments_of_one_statement() -> None:
    facts = _read("SET STATEMENT binlog_format = ROW, b = 1 FOR INSERT INTO t VALUES (1)")
    assert [(one.name, one.value) for one in facts.statement_assignments] == [
        ("binlog_format", "ROW"),
        ("b", "1"),
    ]
    assert facts.assignments == ()
    assert facts.tables[0].changes == {RowChange.INSERT}


def test_prepared_statements() -> None:
    assert _read("PREPARE s FROM 'SELECT 1'").name == "s"
    facts = _read("EXECUTE s USING @a, 1 + 2")
    assert (facts.name, [use.name for use in facts.user_variables]) == ("s", ["a"])
    facts = _read("EXECUTE IMMEDIATE concat('a', @b) USING uuid()")
    assert [call.name for call in facts.functions] == ["concat", "uuid"]


@pytest.mark.parametrize(
    ("statement", "name", "options"),
    [
        ("START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT", "", None),
        ("COMMIT AND CHAIN", "", {"AND CHAIN"}),
        ("ROLLBACK WORK AND NO CHAIN RELEASE", "", {"RELEASE"}),
        ("ROLLBACK WORK TO SAVEPOINT `a b`", "a b", set()),
        ("RELEASE SAVEPOINT s", "s", set()),
        ("USE `x`", "x", set()),
        ("HANDLER t OPEN AS h", "h", set()),
        ("XA COMMIT 'a','b',1 ONE PHASE", "", {"ONE PHASE"}),
        ("DROP TABLE t CASCADE", "", {"CASCADE"}),
        ("CREATE FUNCTION f RETURNS INT SONAME 'x.so'", "", {"SONAME"}),
    ],
)
def test_names_and_options(statement: str, name: str, options: set[str] | None) -> None:
    facts = _read(statement)
    assert facts.name == name
    if options is None:
        options = {"READ ONLY", "WITH CONSISTENT SNAPSHOT"}
    assert facts.options == options


def test_creates() -> None:
    facts = _read("CREATE OR REPLACE TABLE t (a INT) ENGINE 'Aria' IGNORE AS SELECT 1")
    assert (facts.effects.is_or_replace, facts.is_ignore, facts.is_replace) == (True, True, False)
    assert facts.engine == "ARIA"
    statement = "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = 1"
    assert _read(statement).body_offset == statement.index("SET")
    statement = "CREATE VIEW v (a) AS (SELECT 1 FROM t) WITH CHECK OPTION"
    assert _read(statement).body_offset == statement.index("(SELECT")


def test_locks() -> None:
    tables = _read("LOCK TABLES a AS x READ LOCAL, b LOW_PRIORITY WRITE, c WRITE").tables
    assert [(table.name.table, table.lock) for table in tables] == [
        ("a", "READ LOCAL"),
        ("b", "LOW_PRIORITY WRITE"),
        ("c", "WRITE"),
    ]


def test_expressions() -> None:
    facts = read_expression("f(a) > (SELECT max(b) FROM t)", database="d")
    assert [call.name for call in facts.functions] == ["f", "max"]
    assert facts.functions[0].offset == 0
    assert [table.name.table for table in facts.tables] == ["t"]
    assert read_expression("1 FROM t", database="d").effects.stopped_at is not None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT f(SELECT 1)",
        "SELECT (a FROM t)",
        "SELECT 1 + FROM t SELECT 2",
        "SELECT * FROM f(1)",
        "SELECT {d 1)",
        "SELECT",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
        "SELECT * FROM t1 t2 t3",
        "SELECT * FROM WHERE 1",
        "CREATE TABLE SELECT",
        "DELETE FROM IF",
        "SELECT 1 UNION DELETE FROM t",
        "VALUES 1",
        "SET",
        "SET a 1",
        "SET TRANSACTION ISOLATION LEVEL SAFE",
        "LOCK TABLES t",
        "XA FORGET 'a'",
        "XA START",
        "PREPARE s FROM",
        "HANDLER t DROP",
        "BINLOG 1",
        "BEGIN NOT ATOMIC DECLARE UNDO HANDLER FOR 1 BEGIN END; END",
        "BEGIN NOT ATOMIC ; END",
        "IF THEN DO 1; END IF",
        "DELETE FROM a USING a JOIN b DROP TABLE c",
        "INSERT INTO t SELECT 1; DROP TABLE t",
        "SELECT 1 INTO OUTFILE 'f' DROP",
    ],
)
def test_what_is_not_understood_is_never_whole(statement: str) -> None:
    assert read(statement, database="d").effects.stopped_at is not None


# Long texts -----------------------------------------------------------------------------------


def test_many_rows_are_counted_without_reading_each() -> None:
    rows = ",\n".join(f"({number}, 'a''),(\\'b', NULL)" for number in range(20_000))
    statement = f"INSERT INTO t VALUES {rows} ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM u)"
    facts = _read(statement)
    assert facts.row_count == 20_000
    assert [table.name.table for table in facts.tables] == ["t", "u"]


def test_rows_of_a_long_statement_are_read_where_they_are_no_literals() -> None:
    rows = ", ".join("(1, 2)" for _ in range(LONG))
    facts = _read(f"INSERT INTO t VALUES {rows}, (uuid(), (SELECT a FROM u)), {rows}, (1, 2)")
    assert facts.row_count == 2 * LONG + 2
    assert [call.name for call in facts.functions] == ["uuid"]
    assert [table.name.table for table in facts.tables] == ["t", "u"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (CONCAT({}))",
        "INSERT INTO t SELECT {}, f()",
        "UPDATE t SET a = COALESCE(b, {})",
        "SELECT g({}) FROM t",
    ],
)
def test_long_lists_of_literals_in_calls_and_select_lists(statement: str) -> None:
    text = statement.format(", ".join(f"'{number:1000}'" for number in range(20)))
    facts = _read(text)
    assert facts.effects.stopped_at is None
    assert [table.name.table for table in facts.tables] == ["t"]
    assert len([node for node in walk(facts.tree) if isinstance(node, Literal)]) == 20


def test_long_lists_of_literals() -> None:
    numbers = ",".join(str(number) for number in range(LONG))
    facts = _read(f"DELETE FROM t WHERE a IN ({numbers}) AND b = f() LIMIT 1")
    assert [call.name for call in facts.functions] == ["f"]
    assert len(facts.limits) == 1


def test_bytes_that_are_no_text_and_open_quotes_stop_the_analysis() -> None:
    assert _read("INSERT INTO t VALUES ('\udcff')").row_count == 1
    stopped = read("INSERT INTO t VALUES ('\udcff)", database="d").effects.stopped_at
    assert stopped is not None
    assert (stopped.kind, stopped.offset) == (TokenKind.INVALID, 22)


# The same in another form ---------------------------------------------------------------------

_PIECES = (
    "SELECT",
    "DISTINCT",
    "a",
    ",",
    "count",
    "(",
    "*",
    ")",
    "FROM",
    "t1",
    "AS",
    "x",
    "JOIN",
    "`T 2`",
    "ON",
    "x.a",
    "=",
    "'It''s'",
    "WHERE",
    "uuid",
    "IN",
    "(SELECT b FROM t3)",
    "ORDER BY",
    "LIMIT",
    "7",
    "UNION",
    "@v",
    "@@sql_mode",
    "INSERT INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE FROM",
    "WITH c AS (SELECT 1)",
    "FOR UPDATE",
    "INTERVAL 1 DAY",
    "CASE WHEN",
    "THEN",
    "END",
    "CREATE TABLE",
    "DROP TABLE",
)
_STATEMENTS = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=16).map(" ".join),
    st.sampled_from(
        (
            "INSERT INTO t1 SELECT uuid ( ) , a FROM `T 2` WHERE b = @v LIMIT 7",
            "UPDATE t1 AS x JOIN `T 2` ON x.a = 1 SET x.b = sleep ( 1 ) WHERE @@sql_mode = 'A'",
            "DELETE FROM t1 WHERE a IN ( SELECT b FROM t3 FOR UPDATE ) ORDER BY c LIMIT 1",
            "CREATE TABLE t1 ENGINE = MyISAM REPLACE SELECT * FROM t3",
        )
    ),
)
_GAPS = st.sampled_from((" ", "\n\t ", " /* x; */ ", " -- y\n", " # z\n "))


def _pretty(statement: str, gaps: list[str], *, is_upper: bool) -> str:
    """The statement with other gaps, and keywords in another case; names stay."""
    words = statement.split(" ")
    keep = ("`", "'", '"', "@")
    swapped = [
        (word.upper() if is_upper else word.lower())
        if word.isalpha() and word.upper() in _KEYWORDS and not word.startswith(keep)
        else word
        for word in words
    ]
    text = ""
    in_quotes = False
    for index, word in enumerate(swapped):
        text += word
        in_quotes ^= (word.count("`") + word.count("'")) % 2 == 1
        if index < len(swapped) - 1:
            text += " " if in_quotes else gaps[index % len(gaps)]
    return text


_KEYWORDS = {word for piece in _PIECES for word in piece.split(" ") if word.isupper()}


def _without_places(facts: StatementFacts) -> str:
    """What does not depend on where it stands; a keyword that is taken for a name has any case."""
    effects = facts.effects
    found: list[object] = [
        (effects.kind, effects.writes, effects.reads, effects.calls, effects.stopped_at is None),
        facts.verb,
        [
            (one.name, one.alias, sorted(one.changes, key=str), one.is_outermost)
            for one in facts.tables
        ],
        [(call.name, call.database, len(call.arguments)) for call in facts.functions],
        [(one.name, one.scope) for one in facts.system_variables],
        [(one.name, one.is_assigned) for one in facts.user_variables],
        [limit.is_zero for limit in facts.limits],
        (facts.columns, facts.row_count, facts.defaults, facts.set_columns, facts.engine),
        (facts.is_replace, facts.has_query, facts.has_where, facts.is_multi_table),
        (facts.skip_locked is None, facts.has_into, sorted(facts.options)),
    ]
    return repr(found).lower()


@given(
    statement=_STATEMENTS,
    gaps=st.lists(_GAPS, min_size=1, max_size=5),
    is_upper=st.booleans(),
)
def test_facts_do_not_depend_on_white_space_comments_and_case(
    statement: str, gaps: list[str], *, is_upper: bool
) -> None:
    pretty = _pretty(statement, gaps, is_upper=is_upper)
    assert _without_places(read(pretty, database="d")) == _without_places(
        read(statement, database="d")
    )
