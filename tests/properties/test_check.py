"""Whatever a script says: `check` has a verdict, and never calls safe what it did not understand."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import DefinitionError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.check.checker import Checker
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope
from binlane.statements.scope.statements import AlterBinlog, CreateBinlog, alter, create
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.tokens import tokenise
from tests.checked import SCHEMA
from tests.reading import analyse

SERVERS: Final = st.sampled_from(["mariadb", "mysql"])

# -- Any text

WORDS: Final = st.sampled_from(
    """
    SELECT INSERT INTO VALUES UPDATE SET DELETE FROM foo bar test . , ( ) * = 1 'a' "b" `c` @x
    @@y -- # /* */ /*! ; BEGIN END IF THEN WHILE DO CALL PREPARE EXECUTE IMMEDIATE CREATE TABLE
    TRIGGER VIEW PROCEDURE TEMPORARY DROP ALTER RENAME TO XA START COMMIT ROLLBACK SAVEPOINT
    LOCK TABLES WITH RECURSIVE AS UNION WHERE EXISTS CASE WHEN LOAD DATA INFILE GRANT ON
    binlog_format STATEMENT ROW SESSION GLOBAL autocommit 0 NULL DELIMITER BINLOG LOG IGNORE
    """.split()  # noqa: SIM905
)
SOUP: Final = st.lists(WORDS, max_size=20).map(" ".join)


@cache
def _schema(server: str) -> Checker:
    return Checker(Server.parse(server), SCHEMA, "CREATE BINLOG b LOG(test.foo); CREATE BINLOG c;")


@given(st.one_of(st.text(max_size=60), SOUP), SERVERS)
def test_every_text_has_a_verdict(text: str, server: str) -> None:
    for checked in _schema(server).check(text):
        result = checked.result
        assert result.error or result.unanalysed or set(result.binlogs) == {"b", "c"}


@given(SOUP, SERVERS)
def test_what_is_not_understood_is_never_safe(text: str, server: str) -> None:
    for checked in _schema(server).check(text):
        result = checked.result
        is_stopped = analyse(checked.statement.sql, database="test").stopped_at is not None
        if is_stopped and not (result.error or result.unanalysed):
            # What binlane answers itself is no statement of a server.
            assert parse_binlog_statement(checked.statement.sql) is not None


# -- Scopes

OBJECTS: Final = st.sampled_from(
    ["test", "baz", "views", "test.foo", "test.bar", "test.temp", "baz.bar", "test.other", "mysql"]
)
LISTS: Final = st.lists(OBJECTS, min_size=1, max_size=3, unique=True).map(", ".join)


def _is_definition(clauses: str) -> bool:
    """Whether clauses do not contradict each other."""
    try:
        _definitions([f"CREATE BINLOG b {clauses} FORMAT='ROW'"])
    except DefinitionError:
        return False
    return True


SCOPES: Final = st.one_of(
    st.just(""),
    LISTS.map(lambda names: f"LOG({names}),"),
    LISTS.map(lambda names: f"IGNORE({names}),"),
    st.tuples(LISTS, LISTS)
    .map(lambda both: f"LOG({both[0]}), IGNORE({both[1]}),")
    .filter(_is_definition),
)
FORMATS: Final = st.sampled_from(["ROW", "STATEMENT", "MIXED"])
BINLOGS: Final = st.lists(st.tuples(SCOPES, FORMATS), min_size=1, max_size=3).map(
    lambda settings: [
        f"CREATE BINLOG b{number} {scope} FORMAT='{logging_format}'"
        for number, (scope, logging_format) in enumerate(settings)
    ]
)
TABLES: Final = st.sampled_from(["foo", "bar", "baz.bar", "other", "views.v", "temp"])
STATEMENTS: Final = st.one_of(
    TABLES.map(lambda table: f"INSERT INTO {table} VALUES (1)"),
    st.tuples(TABLES, TABLES).map(lambda two: f"INSERT INTO {two[0]} SELECT * FROM {two[1]}"),
    st.tuples(TABLES, TABLES).map(lambda two: f"DELETE x, y FROM {two[0]} x, {two[1]} y"),
    st.tuples(TABLES, TABLES).map(lambda two: f"DELETE x FROM {two[0]} x, {two[1]} y"),
    st.tuples(TABLES, TABLES).map(lambda two: f"DROP TABLE IF EXISTS {two[0]}, {two[1]}"),
    st.sampled_from(
        [
            *("CREATE TABLE more LIKE foo", "CREATE VIEW w AS SELECT * FROM baz.bar"),
            *("BEGIN", "COMMIT", "CREATE USER u", "DROP DATABASE baz", "SAVEPOINT s"),
            *("ROLLBACK TO s", "CALL p()", "LOAD DATA INFILE 'x' INTO TABLE foo"),
            "INSERT INTO foo VALUES (f())",
        ]
    ),
)
OBJECTS_OF_SCRIPTS: Final = """
CREATE DATABASE test; CREATE DATABASE baz; CREATE DATABASE views; USE test;
CREATE TABLE foo (a INT); CREATE TABLE bar (a INT); CREATE TABLE other (a INT);
CREATE TABLE baz.bar (a INT); CREATE VIEW views.v AS SELECT * FROM test.bar;
CREATE TRIGGER g AFTER INSERT ON other FOR EACH ROW INSERT INTO bar VALUES (1);
DELIMITER //
CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO bar VALUES (1); RETURN 1; END //
CREATE PROCEDURE p() BEGIN INSERT INTO foo VALUES (1); INSERT INTO baz.bar VALUES (1); END //
"""


@cache
def _objects(server: str) -> SchemaCatalog:
    catalog = SchemaCatalog(Flavor(server))
    catalog.load(OBJECTS_OF_SCRIPTS)
    return catalog


def _definitions(binlogs: list[str]) -> list[Definition]:
    found: dict[str, Definition] = {}
    for number, text in enumerate(binlogs, 1):
        statement = parse_binlog_statement(text)
        if isinstance(statement, CreateBinlog):
            found[statement.name] = create(statement, number)
        else:
            assert isinstance(statement, AlterBinlog)
            found[statement.name] = alter(found[statement.name], statement)
    return list(found.values())


def _run(statements: list[str], binlogs: list[str], server: str) -> list[StatementResult]:
    """Run statements up to the first that is refused."""
    session = Session(
        server=Server.parse(server),
        objects=_objects(server).copy(),
        definitions=_definitions(binlogs),
        database="test",
        errors=PredictedErrors(),
    )
    found = []
    for statement in ["CREATE TEMPORARY TABLE temp (a INT)", *statements]:
        found.append(session.execute(statement))
        if found[-1].error is not None:
            break
    return found


def _refusal(results: list[StatementResult]) -> Refusal | None:
    error = results[-1].error
    return error if error is not None and error.symbol.startswith("BINLANE_") else None


def _includes(scope: Scope, name: str) -> bool:
    database, _, table = name.partition(".")
    is_view = name in ("views.v", "test.f", "test.g")
    if not table or is_view:
        return scope.includes_database(database)
    return scope.includes(TableName(database, table))


@given(st.lists(STATEMENTS, min_size=1, max_size=5), BINLOGS, OBJECTS, SERVERS)
def test_a_wider_scope_never_silences_a_reason(
    statements: list[str], binlogs: list[str], added: str, server: str
) -> None:
    """A statement is refused as long as a binlog that refused it does not log what was named."""
    before = _run(statements, binlogs, server)
    refusal = _refusal(before)
    if refusal is None:
        return
    for name in refusal.binlogs:
        wider = [*binlogs, f"ALTER BINLOG {name} ADD LOG({added})"]
        try:
            _definitions(wider)
        except DefinitionError:
            continue
        after = _run(statements, wider, server)
        if len(after) < len(before) or after[len(before) - 1].error is not None:
            continue
        scope = next(one.scope for one in _definitions(wider) if one.name == name)
        assert all(_includes(scope, why.what) for why in refusal.why)


@given(st.lists(STATEMENTS, min_size=1, max_size=5), BINLOGS, SERVERS)
def test_what_a_refusal_proposes_helps(
    statements: list[str], binlogs: list[str], server: str
) -> None:
    before = _run(statements, binlogs, server)
    refusal = _refusal(before)
    if refusal is None:
        return
    repairs = [
        repair
        for why in refusal.why
        for repair in re.findall(
            r"ALTER BINLOG '[^']*'(?:,? (?:ADD LOG|DROP IGNORE)\([^)]*\))+", why.hint
        )
    ]
    if not repairs:
        assert all(why.hint for why in refusal.why) or refusal.why
        return
    after = _run(statements, [*binlogs, *dict.fromkeys(repairs)], server)
    same = _refusal(after) if len(after) == len(before) else None
    assert same is None or (same.symbol, same.message) != (refusal.symbol, refusal.message)


@given(st.lists(STATEMENTS, min_size=1, max_size=6), BINLOGS, SERVERS)
def test_a_refused_statement_appends_nothing(
    statements: list[str], binlogs: list[str], server: str
) -> None:
    results = _run(statements, binlogs, server)
    if _refusal(results) is not None:
        assert all(not one.events for one in results[-1].binlogs.values())


@given(st.lists(STATEMENTS, min_size=1, max_size=6), FORMATS, SERVERS)
def test_a_binlog_that_holds_all_logs_like_one_that_logs_all(
    statements: list[str], logging_format: str, server: str
) -> None:
    """A scope that holds every object makes no difference to the events."""
    binlogs = [
        f"CREATE BINLOG b0 FORMAT='{logging_format}'",
        f"CREATE BINLOG b1 LOG(test, baz, views, mysql), FORMAT='{logging_format}'",
    ]
    statements = [one for one in statements if not one.startswith("LOAD DATA")]
    for result in _run(statements, binlogs, server):
        if result.binlogs:
            assert result.binlogs["b0"].events == result.binlogs["b1"].events


# -- The same statement written otherwise


@given(STATEMENTS, st.sampled_from([" ", "\n", "\t", " /* comment */ ", " -- comment\n"]))
def test_white_space_changes_nothing(statement: str, space: str) -> None:
    tokens = [token.text for token in tokenise(statement)]
    spread = "".join(text if text in "(." else space + text for text in tokens).replace(
        f".{space}", "."
    )
    assert analyse(spread, database="d") == analyse(statement, database="d")
