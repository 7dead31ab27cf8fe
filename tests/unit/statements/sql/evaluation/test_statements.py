"""What statements say of values and variables; logged texts were taken from real servers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.known_names import OwnText
from binlane.statements.sql.evaluation.statements import (
    expressions_at,
    is_proven_empty,
    leaves_to_server,
    user_variables_assigned,
    user_variables_read,
    where_holds,
    with_constants,
)
from binlane.statements.sql.evaluation.values import UNKNOWN, Text, Value
from binlane.statements.sql.parser import parse
from binlane.statements.sql.servers import Dialect, default_collation
from binlane.statements.sql.tree.statements import Insert, QueryStatement, Update

VALUES: dict[str, Value] = {
    "x": 5,
    "y": Text("it's", "latin1_swedish_ci"),
    "n": None,
    "a": 7,
    "rec.a": 3,
}
X = " NAME_CONST('x',5)"
Y = " NAME_CONST('y',_latin1'it\\'s' COLLATE 'latin1_swedish_ci')"
N = " NAME_CONST('n',NULL)"
A = " NAME_CONST('a',7)"


def logged(statement: str) -> str:
    text = OwnText(statement, Dialect())
    return with_constants(
        parse(statement, text.dialect),
        text,
        VALUES.keys(),
        lambda name: (name, VALUES[name.lower()]),
        Flavor.MARIADB,
    )


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("insert into t values(x,y)", f"insert into t values({X},{Y})"),
        ("insert into t values( x , y )", f"insert into t values( {X} , {Y} )"),
        (
            "insert into t values(-x,concat(y,'p'),n)",
            f"insert into t values(-{X},concat({Y},'p'),{N})",
        ),
        ("insert into t(a, x) values(a,1)", f"insert into t(a, x) values({A},1)"),
        (
            "insert into t(a) select x+t.a from t where x=1",
            f"insert into t(a) select {X}+t.a from t where {X}=1",
        ),
        (
            "insert into t select x x, t.x from x as x",
            f"insert into t select {X} x, t.x from x as x",
        ),
        ("insert into t set a=x, x=a", f"insert into t set a={X}, x={A}"),
        ("insert into a values(1)", "insert into a values(1)"),
        (
            "update t set a=x, x=a+1 where a=x and b in (x,1)",
            f"update t set a={X}, x={A}+1 where {A}={X} and b in ({X},1)",
        ),
        ("update a, x set a.a=x where a.x=1", f"update a, x set a.a={X} where a.x=1"),
        ("delete from a where x=1", f"delete from a where {X}=1"),
        ("delete a from a join x on x.a=x where x", f"delete a from a join x on x.a={X} where {X}"),
        ("delete from t where x limit x", f"delete from t where {X} limit 5"),
        (
            "insert into t values(1) on duplicate key update a=x, x=values(a)+a",
            f"insert into t values(1) on duplicate key update a={X}, x=values(a)+{A}",
        ),
        (
            "insert into t values((select max(a) from a where x=1))",
            f"insert into t values((select max({A}) from a where {X}=1))",
        ),
        ("insert into t select * from (select x) a", f"insert into t select * from (select {X}) a"),
        ("replace into t values(X)", "replace into t values( NAME_CONST('X',5))"),
        ("insert into t values(rec.a)", "insert into t values( NAME_CONST('rec.a',3))"),
        (
            "insert into t values(x(1), 'x', `x`)",
            f"insert into t values(x(1), 'x',{X})".replace(f",{X}", f", {X}"),
        ),
        (
            "insert into t select a from t join t2 using (a) order by x",
            f"insert into t select {A} from t join t2 using (a) order by {X}",
        ),
        (
            "insert into t values(case when x then y else n end)",
            f"insert into t values(case when {X} then {Y} else {N} end)",
        ),
        (
            "insert into t values (substring(y from x))",
            f"insert into t values (substring({Y} from {X}))",
        ),
        (
            "insert into t values (now() - interval x day)",
            f"insert into t values (now() - interval {X} day)",
        ),
    ],
)
def test_variables_become_constants(statement: str, expected: str) -> None:
    assert logged(statement) == expected


@dataclass
class Session:
    """An environment without local variables."""

    flavor: Flavor = Flavor.MARIADB
    collation: str = "utf8mb4_general_ci"
    database: str = "d"

    def default_collation(self, charset: str) -> str:
        return default_collation(charset, self.flavor)

    def local(self, name: str) -> Value:
        raise LookupError(name)

    def user_variable(self, name: str) -> Value:
        return {"one": 1}.get(name)

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        return (self.user_variable(name),)

    def assign_user_variable(self, name: str, value: Value) -> None:
        raise AssertionError((name, value))

    def system_variable(self, name: str, scope: str) -> Value:
        raise AssertionError((name, scope))

    def call(self, database: str | None, name: str, arguments: object) -> Value:
        assert (database, name, arguments) is not None
        return UNKNOWN


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("1=2", False),
        ("'a'", False),
        ("null", False),
        ("1=1", True),
        ("n=4 and 1=2", False),
        ("n=4 and (n=5 and 1=0)", False),
        ("n=4 or 1=2", None),
        ("1=2 or 2=3", False),
        ("n=4 or 1=1", True),
        ("not(n=4 or 1=1)", False),
        ("not(n=4 and null)", None),
        ("n=null", None),
        ("n in (null)", None),
        ("n like null", None),
        ("n=4 and null", False),
        ("upper('a')='b'", False),
        ("@none=1", False),
        ("@one=1", True),
        ("f()", None),
        ("rand()<0", None),
        ("(select 1)=2", False),
        ("(select count(*) from t)", None),
        ("n in (select 1)", None),
        ("0x30", True),
        ("0x00", False),
        ("1 in /*c*/ (2,3)", False),
    ],
)
def test_conditions_that_no_row_meets(condition: str, expected: bool | None) -> None:  # noqa: FBT001
    for statement in (f"update u set a=1 where {condition}", f"delete from u where {condition}"):
        text = OwnText(statement, Dialect())
        node = parse(statement, text.dialect)
        assert isinstance(node, Update) or statement.startswith("delete")
        assert where_holds(node, text, Session()) is expected  # type: ignore[arg-type]  # one of both
        assert is_proven_empty(node, text, Session()) is (expected is False)


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("update u set n=1 limit 0", True),
        ("delete from u where n=9 limit 0", True),
        ("update u set n=1 where n=9 limit 1", False),
        ("update u set a=(select max(id) from t limit 0) where n=4", False),
        ("update u set a='where 0 limit '", False),
        ("update u set a='limit 0' where b='where 1=2'", False),
        ("delete u from u where 1=2", False),
        ("update u, t set u.n=1 where 1=2", False),
        ("update u join t set u.n=1 where 1=2", False),
        ("insert into t select 1 where 1=2", False),
    ],
)
def test_what_is_known_to_change_nothing(statement: str, expected: bool) -> None:  # noqa: FBT001
    text = OwnText(statement, Dialect())
    assert is_proven_empty(parse(statement, text.dialect), text, Session()) is expected


@pytest.mark.parametrize(
    "statement, position, expected",
    [
        ("insert into t values (1, null)", 1, [True]),
        ("insert into t values (1, 5), (2, default), (3, 0), (4)", 1, [False, True, True, True]),
        ("insert into t set a=1, b=0.0", 1, [True]),
        ("insert into t select a, null from s", 1, [True]),
        ("insert into t select a, b from s", 1, [False]),
        ("insert into t select a, 1 union select 2, 0", 1, [False, True]),
        ("insert into t select * from (select 1, null) x", 1, [True]),
        ("insert into t select x.* from (select 1, null) x", 1, [True]),
        ("insert into t values (1, (select null))", 1, [True]),
        ("insert into t values (1, @none), (1, @one)", 1, [True, False]),
        ("insert into t values (1, '0'), (1, 'a'), (1, 1 - 1)", 1, [True, True, True]),
    ],
)
def test_values_that_auto_increment_is_left_to(
    statement: str, position: int, expected: list[bool]
) -> None:
    text = OwnText(statement, Dialect())
    node = parse(statement, text.dialect)
    assert isinstance(node, Insert)
    found = [
        leaves_to_server(each, text, Session(), zero_is_chosen=True)
        for each in expressions_at(node, position)
    ]
    assert found == expected


def test_values_behind_a_backslash_that_escapes_nothing() -> None:
    text = OwnText(r"insert into t values ('\', NULL)", Dialect(no_backslash_escapes=True))
    node = parse(text.sql, text.dialect)
    assert isinstance(node, Insert)
    (value,) = expressions_at(node, 1)
    assert leaves_to_server(value, text, Session(), zero_is_chosen=True)


def test_zero_is_kept_where_sql_mode_says_so() -> None:
    text = OwnText("select 0", Dialect())
    node = parse(text.sql, text.dialect)
    assert isinstance(node, QueryStatement)
    (zero,) = expressions_at(node.query, 0)
    assert not leaves_to_server(zero, text, Session(), zero_is_chosen=False)


@pytest.mark.parametrize(
    "statement, read, assigned",
    [
        ("insert into t values (@b, @A, @a)", ["b", "A"], set()),
        ("update t set a=@x where b=@y", ["y", "x"], set()),
        ("insert into t select @`q``r`, @'s'", ["q`r", "s"], set()),
        ("insert into t values (@a := 1)", [], {"a"}),
        ("insert into t values (@a := @a + 1)", ["a"], {"a"}),
        ("select 1, @y into @x", ["y"], {"x"}),
        ("load data infile 'f' into table t (a, @x) set b = @x + @y", ["x", "y"], {"x"}),
        ("insert into t values ('@a', \"@b\")", [], set()),
    ],
)
def test_user_variables(statement: str, read: list[str], assigned: set[str]) -> None:
    text = OwnText(statement, Dialect())
    node = parse(statement, text.dialect)
    assert user_variables_read(node, text) == read
    assert user_variables_assigned(node) == assigned
