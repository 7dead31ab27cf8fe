"""The logged text of a routine's statements; the texts were taken from real servers."""

from __future__ import annotations

import pytest

from binlane.session.programs.name_const import with_constants
from binlane.session.programs.values import Text, Value

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
    return with_constants(
        statement, VALUES.keys(), lambda name: (name, VALUES[name.lower()]), is_mariadb=True
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
        ("create table t2 select x as x", f"create table t2 select {X} as x"),
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
