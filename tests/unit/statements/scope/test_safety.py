"""The three refusals of seed 000, on the seed's own statements."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import (
    DependencyError,
    LoadDataError,
    PartialWriteError,
    TriggerError,
    UnsafeStatementError,
)
from binlane.names import TableName
from binlane.statements.scope.changes import (
    Changes,
    FiredTrigger,
    ObjectKind,
    UsedObject,
    changed_databases,
    needed_tables,
    written_tables,
)
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.repair import statement_to_log
from binlane.statements.scope.safety import Danger, Setting, coverage, find_dangers, is_recorded
from binlane.statements.scope.statements import AlterBinlog, CreateBinlog, alter, create
from binlane.statements.scope.transaction import TransactionWrites, find_partial_transaction
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind
from tests.reading import analyse

PREFIX = "[11314] This statement cannot be replicated safely: "
FOO, BAR = TableName("test", "foo"), TableName("test", "bar")


def _define(text: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG {text}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


BINNY = _define("'binny' LOG(`test`.`foo`)")


def find_danger(changes: Changes, settings: Sequence[Setting]) -> Danger | None:
    return next(find_dangers(changes, settings), None)


def _changes(statement: str, *, database: str = "test") -> Changes:
    """By the text alone."""
    effects = analyse(statement, database=database)
    stopped = effects.stopped_at
    writes = [
        UsedObject(name=name, is_temporary=effects.is_temporary) for name in written_tables(effects)
    ]
    return Changes(
        kind=effects.kind,
        writes=(*writes, *changed_databases(effects)),
        needs=tuple(UsedObject(name=name) for name in needed_tables(effects)),
        drops_databases=bool(effects.dropped_databases),
        stopped_near="" if stopped is None else stopped.text,
    )


def _check(
    statement: str, *definitions: Definition, logging_format: LoggingFormat = LoggingFormat.ROW
) -> None:
    settings = [
        Setting(definition=one, mode=one.logging_mode, logging_format=logging_format)
        for one in definitions
    ]
    danger = find_danger(_changes(statement), settings)
    if danger is not None:
        raise danger.error


@pytest.mark.rule("000:partial-write")
@pytest.mark.rule("000:partial-write-text")
@pytest.mark.rule("000:partial-write-update")
@pytest.mark.rule("000:partial-write-delete")
@pytest.mark.rule("000:partial-write-drop")
@pytest.mark.rule("000:not-mysql-partial-rows")
@pytest.mark.parametrize("logging_format", LoggingFormat)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE test.foo JOIN test.bar ON (f = b) SET foo.f = 2, bar.b = 2 WHERE b = 1",
        "DELETE test.foo.*, test.bar.* FROM test.foo JOIN test.bar ON (f = b) WHERE b = 3",
        "DROP TABLE test.foo, test.bar",
    ],
)
def test_a_partial_write_is_refused(statement: str, logging_format: LoggingFormat) -> None:
    with pytest.raises(PartialWriteError) as raised:
        _check(statement, BINNY, logging_format=logging_format)
    assert str(raised.value) == (
        PREFIX + "binlogs {binny} do not log both `test`.`foo` and `test`.`bar`"
    )
    assert (raised.value.errno, raised.value.sqlstate) == (1, "HY000")
    assert raised.value.hint


def test_all_binlogs_that_split_the_pair_are_named() -> None:
    others = [_define("z IGNORE(test.foo)"), _define("a LOG(test.bar)"), _define("all")]
    with pytest.raises(PartialWriteError, match=r"\{a, binny, z\} do not log both `test`.`foo`"):
        _check("DROP TABLE foo, bar", BINNY, *others)


def test_the_pair_is_one_inside_and_one_outside() -> None:
    with pytest.raises(PartialWriteError, match=r"both `test`\.`a` and `test`\.`foo`"):
        _check("DROP TABLE a, b, foo", BINNY)


@pytest.mark.rule("000:write-outside")
@pytest.mark.rule("000:multi-table-all-in")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO test.foo VALUES (1), (3)",
        "INSERT INTO test.bar VALUES (1), (3)",
        "DROP TABLE a, b",
        "SELECT * FROM foo, bar",
        "CREATE TEMPORARY TABLE bar SELECT * FROM foo",
        "BEGIN",
    ],
)
def test_what_is_wholly_inside_or_outside_is_fine(statement: str) -> None:
    _check(statement, BINNY, logging_format=LoggingFormat.STATEMENT)


@pytest.mark.rule("000:dependency")
@pytest.mark.rule("000:dependency-text")
@pytest.mark.rule("000:dependency-insert-select")
@pytest.mark.rule("000:dependency-update-join")
@pytest.mark.rule("000:dependency-delete-join")
@pytest.mark.rule("000:dependency-row")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO test.foo SELECT * FROM test.bar",
        "UPDATE test.foo JOIN test.bar ON (f = b) SET foo.f = 2 WHERE b = 1",
        "DELETE test.foo.* FROM test.foo JOIN test.bar ON (f = b) WHERE b = 3",
    ],
)
def test_a_dependency_is_refused_in_statement_format_only(statement: str) -> None:
    with pytest.raises(DependencyError) as raised:
        _check(statement, BINNY, logging_format=LoggingFormat.STATEMENT)
    assert str(raised.value) == (
        PREFIX + "binlog binny does not log `test`.`bar`, "
        "consequently the statement might not replay correctly"
    )
    assert (raised.value.errno, raised.value.sqlstate) == (1, "HY000")
    _check(statement, BINNY, logging_format=LoggingFormat.ROW)


@pytest.mark.rule("000:dependency")
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE foo LIKE bar",
        "CREATE TABLE foo (a INT REFERENCES bar (b))",
        "CREATE TRIGGER g AFTER INSERT ON foo FOR EACH ROW INSERT INTO bar VALUES (1)",
    ],
)
def test_a_dependency_of_ddl_is_refused_in_row_format_too(statement: str) -> None:
    with pytest.raises(DependencyError):
        _check(statement, BINNY, logging_format=LoggingFormat.ROW)


def test_reading_what_is_logged_is_fine() -> None:
    _check("INSERT INTO foo SELECT * FROM bar", _define("b LOG(test)"))
    _check("INSERT INTO bar SELECT * FROM foo", BINNY, logging_format=LoggingFormat.STATEMENT)


def test_what_is_not_understood_is_not_guessed_safe() -> None:
    with pytest.raises(UnsafeStatementError, match="could not be found out near 'FROBNICATE'"):
        _check("FROBNICATE @a", BINNY)
    _check("FROBNICATE @a", _define("b"))


def test_drop_database_counts_the_tables_that_the_scope_names() -> None:
    for drop in ("DROP", "CREATE OR REPLACE"):
        with pytest.raises(PartialWriteError, match=r"both `test` and `test`\.`foo`"):
            _check(f"{drop} DATABASE test", BINNY)
    with pytest.raises(PartialWriteError, match=r"both `test` and `test`\.`foo`"):
        _check("DROP DATABASE test", _define("b LOG(test), IGNORE(test.foo)"))
    _check("DROP DATABASE test", _define("b LOG(test)"), _define("c LOG(other.foo)"))
    _check("CREATE DATABASE test", BINNY)


@pytest.mark.rule("000:writes-in-scope")
@pytest.mark.rule("000:default-database")
@pytest.mark.rule("000:same-for-both-formats")
@pytest.mark.rule("000:not-mysql-default-database")
@pytest.mark.rule("000:accounts-scope")
@pytest.mark.rule("000:accounts-grant-objects")
@pytest.mark.rule("000:view-writes")
@pytest.mark.rule("000:routine-statement")
@pytest.mark.parametrize(
    "binlog, statement, is_whole",
    [
        ("b1 LOG(`test`.`foo`)", "INSERT INTO test.foo VALUES (1)", True),
        ("b2 LOG(`test`)", "INSERT INTO test.foo VALUES (1)", True),
        ("b3", "INSERT INTO test.foo VALUES (1)", True),
        ("b4 IGNORE(`baz`)", "INSERT INTO test.foo VALUES (1)", True),
        ("b5 IGNORE(`baz`.`bar`)", "INSERT INTO test.foo VALUES (1)", True),
        ("b6 LOG(`other`)", "INSERT INTO test.foo VALUES (1)", False),
        ("b7 LOG(`other`)", "INSERT INTO foo VALUES (1)", True),
        ("b1", "CREATE USER 'example'@'%'", True),
        ("b2 IGNORE(`test`)", "DROP USER 'example'@'%'", True),
        ("b3 LOG(`system`)", "SET PASSWORD FOR a@b = PASSWORD('12345')", True),
        ("b4 LOG(`test`)", "GRANT ALL ON `test`.* TO 'example1'@'localhost'", False),
        ("b LOG(other)", "CREATE VIEW v AS SELECT * FROM test.foo", True),
        ("b LOG(other.v)", "DROP VIEW v", False),
        ("b LOG(other)", "CREATE PROCEDURE p() INSERT INTO t VALUES (1)", True),
        ("b LOG(other.t)", "CREATE PROCEDURE p() INSERT INTO t VALUES (1)", False),
    ],
)
def test_where_a_statement_goes(binlog: str, statement: str, *, is_whole: bool) -> None:
    found = coverage(_changes(statement, database="other"), _define(binlog).scope)
    assert found.is_whole is is_whole
    assert not found.is_partial


def _insert(table: str, *, is_transactional: bool = True) -> list[UsedObject]:
    return [UsedObject(name=TableName("test", table), is_transactional=is_transactional)]


def _transaction(*tables: str) -> TransactionWrites:
    state = TransactionWrites()
    for table in tables:
        state = state.added(_insert(table), frozenset({"binny"} if table == "foo" else ()))
    return state


@pytest.mark.rule("000:partial-transaction")
@pytest.mark.rule("000:partial-transaction-text")
def test_a_partial_transaction_is_refused_where_it_crosses_the_edge() -> None:
    others = [BINNY, _define("b"), _define("c LOG(x)")]
    logs_foo, logs_bar = frozenset({"binny", "b"}), frozenset({"b"})
    assert find_partial_transaction(TransactionWrites(), _insert("foo"), logs_foo, others) is None
    after_foo = TransactionWrites().added(_insert("foo"), logs_foo)
    assert find_partial_transaction(after_foo, _insert("foo"), logs_foo, others) is None
    after_bar = TransactionWrites().added(_insert("bar"), logs_bar)
    for before, now, binlogs, earlier in (
        (after_foo, "bar", logs_bar, "foo"),
        (after_bar, "foo", logs_foo, "bar"),
    ):
        danger = find_partial_transaction(before, _insert(now), binlogs, others)
        assert danger is not None
        assert str(danger.error) == (
            PREFIX + "binlogs {binny} only record some of the changes made by the transaction"
        )
        assert (danger.error.errno, danger.error.sqlstate) == (1, "HY000")
        assert danger.binlogs == ("binny",)
        assert [str(cause.used) for cause in danger.causes] == [f"`test`.`{now}`"]
        assert danger.causes[0].hint == (
            f"COMMIT first, after the change of `test`.`{earlier}`; "
            "or ALTER BINLOG 'binny' ADD LOG(`test`.`bar`)"
        )


def test_reading_and_temporary_tables_make_no_transaction_partial() -> None:
    assert find_partial_transaction(_transaction("foo"), [], frozenset(), [BINNY]) is None
    temporary = UsedObject(name=BAR, is_temporary=True)
    assert find_partial_transaction(_transaction("foo"), [temporary], frozenset(), [BINNY]) is None
    state = _transaction("foo").added([temporary], frozenset())
    assert state == _transaction("foo")


def test_a_savepoint_gives_back_what_a_rollback_undoes_and_nothing_else() -> None:
    savepoint = _transaction("foo")
    undone = savepoint.added(_insert("bar"), frozenset()).rolled_back_to(savepoint)
    assert undone == savepoint
    kept = savepoint.added(_insert("bar", is_transactional=False), frozenset())
    assert find_partial_transaction(
        kept.rolled_back_to(savepoint), _insert("foo"), frozenset({"binny"}), [BINNY]
    )


def test_a_long_transaction_remembers_each_kind_of_write_once() -> None:
    state = _transaction(*["foo"] * 1000)
    assert len(state.writes) == 1


def _settings(
    *definitions: Definition,
    mode: LoggingMode | None = None,
    logging_format: LoggingFormat = LoggingFormat.STATEMENT,
    temporary: frozenset[TableName] = frozenset(),
) -> list[Setting]:
    return [
        Setting(
            definition=one,
            mode=mode or one.logging_mode,
            logging_format=logging_format,
            temporary_tables=temporary,
        )
        for one in definitions
    ]


def _danger(changes: Changes, *settings: Setting) -> Danger:
    danger = find_danger(changes, settings)
    assert danger is not None
    return danger


@pytest.mark.rule("000:table-scope-triggers")
@pytest.mark.parametrize(
    "binlog, is_refused",
    [
        ("b LOG(test.foo), FORMAT='STATEMENT'", True),
        ("b LOG(test), IGNORE(test.bar), FORMAT='STATEMENT'", True),
        ("b LOG(test), FORMAT='STATEMENT'", False),
        ("b FORMAT='STATEMENT'", False),
        ("b LOG(test.bar), FORMAT='STATEMENT'", False),
    ],
)
def test_triggers_in_table_scope_and_statement_format(binlog: str, *, is_refused: bool) -> None:
    trigger = UsedObject(name=TableName("test", "g"), kind=ObjectKind.ROUTINE)
    changes = Changes(
        kind=StatementKind.INSERT,
        writes=(UsedObject(name=FOO),),
        triggers=(FiredTrigger(trigger=trigger, table=FOO),),
    )
    definition = _define(binlog)
    by_rows = _settings(definition, logging_format=LoggingFormat.ROW)
    assert find_danger(changes, by_rows) is None
    if not is_refused:
        assert find_danger(changes, _settings(definition)) is None
        return
    danger = _danger(changes, *_settings(definition))
    assert isinstance(danger.error, TriggerError)
    assert str(danger.error) == (
        PREFIX + "binlog b logs `test`.`foo` by its name and in statement format, "
        "with which triggers such as `test`.`g` are not supported"
    )
    assert "SET SESSION binlog_format = 'ROW'" in danger.error.hint


@pytest.mark.rule("000:load-data-statement")
def test_load_data_as_a_statement_is_refused_in_scoped_binlogs() -> None:
    changes = _changes("LOAD DATA INFILE 'x' INTO TABLE foo")
    scoped = _define("b LOG(test)")
    danger = _danger(changes, *_settings(scoped))
    assert isinstance(danger.error, LoadDataError)
    assert danger.error.hint == "SET SESSION binlog_format = 'ROW'"
    assert find_danger(changes, _settings(scoped, logging_format=LoggingFormat.ROW)) is None
    assert find_danger(changes, _settings(_define("all"), _define("c LOG(x)"))) is None


@pytest.mark.rule("000:temporary-partial-write")
def test_a_temporary_and_a_permanent_table_in_row_format() -> None:
    changes = Changes(
        kind=StatementKind.UPDATE,
        writes=(UsedObject(name=FOO), UsedObject(name=BAR, is_temporary=True)),
    )
    by_rows = _settings(_define("bin"), logging_format=LoggingFormat.ROW)
    danger = _danger(changes, *by_rows)
    assert str(danger.error) == (
        PREFIX + "binlogs {bin} do not log both `test`.`foo` and `test`.`bar`"
    )
    as_text = _settings(_define("bin FORMAT='STATEMENT'"), temporary=frozenset({BAR}))
    assert find_danger(changes, as_text) is None
    assert find_danger(changes, _settings(_define("bin FORMAT='STATEMENT'")))
    assert find_danger(changes, _settings(_define("c LOG(x)"))) is None


@pytest.mark.rule("000:temporary-stopped-read")
def test_a_write_from_a_temporary_table_that_is_logged_no_more() -> None:
    changes = Changes(
        kind=StatementKind.INSERT,
        writes=(UsedObject(name=FOO),),
        needs=(UsedObject(name=BAR, is_temporary=True),),
    )
    definition = _define("bin FORMAT='STATEMENT'")
    assert find_danger(changes, _settings(definition, temporary=frozenset({BAR}))) is None
    for logging_format in LoggingFormat:
        danger = _danger(changes, *_settings(definition, logging_format=logging_format))
        assert isinstance(danger.error, DependencyError)
    by_rows = _settings(definition, mode=LoggingMode.MIXED, logging_format=LoggingFormat.ROW)
    assert find_danger(changes, by_rows) is None


@pytest.mark.rule("000:routine-statement")
@pytest.mark.rule("000:routine-row")
@pytest.mark.parametrize(
    "binlog, as_text, as_rows",
    [
        ("b LOG(test)", True, True),
        ("b", True, True),
        ("b LOG(test.foo)", False, True),
        ("b LOG(test), IGNORE(test.bar)", True, True),
        ("b LOG(other)", False, False),
    ],
)
def test_what_a_procedure_does(binlog: str, *, as_text: bool, as_rows: bool) -> None:
    changes = Changes(
        kind=StatementKind.INSERT, writes=(UsedObject(name=FOO),), is_in_procedure=True
    )
    for logging_format, expected in (
        (LoggingFormat.STATEMENT, as_text),
        (LoggingFormat.ROW, as_rows),
    ):
        setting = _settings(_define(binlog), logging_format=logging_format)[0]
        assert is_recorded(changes, setting) is expected


@pytest.mark.rule("000:view-writes")
def test_a_statement_through_a_view_needs_the_views_database() -> None:
    view = UsedObject(name=TableName("views", "v"), kind=ObjectKind.VIEW)
    changes = Changes(kind=StatementKind.INSERT, writes=(UsedObject(name=FOO),), needs=(view,))
    danger = _danger(changes, *_settings(_define("b LOG(test)")))
    assert str(danger.error) == (
        PREFIX + "binlog b does not log `views`.`v`, "
        "consequently the statement might not replay correctly"
    )
    assert danger.causes[0].hint.startswith("ALTER BINLOG 'b' ADD LOG(`views`); or ")
    assert find_danger(changes, _settings(_define("b LOG(test, views)"))) is None
    by_name = _settings(_define("b LOG(test, views.v)"))
    assert find_danger(changes, by_name) is not None


def test_a_routines_body_is_no_dependency_of_its_definition() -> None:
    logs_test = _define("b LOG(test)")
    _check("CREATE PROCEDURE p() INSERT INTO other.t SELECT * FROM other.u", logs_test)
    _check("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM other.t", logs_test)


def test_what_every_server_has_is_no_dependency() -> None:
    statement = "INSERT INTO foo SELECT 1 FROM information_schema.tables"
    _check(statement, BINNY, logging_format=LoggingFormat.STATEMENT)


def test_statements_without_objects_go_to_binlogs_that_log_everything() -> None:
    changes = _changes("FLUSH TABLES foo, bar")
    assert [is_recorded(changes, one) for one in _settings(_define("b"), BINNY)] == [True, False]
    assert find_danger(changes, _settings(BINNY)) is None


TABLES = st.sampled_from(["test.foo", "test.bar", "baz.bar", "baz.foo"])
CLAUSES = st.sampled_from(
    ["", "LOG(test)", "LOG(test.foo)", "IGNORE(baz)", "IGNORE(test.foo)", "LOG(baz, test.bar)"]
)


@given(st.lists(TABLES, min_size=1, max_size=4, unique=True), st.lists(CLAUSES, max_size=4))
def test_refused_means_that_some_scope_splits_the_tables(
    tables: list[str], clauses: list[str]
) -> None:
    definitions = [_define(f"b{number} {clause}") for number, clause in enumerate(clauses)]
    names = [TableName(*table.split(".")) for table in tables]
    is_split = any(len({one.scope.includes(name) for name in names}) > 1 for one in definitions)
    try:
        _check(f"DROP TABLE {', '.join(tables)}", *definitions)
    except PartialWriteError:
        assert is_split
    else:
        assert not is_split


OBJECTS = st.one_of(
    TABLES.map(lambda name: UsedObject(name=TableName(*name.split(".")))),
    st.sampled_from(["test", "baz", "mysql"]).map(
        lambda name: UsedObject(name=name, kind=ObjectKind.DATABASE)
    ),
    st.just(UsedObject(name=TableName("test", "v"), kind=ObjectKind.VIEW)),
)
MORE_CLAUSES = CLAUSES | st.sampled_from(
    ["IGNORE(test.foo, test)", "IGNORE(system)", "LOG(system), IGNORE(mysql)"]
)


@given(OBJECTS, MORE_CLAUSES)
def test_the_hint_puts_the_object_in_scope(used: UsedObject, clauses: str) -> None:
    definition = _define(f"b {clauses}")
    hint = statement_to_log(definition, used)
    assert bool(hint) is not used.is_in(definition.scope)
    if hint:
        statement = parse_binlog_statement(hint)
        assert isinstance(statement, AlterBinlog)
        assert used.is_in(alter(definition, statement).scope)
