"""What scopes include."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope, ScopeList, ScopeObject
from binlane.statements.scope.statements import CreateBinlog, create

FOO, BAR, BAZ_BAR = TableName("test", "foo"), TableName("test", "bar"), TableName("baz", "bar")


def scope_of(clauses: str) -> Scope:
    """The scope that `CREATE BINLOG 'b' <clauses>` makes."""
    return _define(clauses).scope


def _define(clauses: str) -> Definition:
    statement = parse_binlog_statement(f"CREATE BINLOG 'b' {clauses}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1)


@pytest.mark.rule("000:create")
@pytest.mark.rule("000:create-log-database")
@pytest.mark.rule("000:create-log-table")
@pytest.mark.rule("000:create-ignore-database")
@pytest.mark.rule("000:create-ignore-table")
@pytest.mark.rule("000:create-log-database-ignore-table")
@pytest.mark.rule("000:create-log-mixed")
@pytest.mark.rule("000:logged-by-all")
@pytest.mark.rule("000:ignore-wins")
@pytest.mark.parametrize(
    "clauses, included",
    [
        ("", [FOO, BAR, BAZ_BAR]),
        ("LOG ALL", [FOO, BAR, BAZ_BAR]),
        ("IGNORE ALL", []),
        ("LOG(`test`)", [FOO, BAR]),
        ("LOG(`test`, `baz`)", [FOO, BAR, BAZ_BAR]),
        ("LOG(`Test`)", []),
        ("LOG(`test`.`foo`)", [FOO]),
        ("LOG(test.foo, baz)", [FOO, BAZ_BAR]),
        ("LOG(`test`.`foo`, `test`.`bar`)", [FOO, BAR]),
        ("LOG(`test`, `baz`.`bar`)", [FOO, BAR, BAZ_BAR]),
        ("IGNORE(`test`)", [BAZ_BAR]),
        ("IGNORE(`test`, `baz`)", []),
        ("IGNORE(`baz`.`bar`)", [FOO, BAR]),
        ("IGNORE(`test`.`foo`, `baz`.`bar`)", [BAR]),
        ("LOG(`test`), IGNORE(`test`.`foo`)", [BAR]),
        ("IGNORE(`test`.`foo`), LOG(`test`)", [BAR]),
        ("LOG ALL, IGNORE(`test`)", [BAZ_BAR]),
    ],
)
def test_tables(clauses: str, included: list[TableName]) -> None:
    scope = scope_of(clauses)
    assert [table for table in (FOO, BAR, BAZ_BAR) if scope.includes(table)] == included


@pytest.mark.parametrize(
    "clauses, included, splits",
    [
        ("", True, False),
        ("LOG(test)", True, False),
        ("LOG(test), IGNORE(test.foo)", True, True),
        ("LOG(test.foo)", False, True),
        ("LOG(baz), IGNORE(test)", False, False),
        ("LOG(test.foo), IGNORE(test.bar)", False, True),
        ("IGNORE(test.foo)", True, True),
        ("IGNORE(test)", False, False),
        ("LOG(baz)", False, False),
    ],
)
def test_databases(clauses: str, *, included: bool, splits: bool) -> None:
    scope = scope_of(clauses)
    assert scope.includes_database("test") is included
    assert scope.splits_database("test") is splits


@pytest.mark.rule("000:accounts-scope")
@pytest.mark.parametrize(
    "clauses, included",
    [
        ("", True),
        ("IGNORE(`test`)", True),
        ("LOG(`system`)", True),
        ("LOG(`mysql`)", True),
        ("LOG(`test`)", False),
        ("IGNORE(`system`)", False),
        ("IGNORE(`mysql`)", False),
    ],
)
def test_system_is_the_database_of_accounts(clauses: str, *, included: bool) -> None:
    scope = scope_of(clauses)
    assert scope.includes_database("mysql") is included
    assert scope.includes(TableName("mysql", "global_priv")) is included


def test_names_are_compared_as_the_source_compares_them() -> None:
    statement = parse_binlog_statement("CREATE BINLOG 'b' LOG(Shop, `ÉTÉ`.T), IGNORE(SHOP.`Σ`)")
    assert isinstance(statement, CreateBinlog)
    by_case = create(statement, 1).scope
    assert by_case.includes(TableName("Shop", "T"))
    assert not by_case.includes(TableName("shop", "T"))
    without = create(statement, 1, ignores_case=True).scope
    assert without.render(ScopeList.LOG) == "shop, été.t"
    for table, is_in in (
        (TableName("SHOP", "x"), True),
        (TableName("sHOp", "\N{GREEK SMALL LETTER SIGMA}"), False),
        (TableName("Été", "T"), True),
        (TableName("Été", "u"), False),
    ):
        assert without.includes(table) is is_in
    assert without.includes_database("sHop")
    assert without.splits_database("SHOP")
    assert without.touches_database("ÉTÉ")
    assert without.added(ScopeList.IGNORE, ["A"]).dropped(ScopeList.IGNORE, ["a"]) == without
    assert without.with_list(ScopeList.LOG, ["MYSQL"]).includes_database("mysql")


@pytest.mark.rule("000:empty-scope")
def test_nothing_is_not_everything() -> None:
    empty = scope_of("LOG(test)").dropped(ScopeList.LOG, ["test"])
    assert empty == Scope.nothing()
    assert not empty.includes(FOO)
    assert not empty.is_unscoped
    assert Scope.everything().is_unscoped
    assert not scope_of("IGNORE(test)").is_unscoped


@pytest.mark.rule("000:show-master-status-lists")
def test_lists_are_printed_sorted() -> None:
    scope = scope_of("LOG(`test`, `baz`.`bar`), IGNORE(`test`.`foo`)")
    assert scope.render(ScopeList.LOG) == "baz.bar, test"
    assert scope.render(ScopeList.IGNORE) == "test.foo"
    assert Scope.everything().render(ScopeList.LOG) == ""


def test_tables_named_are_those_of_both_lists() -> None:
    scope = scope_of("LOG(a, test.foo), IGNORE(test.bar, b)")
    assert scope.tables_named() == {FOO, BAR}


NAMES = st.text(st.sampled_from("ab"), min_size=1, max_size=2)
TABLES = st.builds(TableName, NAMES, NAMES)
OBJECTS: st.SearchStrategy[frozenset[ScopeObject]] = st.frozensets(st.one_of(NAMES, TABLES))
SCOPES = st.builds(
    lambda log, ignore, everything: (
        (Scope.everything() if everything else Scope.nothing())
        .with_list(ScopeList.LOG, log)
        .with_list(ScopeList.IGNORE, ignore)
    ),
    OBJECTS,
    OBJECTS,
    st.booleans(),
)


@given(SCOPES, st.sampled_from(ScopeList), OBJECTS)
def test_add_and_drop_change_nothing(scope: Scope, which: ScopeList, objects: set[str]) -> None:
    new = objects - scope.objects(which)
    assert scope.added(which, new).dropped(which, new) == scope


@given(SCOPES, OBJECTS, TABLES)
def test_ignoring_more_includes_less(scope: Scope, objects: set[str], table: TableName) -> None:
    assert not scope.added(ScopeList.IGNORE, objects).includes(table) or scope.includes(table)


@given(SCOPES, TABLES)
def test_a_database_that_is_not_split_is_all_or_nothing(scope: Scope, table: TableName) -> None:
    if not scope.splits_database(table.database):
        assert scope.includes(table) == scope.includes_database(table.database)
