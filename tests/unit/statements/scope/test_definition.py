"""What CREATE and ALTER BINLOG make of definitions."""

from __future__ import annotations

import pytest

from binlane.errors import DefinitionError
from binlane.names import TableName
from binlane.statements.scope.definition import Definition, duplicate_binlog, look_up
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope, ScopeList
from binlane.statements.scope.statements import (
    AlterBinlog,
    CreateBinlog,
    DefaultFormat,
    alter,
    create,
)
from binlane.statements.sql.servers import LoggingMode

FOO = TableName("test", "foo")
B_C = TableName("b", "c")
SAME = "of the same statement"
NEVER = "what is in both lists is never logged"


def _created(text: str) -> Definition:
    statement = parse_binlog_statement(text)
    assert isinstance(statement, CreateBinlog)
    return create(statement, 7)


def _altered(clauses: str, directives: str) -> Scope:
    """The scope of a binlog after `ALTER BINLOG 'binny' <directives>`."""
    statement = parse_binlog_statement(f"ALTER BINLOG 'binny' {directives}")
    assert isinstance(statement, AlterBinlog)
    return alter(_created(f"CREATE BINLOG 'binny' {clauses}"), statement).scope


def _scope(*log: str | TableName, ignore: tuple[str | TableName, ...] = ()) -> Scope:
    scope = Scope.nothing() if log else Scope.everything()
    return scope.with_list(ScopeList.LOG, log).with_list(ScopeList.IGNORE, ignore)


@pytest.mark.rule("000:several-binlogs")
@pytest.mark.rule("000:create-format-default")
def test_create() -> None:
    assert _created("CREATE BINLOG binny") == Definition(
        name="binny", scope=Scope.everything(), logging_mode=LoggingMode.ROW, log_id=7
    )


@pytest.mark.rule("000:alter-log-all")
@pytest.mark.rule("000:alter-ignore-all")
@pytest.mark.rule("000:alter-log")
@pytest.mark.rule("000:alter-ignore")
@pytest.mark.rule("000:alter-add-log")
@pytest.mark.rule("000:alter-add-ignore")
@pytest.mark.rule("000:alter-drop-log")
@pytest.mark.rule("000:alter-drop-ignore")
@pytest.mark.rule("000:alter-left-to-right")
@pytest.mark.rule("000:alter-reset-then-add")
@pytest.mark.parametrize(
    "before, directives, after",
    [
        ("LOG(a), IGNORE(a.b)", "LOG ALL", Scope.everything()),
        ("LOG(a), IGNORE(a.b)", "IGNORE ALL", Scope.nothing()),
        ("LOG(a), IGNORE(a.b)", "LOG(`test`)", _scope("test")),
        ("LOG(a), IGNORE(a.b)", "IGNORE(`test`)", _scope(ignore=("test",))),
        ("LOG(a)", "LOG(test), IGNORE(test.foo)", _scope("test", ignore=(FOO,))),
        ("LOG(a)", "IGNORE(test.foo), LOG(test)", _scope("test", ignore=(FOO,))),
        ("LOG(a)", "ADD LOG(`test`)", _scope("a", "test")),
        ("LOG(a)", "ADD IGNORE(`test`)", _scope("a", ignore=("test",))),
        ("LOG(a, test)", "DROP LOG(`test`)", _scope("a")),
        ("LOG(a), IGNORE(test)", "DROP IGNORE(`test`)", _scope("a")),
        ("LOG(a)", "LOG ALL, IGNORE(test)", _scope(ignore=("test",))),
        ("LOG(a)", "LOG ALL, ADD IGNORE(test)", _scope(ignore=("test",))),
        ("LOG(a)", "IGNORE(test), LOG(b), ADD IGNORE(b.c)", _scope("b", ignore=("test", B_C))),
        ("LOG(a)", "ADD LOG(a.b)", _scope("a", TableName("a", "b"))),
        ("LOG(a)", "ADD LOG(b), ADD LOG(c)", _scope("a", "b", "c")),
        ("LOG(a)", "DROP LOG(a)", Scope.nothing()),
        ("LOG(baz)", "DROP LOG(`baz`), ADD LOG(`test`)", _scope("test")),
        (
            "LOG(a)",
            "IGNORE ALL, ADD LOG(`baz`, `test`), ADD IGNORE(`test`.`foo`)",
            _scope("baz", "test", ignore=(FOO,)),
        ),
    ],
)
def test_alter(before: str, directives: str, after: Scope) -> None:
    assert _altered(before, directives) == after


def test_what_is_not_in_a_list_cannot_be_dropped() -> None:
    with pytest.raises(DefinitionError, match="the LOG list has no `b`") as raised:
        _altered("LOG(a, test.foo)", "DROP LOG(b)")
    assert raised.value.hint == "it holds: a, test.foo"
    with pytest.raises(DefinitionError, match=r"the IGNORE list has no `a`\.`b`") as raised:
        _altered("LOG(a)", "DROP IGNORE(a.b)")
    assert raised.value.hint == "it holds: nothing"


def test_alter_keeps_what_it_does_not_name() -> None:
    definition = _created("CREATE BINLOG b LOG(a), FORMAT='MIXED'")
    changed = alter(definition, AlterBinlog("b", (), LoggingMode.STATEMENT))
    assert (changed.log_id, changed.scope) == (7, definition.scope)
    assert changed.logging_mode is LoggingMode.STATEMENT
    assert alter(definition, AlterBinlog("b")) == definition
    assert not definition.is_compressed
    compressed = alter(definition, AlterBinlog("b", is_compressed=True))
    assert compressed.is_compressed
    assert alter(compressed, AlterBinlog("b")) == compressed
    assert alter(compressed, AlterBinlog("b", is_compressed=False)) == definition


@pytest.mark.rule("001:binlog-format-option")
def test_a_format_that_is_not_said_is_the_default() -> None:
    mixed = LoggingMode.MIXED
    for said in (None, DefaultFormat.DEFAULT):
        statement = CreateBinlog("b", (), said)
        assert create(statement, 1).logging_mode is LoggingMode.ROW
        assert create(statement, 1, default=mixed).logging_mode is mixed
    row = create(CreateBinlog("b", (), LoggingMode.ROW), 1, default=mixed)
    assert row.logging_mode is LoggingMode.ROW
    assert alter(row, AlterBinlog("b"), default=mixed) == row
    changed = alter(row, AlterBinlog("b", (), DefaultFormat.DEFAULT), default=mixed)
    assert changed.logging_mode is mixed


@pytest.mark.parametrize("name", ["orders", "a-b_c.d", "9", "a.1b", "a.index.x", "x" * 64])
def test_names(name: str) -> None:
    assert _created(f"CREATE BINLOG '{name}'").name == name


@pytest.mark.parametrize(
    "name, problem",
    [
        ("", "is empty"),
        ("x" * 65, "has 65 characters"),
        ("a/b", "has characters that are not allowed"),
        (".hidden", "has characters that are not allowed"),
        ("-rf", "has characters that are not allowed"),
        ("a b", "has characters that are not allowed"),
        ("журнал", "has characters that are not allowed"),
        ("orders.000001", "ends in .000001"),
        ("a.1b.2", "ends in .2"),
        ("orders.index", "ends in .index"),
    ],
)
def test_names_that_are_no_file_names(name: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        _created(f"CREATE BINLOG '{name}'")
    assert str(raised.value) == f"incorrect binlog name '{name}': it {problem}"
    assert raised.value.hint


def test_an_unknown_binlog_names_those_that_exist() -> None:
    definitions = {name: _created(f"CREATE BINLOG {name}") for name in ("b", "a")}
    assert look_up("b", definitions) is definitions["b"]
    with pytest.raises(DefinitionError) as raised:
        look_up("x", definitions)
    assert str(raised.value) == "unknown binlog 'x'; the binlogs are 'a', 'b'"
    assert raised.value.errno == 1
    with pytest.raises(DefinitionError, match="unknown binlog 'x'; there are no binlogs"):
        look_up("x", {})


def test_a_duplicate_binlog_is_said() -> None:
    assert str(duplicate_binlog("a")) == "binlog 'a' exists already"


@pytest.mark.parametrize(
    "clauses, message",
    [
        ("LOG(a), LOG(b)", "LOG(`b`) contradicts LOG(`a`): a binlog has one LOG list"),
        ("LOG ALL, LOG(b)", "LOG(`b`) contradicts LOG ALL: a binlog has one LOG list"),
        ("LOG(b.c) LOG ALL", "LOG ALL contradicts LOG(`b`.`c`): a binlog has one LOG list"),
        ("LOG ALL, LOG ALL", "LOG ALL contradicts LOG ALL: a binlog has one LOG list"),
        (
            "IGNORE(a), IGNORE(a)",
            "IGNORE(`a`) contradicts IGNORE(`a`): a binlog has one IGNORE list",
        ),
        (
            "IGNORE ALL, IGNORE(a)",
            "IGNORE(`a`) contradicts IGNORE ALL: a binlog has one IGNORE list",
        ),
        ("LOG ALL, IGNORE ALL", "IGNORE ALL contradicts LOG ALL: with it nothing is logged"),
        ("IGNORE ALL, LOG(a)", "IGNORE ALL contradicts LOG(`a`): with it nothing is logged"),
        ("LOG(a, b, a)", "LOG(`a`, `b`, `a`) names `a` twice"),
        ("IGNORE(a.b, b, a.b)", "IGNORE(`a`.`b`, `b`, `a`.`b`) names `a`.`b` twice"),
        ("LOG(a, b), IGNORE(b)", f"LOG(`b`) contradicts IGNORE(`b`): {NEVER}"),
        ("LOG(a.b), IGNORE(a.b)", f"LOG(`a`.`b`) contradicts IGNORE(`a`.`b`): {NEVER}"),
        ("LOG(a.b), IGNORE(a)", f"LOG(`a`.`b`) contradicts IGNORE(`a`): {NEVER}"),
        ("LOG(mysql), IGNORE(system)", f"LOG(`mysql`) contradicts IGNORE(`system`): {NEVER}"),
    ],
)
def test_clauses_of_create_that_contradict_each_other_are_named(clauses: str, message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        _created(f"CREATE BINLOG 'b' {clauses}")
    assert (str(raised.value), raised.value.errno) == (message, 1)
    assert raised.value.hint


@pytest.mark.parametrize(
    "before, directives, message",
    [
        ("LOG(a)", "ADD LOG(b), LOG(c)", f"LOG(`c`) overwrites ADD LOG(`b`) {SAME}"),
        ("LOG(a)", "DROP LOG(a), IGNORE ALL", f"IGNORE ALL overwrites DROP LOG(`a`) {SAME}"),
        ("LOG(a)", "LOG(b), LOG(c)", f"LOG(`c`) overwrites LOG(`b`) {SAME}"),
        ("LOG(a)", "IGNORE(b), LOG ALL", f"LOG ALL overwrites IGNORE(`b`) {SAME}"),
        ("LOG(a)", "IGNORE ALL, LOG(b)", f"LOG(`b`) overwrites IGNORE ALL {SAME}"),
        ("LOG(a)", "IGNORE ALL, LOG ALL", f"LOG ALL overwrites IGNORE ALL {SAME}"),
        ("LOG(a)", "LOG(b), IGNORE ALL", f"IGNORE ALL overwrites LOG(`b`) {SAME}"),
        (
            "LOG(a)",
            "LOG(b), IGNORE(b.c), LOG(d)",
            f"LOG(`d`) overwrites IGNORE(`b`.`c`) {SAME}",
        ),
        ("LOG(a)", "ADD LOG(a)", "ADD LOG(`a`): the LOG list has `a` already"),
        ("LOG(a)", "ADD LOG(b), ADD LOG(b)", "ADD LOG(`b`): the LOG list has `b` already"),
        ("IGNORE(a)", "ADD IGNORE(a)", "ADD IGNORE(`a`): the IGNORE list has `a` already"),
        ("LOG(a)", "DROP LOG(b)", "DROP LOG(`b`): the LOG list has no `b`"),
        ("LOG(a)", "DROP LOG(a), DROP LOG(a)", "DROP LOG(`a`): the LOG list has no `a`"),
        (
            "LOG(a)",
            "ADD LOG(b), DROP LOG(b)",
            "DROP LOG(`b`) takes ADD LOG(`b`) of the same statement back",
        ),
        (
            "LOG(a)",
            "DROP LOG(a), ADD LOG(a)",
            "ADD LOG(`a`) takes DROP LOG(`a`) of the same statement back",
        ),
        (
            "",
            "LOG(b, c), DROP LOG(c)",
            "DROP LOG(`c`) takes LOG(`b`, `c`) of the same statement back",
        ),
        (
            "",
            "ADD LOG(a)",
            "ADD LOG(`a`) adds nothing: the binlog logs everything that it does not ignore",
        ),
        (
            "LOG(a)",
            "LOG ALL, ADD LOG(a)",
            "ADD LOG(`a`) adds nothing: the binlog logs everything that it does not ignore",
        ),
        ("LOG(a)", "ADD IGNORE(a)", f"LOG(`a`) contradicts IGNORE(`a`): {NEVER}"),
        ("LOG(a.b)", "ADD IGNORE(a)", f"LOG(`a`.`b`) contradicts IGNORE(`a`): {NEVER}"),
        ("LOG(b), IGNORE(a)", "ADD LOG(a)", f"LOG(`a`) contradicts IGNORE(`a`): {NEVER}"),
        ("LOG(a)", "ADD IGNORE(a.b, a.b)", "ADD IGNORE(`a`.`b`, `a`.`b`) names `a`.`b` twice"),
    ],
)
def test_clauses_of_alter_that_contradict_something_are_named(
    before: str, directives: str, message: str
) -> None:
    with pytest.raises(DefinitionError) as raised:
        _altered(before, directives)
    assert (str(raised.value), raised.value.errno) == (message, 1)
    assert raised.value.hint


def test_names_that_differ_in_case_alone_are_one_where_the_source_says_so() -> None:
    statement = parse_binlog_statement("CREATE BINLOG 'b' LOG(Shop, SHOP)")
    assert isinstance(statement, CreateBinlog)
    assert create(statement, 1).scope.log_databases == {"Shop", "SHOP"}
    with pytest.raises(DefinitionError, match="names `shop` twice"):
        create(statement, 1, ignores_case=True)


def test_a_long_list_is_not_repeated_in_an_error() -> None:
    with pytest.raises(DefinitionError) as raised:
        _created(f"CREATE BINLOG 'b' LOG({', '.join(f'a{n}' for n in range(9999))}, a7)")
    assert len(str(raised.value)) < 200
    assert str(raised.value).endswith("names `a7` twice")
