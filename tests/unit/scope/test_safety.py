"""The three refusals of seed 000, on the seed's own statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import (
    DependencyError,
    PartialTransactionError,
    PartialWriteError,
    UnsafeStatementError,
)
from binlane.names import TableName
from binlane.scope import (
    CreateBinlog,
    Definition,
    check_statement,
    check_transaction,
    coverage,
    create,
    parse_binlog_statement,
)
from binlane.sql import LoggingFormat, analyse

PREFIX = "[11314] This statement cannot be replicated safely: "
FOO, BAR = TableName("test", "foo"), TableName("test", "bar")


def _define(text: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG {text}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


BINNY = _define("'binny' LOG(`test`.`foo`)")


def _check(
    statement: str, *definitions: Definition, logging_format: LoggingFormat = LoggingFormat.ROW
) -> None:
    formats = {definition.name: logging_format for definition in definitions}
    check_statement(analyse(statement, database="test"), definitions, formats=formats)


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
    with pytest.raises(UnsafeStatementError, match="could not be found out near 'EXECUTE'"):
        _check("EXECUTE IMMEDIATE @a", BINNY)
    _check("EXECUTE IMMEDIATE @a", _define("b"))


def test_drop_database_counts_the_tables_that_the_scope_names() -> None:
    with pytest.raises(PartialWriteError, match=r"both `test` and `test`\.`foo`"):
        _check("DROP DATABASE test", BINNY)
    with pytest.raises(PartialWriteError, match=r"both `test` and `test`\.`foo`"):
        _check("DROP DATABASE test", _define("b LOG(test), IGNORE(test.foo)"))
    _check("DROP DATABASE test", _define("b LOG(test)"), _define("c LOG(other.foo)"))


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
    found = coverage(analyse(statement, database="other"), _define(binlog).scope)
    assert found.is_whole is is_whole
    assert not found.is_partial


@pytest.mark.rule("000:partial-transaction")
@pytest.mark.rule("000:partial-transaction-text")
def test_a_partial_transaction_is_refused_where_it_crosses_the_edge() -> None:
    insert_foo = analyse("INSERT INTO test.foo VALUES (1), (3)", database="")
    insert_bar = analyse("INSERT INTO test.bar VALUES (1), (3)", database="")
    check_transaction([], insert_foo, [BINNY])
    check_transaction([FOO], insert_foo, [BINNY])
    for written, effects in (([FOO], insert_bar), ([BAR], insert_foo)):
        with pytest.raises(PartialTransactionError) as raised:
            check_transaction(written, effects, [BINNY, _define("b"), _define("c LOG(x)")])
        assert str(raised.value) == (
            PREFIX + "binlogs {binny} only record some of the changes made by the transaction"
        )
        assert (raised.value.errno, raised.value.sqlstate) == (1, "HY000")


def test_reading_and_temporary_tables_make_no_transaction_partial() -> None:
    check_transaction([FOO], analyse("SELECT * FROM test.bar", database=""), [BINNY])
    temporary = analyse("CREATE TEMPORARY TABLE test.bar (a INT)", database="")
    check_transaction([FOO], temporary, [BINNY])


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
