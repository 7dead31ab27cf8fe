from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from binlane.session.programs.expressions import evaluate
from binlane.session.programs.functions import call_built_in
from binlane.session.programs.values import UNKNOWN, Temporal, TemporalKind, Text, Value, constant

COLLATION = "utf8mb4_general_ci"


class Variables:
    """An environment with local and user variables and built-in functions."""

    is_mariadb = True
    collation = COLLATION
    database = "d"

    def __init__(self, *, is_mariadb: bool = True) -> None:
        self.is_mariadb = is_mariadb
        self.user: dict[str, Value] = {"u": 7}
        self.called: list[str] = []

    def local(self, name: str) -> Value:
        known: dict[str, Value] = {"x": 5, "y": text("ab"), "n": None}
        return known.get(name, UNKNOWN)

    def user_variable(self, name: str) -> Value:
        return self.user.get(name)

    def assign_user_variable(self, name: str, value: Value) -> None:
        self.user[name] = value

    def system_variable(self, name: str) -> Value:
        return 1 if name == "autocommit" else UNKNOWN

    def call(self, _: str | None, name: str, arguments: Sequence[Value]) -> Value:
        self.called.append(name)
        return call_built_in(name, arguments, COLLATION, self)


def text(content: str) -> Text:
    return Text(content, COLLATION)


@pytest.mark.parametrize(
    "expression, value",
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("-x", -5),
        ("x % 3", 2),
        ("7 div 2", 3),
        ("1.5 + 1", Decimal("2.5")),
        ("2e0 * 3", 6.0),
        ("10/0", None),
        ("n + 1", None),
        ("n is null and x = 5", 1),
        ("not x = 5 or x > 4", 1),
        ("x between 1 and 5", 1),
        ("x not in (1, 2)", 1),
        ("x in (1, null)", None),
        ("y = 'AB '", 1),
        ("y like 'a%'", 1),
        ("'it''s'", text("it's")),
        ("'a' 'b'", text("ab")),
        ("_latin1'x'", Text("x", "latin1_swedish_ci")),
        ("0x4142", Text("AB", "binary", is_number=True)),
        ("0x41 + 0", 65),
        ("b'101' + 0", 5),
        ("date'2020-01-02'", Temporal(TemporalKind.DATE, "2020-01-02")),
        ("concat(y, x, '-')", text("ab5-")),
        ("concat(y, null)", None),
        ("if(x > 3, 'big', 'small')", text("big")),
        ("ifnull(n, coalesce(null, 4))", 4),
        ("case x when 5 then 'five' else 'other' end", text("five")),
        ("case when x < 5 then 1 end", None),
        ("cast('12' as signed)", 12),
        ("cast(1.555 as decimal(5,2))", Decimal("1.56")),
        ("greatest(1, 5, 3)", 5),
        ("left(y, 1)", text("a")),
        ("length('é')", 2),
        ("@u + 1", 8),
        ("@@autocommit", 1),
        ("database() = 'd'", 1),
        ("true and not false", 1),
        ("name_const('v', 3)", 3),
        ("(select 4)", 4),
        ("t.a + 1", UNKNOWN),
        ("now()", UNKNOWN),
        ("x or t.a", 1),
        ("x and t.a", UNKNOWN),
        ("(select max(a) from t)", UNKNOWN),
        ("1 +", UNKNOWN),
        ("(" * 500 + "1" + ")" * 500, UNKNOWN),
        ("'unended", UNKNOWN),
    ],
)
def test_values_of_expressions(expression: str, value: Value) -> None:
    assert evaluate(expression, Variables()) == value


def test_assignments_are_done_in_order() -> None:
    variables = Variables()
    assert evaluate("(@a := 2) + (@a := @a * 5)", variables) == 12
    assert variables.user["a"] == 10


def test_a_branch_that_is_not_taken_calls_nothing() -> None:
    variables = Variables()
    evaluate("if(x = 5, 1, abs(2))", variables)
    assert variables.called == []


@pytest.mark.parametrize(
    "expression, is_mariadb, logged",
    [
        ("10/4", True, "2.500000000"),
        ("10/4", False, "2.5000"),
        ("10/3", True, "3.333333333"),
        ("1e15", True, "1e15"),
        ("1e14", True, "100000000000000"),
        ("1.2345678901234568e17", True, "1.2345678901234568e17"),
        ("1e-5", True, "0.00001"),
        ("1e-15", True, "0.000000000000001"),
        ("1e-16", True, "1e-16"),
        ("1.25e20", True, "1.25e20"),
        ("123456789.125e0", True, "123456789.125"),
        ("null", True, "NULL"),
        ("date'2020-01-02'", True, "DATE'2020-01-02'"),
        ("date'2020-01-02'", False, "_latin1'2020-01-02' COLLATE 'latin1_swedish_ci'"),
        ("0x0a", True, "_binary'\\n' COLLATE 'binary'"),
        ("'it''s \\\\'", False, "_utf8mb4'it\\'s \\\\' COLLATE 'utf8mb4_general_ci'"),
    ],
)
def test_constants_as_the_servers_write_them(
    expression: str,
    is_mariadb: bool,  # noqa: FBT001 - a column of the cases
    logged: str,
) -> None:
    value = evaluate(expression, Variables(is_mariadb=is_mariadb))
    assert constant(value, is_mariadb=is_mariadb) == logged
