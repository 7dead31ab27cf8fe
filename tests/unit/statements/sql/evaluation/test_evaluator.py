"""Values of expressions, and which of several they can be."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.evaluator import evaluate, holds, possible_values
from binlane.statements.sql.evaluation.known_names import OwnText
from binlane.statements.sql.evaluation.values import (
    UNKNOWN,
    Temporal,
    TemporalKind,
    Text,
    Value,
    constant,
)
from binlane.statements.sql.parser import parse_expression
from binlane.statements.sql.servers import Dialect, default_collation

COLLATION = "utf8mb4_general_ci"


class Variables:
    """An environment with local and user variables."""

    collation = COLLATION
    database = "d"

    def __init__(self, flavor: Flavor = Flavor.MARIADB) -> None:
        self.flavor = flavor
        self.user: dict[str, Value] = {"u": 7}
        self.choices: dict[str, tuple[Value, ...]] = {"q": (text("a"), text("b"))}
        self.called: list[str] = []

    def default_collation(self, charset: str) -> str:
        return default_collation(charset, self.flavor)

    def local(self, name: str) -> Value:
        known: dict[str, Value] = {"x": 5, "y": text("ab"), "n": None, "rec.f": 2}
        return known[name.lower()]

    def user_variable(self, name: str) -> Value:
        return UNKNOWN if name in self.choices else self.user.get(name)

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        return self.choices.get(name, (self.user.get(name),))

    def assign_user_variable(self, name: str, value: Value) -> None:
        self.user[name] = value

    def system_variable(self, name: str, scope: str) -> Value:
        return {"": 1, "global": 0}[scope] if name == "autocommit" else UNKNOWN

    def call(self, database: str | None, name: str, arguments: Sequence[Value]) -> Value:
        self.called.append(name)
        return UNKNOWN if database is None else len(arguments)


def text(content: str) -> Text:
    return Text(content, COLLATION)


def value_of(
    expression: str, environment: Variables | None = None, dialect: Dialect | None = None
) -> Value:
    own = OwnText(expression, dialect or Dialect())
    node = parse_expression(expression, own.dialect)
    return evaluate(node, own, environment or Variables())


@pytest.mark.parametrize(
    "expression, value",
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("10-2-3", 5),
        ("-x", -5),
        ("x % 3", 2),
        ("7 div 2", 3),
        ("1.5 + 1", Decimal("2.5")),
        ("2e0 * 3", 6.0),
        ("10/0", None),
        ("n + 1", None),
        ("n is null and x = 5", 1),
        ("x is not null", 1),
        ("n is true", 0),
        ("not x = 5 or x > 4", 1),
        ("1 xor 1 xor 1", 1),
        ("x between 1 and 5", 1),
        ("x not between 1 and 5", 0),
        ("x not in (1, 2)", 1),
        ("x in (1, null)", None),
        ("y = 'AB '", 1),
        ("y collate utf8mb4_bin = 'AB '", 0),
        ("'é' = 'e'", UNKNOWN),
        ("'a-b' < 'ab'", UNKNOWN),
        ("'a-b' = 'ab'", 0),
        ("y like 'a%'", 1),
        ("y not like 'a%'", 0),
        ("'it''s'", text("it's")),
        (r"'it\'s'", text("it's")),
        ("'a' 'b'", text("ab")),
        ("'a' /* and */ 'b'", text("ab")),
        ("_latin1'x'", Text("x", "latin1_swedish_ci")),
        ("N'x'", Text("x", "utf8mb3_general_ci")),
        ("0x4142", Text("AB", "binary", is_number=True)),
        ("x'4142'", Text("AB", "binary", is_number=True)),
        ("_utf8mb4 0x4142", Text("AB", "utf8mb4_general_ci")),
        ("0x41 + 0", 65),
        ("b'101' + 0", 5),
        ("0b11 + 0", 3),
        ("date'2020-01-02'", Temporal(TemporalKind.DATE, "2020-01-02")),
        ("concat(y, x, '-')", text("ab5-")),
        ("concat(y, null)", None),
        ("if(x > 3, 'big', 'small')", text("big")),
        ("ifnull(n, coalesce(null, 4))", 4),
        ("case x when 5 then 'five' else 'other' end", text("five")),
        ("case when x < 5 then 1 end", None),
        ("cast('12' as signed)", 12),
        ("cast(1.555 as decimal(5,2))", Decimal("1.56")),
        ("convert('ab' using latin1)", Text("ab", "latin1_swedish_ci")),
        ("greatest(1, 5, 3)", 5),
        ("greatest(1, 5.5)", UNKNOWN),
        ("left(y, 1)", text("a")),
        ("substring_index('a,b,c', ',', 2)", text("a,b")),
        ("quote('it''s')", text(r"'it\'s'")),
        ("insert('abcd', 2, 2, 'x')", text("axd")),
        ("md5('a')", text("0cc175b9c0f1b6a831c399e269772661")),
        ("hex(-1)", text("FFFFFFFFFFFFFFFF")),
        ("length('é')", 2),
        ("@u + 1", 8),
        ("@@autocommit", 1),
        ("@@global.autocommit", 0),
        ("database() = 'd'", 1),
        ("true and not false", 1),
        ("name_const('v', 3)", 3),
        ("rec.f", 2),
        ("(select 4)", 4),
        ("exists(select 1)", 1),
        ("t.a + 1", UNKNOWN),
        ("now()", UNKNOWN),
        ("d.f(1, 2)", 2),
        ("x or t.a", 1),
        ("x and t.a", UNKNOWN),
        ("t.a and null", UNKNOWN),
        ("t.a and 0", 0),
        ("(select max(a) from t)", UNKNOWN),
        ("trim(leading 'a' from y)", UNKNOWN),
        ("round(2.5e0)", 2.0),
        ("round(2.5)", Decimal(3)),
        ("cast('3.7abc' as signed)", 3),
        ("cast(-3 as unsigned)", 18446744073709551613),
        ("-3 >> 1", 9223372036854775806),
        ("strcmp(7, '12')", 1),
        ("concat('é', 0x05)", Text("Ã©\x05", "binary")),
        ("if(x, 1, 'a')", text("1")),
        ("if(x, 1, 2.50)", Decimal("1.00")),
        ("coalesce(1.5, 2e0)", 1.5),
        ("0 * -2.25", Decimal("0.00")),
        ("0x41 between 2 and 70", 1),
        ("'ß' = 'ss'", UNKNOWN),
        ("'9e999' | 1", UNKNOWN),
        ("1e308 * 10", UNKNOWN),
    ],
)
def test_values_of_expressions(expression: str, value: Value) -> None:
    found = value_of(expression)
    assert found == value
    assert type(found) is type(value)


def test_numbers_of_mysql_that_are_chosen_stay_as_they_are() -> None:
    assert str(value_of("if(x, 1, 2.50)", Variables(Flavor.MYSQL))) == "1"
    assert str(value_of("ifnull(1, 2.50)", Variables(Flavor.MYSQL))) == "1.00"


def test_strings_are_read_as_sql_mode_says() -> None:
    plain = Dialect(no_backslash_escapes=True)
    assert value_of("'\\'", dialect=plain) == text("\\")
    assert value_of('"a"', dialect=Dialect(ansi_quotes=True)) is UNKNOWN
    assert value_of("'a' || 'b'", dialect=Dialect(pipes_as_concat=True)) == text("ab")


def test_a_literal_is_read_from_the_statement_at_hand() -> None:
    node = parse_expression("'a' + 1", Dialect())
    assert evaluate(node, OwnText("'7' + 2", Dialect()), Variables()) == 9


def test_assignments_are_done_in_order() -> None:
    variables = Variables()
    assert value_of("(@a := 2) + (@a := @a * 5)", variables) == 12
    assert variables.user["a"] == 10


def test_a_branch_that_is_not_taken_calls_nothing() -> None:
    variables = Variables()
    value_of("if(x = 5, 1, f(2))", variables)
    value_of("0 and f(2)", variables)
    assert variables.called == []


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("x = 5", True),
        ("n", False),
        ("x = 5 and (select count(*) from t) > 0", None),
        ("not exists (select 1 from t)", None),
        ("coalesce(f(1), 2) = 1", None),
    ],
)
def test_conditions(condition: str, expected: bool | None) -> None:  # noqa: FBT001
    own = OwnText(condition, Dialect())
    assert holds(parse_expression(condition, own.dialect), own, Variables()) is expected


COUNTED = "(select count(*) from information_schema.tables) > 0"


@pytest.mark.parametrize(
    "expression, values",
    [
        (f"if({COUNTED}, 'a', 'b')", ["a", "b"]),
        ("if(x = 5, 'a', 'b')", ["a"]),
        (f"(select if({COUNTED}, 'a', 'b'))", ["a", "b"]),
        ("(select if(count(*), 'a', 'b') from t)", ["a", "b"]),
        ("(select if(c, 'a', 'b') from t)", ["a", "b", None]),
        (f"concat('x', if({COUNTED}, 'a', 'b'), 'z')", ["xaz", "xbz"]),
        (f"coalesce(if({COUNTED}, null, 'a'), 'b')", ["a", "b"]),
        (f"case when {COUNTED} then 'a' when x = 5 then 'b' else 'c' end", ["a", "b"]),
        (f"case {COUNTED} when 1 then 'a' end", ["a", None]),
        ("nullif('a', f())", ["a", None]),
        ("concat(@q, 'c')", ["ac", "bc"]),
        (f"@a := if({COUNTED}, 'a', 'b')", ["a", "b"]),
        ("(select group_concat(a) from t)", None),
        ("f('a')", None),
        ("concat('a', t.b)", None),
        ("concat(" + ",".join([f"if({COUNTED}, 1, 2)"] * 7) + ")", None),
    ],
)
def test_which_values_an_expression_can_have(expression: str, values: list[str] | None) -> None:
    own = OwnText(expression, Dialect())
    found = possible_values(parse_expression(expression, own.dialect), own, Variables())
    shown = (
        None
        if found is None
        else [each.content if isinstance(each, Text) else each for each in found]
    )
    assert shown == values


@pytest.mark.parametrize(
    "expression, flavor, logged",
    [
        ("10/4", Flavor.MARIADB, "2.500000000"),
        ("10/4", Flavor.MYSQL, "2.5000"),
        ("10/3", Flavor.MARIADB, "3.333333333"),
        ("1e15", Flavor.MARIADB, "1e15"),
        ("1e14", Flavor.MARIADB, "100000000000000"),
        ("1.2345678901234568e17", Flavor.MARIADB, "1.2345678901234568e17"),
        ("1e-5", Flavor.MARIADB, "0.00001"),
        ("1e-15", Flavor.MARIADB, "0.000000000000001"),
        ("1e-16", Flavor.MARIADB, "1e-16"),
        ("1.25e20", Flavor.MARIADB, "1.25e20"),
        ("123456789.125e0", Flavor.MARIADB, "123456789.125"),
        ("null", Flavor.MARIADB, "NULL"),
        ("date'2020-01-02'", Flavor.MARIADB, "DATE'2020-01-02'"),
        ("date'2020-01-02'", Flavor.MYSQL, "_latin1'2020-01-02' COLLATE 'latin1_swedish_ci'"),
        ("0x0a", Flavor.MARIADB, "_binary'\\n' COLLATE 'binary'"),
        ("'it''s \\\\'", Flavor.MYSQL, "_utf8mb4'it\\'s \\\\' COLLATE 'utf8mb4_general_ci'"),
    ],
)
def test_constants_as_the_servers_write_them(expression: str, flavor: Flavor, logged: str) -> None:
    value = value_of(expression, Variables(flavor))
    assert constant(value, is_mariadb=flavor is Flavor.MARIADB) == logged
