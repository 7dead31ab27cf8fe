"""Columns of queries, against what both servers made of the same ones (`vectors`)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.known_names import Environment, OwnText
from binlane.statements.sql.evaluation.operator_types import TypeScope, Untyped
from binlane.statements.sql.evaluation.query_types import query_columns
from binlane.statements.sql.evaluation.values import UNKNOWN, Text, Value
from binlane.statements.sql.parser import Stopped, parse
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Dialect, default_collation
from binlane.statements.sql.show_create import create_table_text
from binlane.statements.sql.table_definitions import TableColumn, TableDefinition
from binlane.statements.sql.tree.statements import QueryStatement

FILE = Path(__file__).parents[4] / "vectors" / "select_types.tsv"
HEAD, BASE, *LINES = FILE.read_text(encoding="utf-8").splitlines()
CASES = [
    (flavor, expression, expected)
    for expression, *columns in (line.split("\t") for line in LINES)
    for flavor, expected in zip((Flavor.MARIADB, Flavor.MYSQL), columns, strict=True)
    if expected != "-"
]
_, *QUERIES = FILE.with_name("select_columns.tsv").read_text(encoding="utf-8").splitlines()
QUERY_CASES = [
    (flavor, query, expected.split(" | "))
    for query, *columns in (line.split("\t") for line in QUERIES)
    for flavor, expected in zip((Flavor.MARIADB, Flavor.MYSQL), columns, strict=True)
    if expected != "-"
]
CONNECTIONS = {
    Flavor.MARIADB: ("utf8mb4", "utf8mb4_general_ci"),
    Flavor.MYSQL: ("utf8mb4", "utf8mb4_0900_ai_ci"),
}
CHARSETS = {Flavor.MARIADB: "latin1", Flavor.MYSQL: "utf8mb4"}


def catalog(flavor: Flavor, *statements: str) -> SchemaCatalog:
    made = SchemaCatalog(flavor)
    for statement in ("CREATE DATABASE m", *statements):
        made.apply(statement, database="m")
    assert made.problems == []
    return made


SERVERS = {flavor: catalog(flavor, BASE.removeprefix("# ")) for flavor in Flavor}


def columns(
    query: str,
    flavor: Flavor = Flavor.MARIADB,
    objects: SchemaCatalog | None = None,
    environment: Environment | None = None,
) -> tuple[TableColumn, ...]:
    text = OwnText(query, Dialect(flavor=flavor.value))
    tree = parse(query, text.dialect)
    assert isinstance(tree, QueryStatement)
    scope = TypeScope(
        text=text,
        objects=objects or SERVERS[flavor],
        flavor=flavor,
        database="m",
        connection=CONNECTIONS[flavor],
        environment=environment,
    )
    return query_columns(tree.query, scope)


def printed(
    query: str,
    flavor: Flavor,
    objects: SchemaCatalog | None = None,
    environment: Environment | None = None,
) -> list[str]:
    found = columns(query, flavor, objects, environment)
    definition = TableDefinition(columns=found, charset=CHARSETS[flavor])
    table = Table(name=TableName("m", "x"), definition=definition, engine="INNODB")
    return [
        line.strip().rstrip(",") for line in create_table_text(table, flavor=flavor).split("\n")
    ][1:-1]


@pytest.mark.parametrize("flavor, expression, expected", CASES)
def test_the_type_of_an_expression(flavor: Flavor, expression: str, expected: str) -> None:
    assert printed(f"SELECT {expression} AS e FROM base", flavor) == [f"`e` {expected}"]


@pytest.mark.parametrize("flavor, query, expected", QUERY_CASES)
def test_the_columns_of_a_query(flavor: Flavor, query: str, expected: list[str]) -> None:
    assert printed(query, flavor) == expected


@pytest.mark.parametrize(
    "query, names",
    [
        ("SELECT i, base.vc, m.base.d FROM base", ["i", "vc", "d"]),
        ("SELECT 1 a, 2 AS b, 3 'c', 4 AS `d`", ["a", "b", "c", "d"]),
        ("SELECT i + 1, 'text', count( * ) FROM base", ["i + 1", "text", "count( * )"]),
        ("SELECT CASE i WHEN 1 THEN 2 END, i IS NULL FROM base", None),
        ("SELECT x.* FROM (SELECT 1 AS q, 2) x", ["q", "2"]),
        ("WITH c (one, two) AS (SELECT 1, 2) SELECT two, one FROM c", ["two", "one"]),
        ("(SELECT 1 AS a) UNION ALL (SELECT 2 AS b)", ["a"]),
        ("SELECT b.i FROM base a JOIN base b ON a.i = b.i", ["i"]),
        ("SELECT * FROM v", ["p", "q"]),
        ("SELECT * FROM one JOIN two USING (only)", ["only", "other"]),
        ("SELECT one.only FROM one NATURAL LEFT JOIN two", ["only"]),
    ],
)
def test_names(query: str, names: list[str] | None) -> None:
    objects = catalog(
        Flavor.MARIADB,
        BASE.removeprefix("# "),
        "CREATE TABLE one (only INT)",
        "CREATE TABLE two (only INT, other INT)",
        "CREATE VIEW v (p, q) AS SELECT only, 2 FROM one",
    )
    found = [column.name for column in columns(query, objects=objects)]
    expected = ["CASE i WHEN 1 THEN 2 END", "i IS NULL"] if names is None else names
    assert found == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT @a",
        "SELECT unheard_of(1)",
        "SELECT i FROM nowhere",
        "SELECT nothing FROM base",
        "SELECT @@version",
        "SELECT (SELECT 1, 2)",
        "SELECT round(d) FROM base",
        "SELECT * FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$')) t",
    ],
)
def test_what_is_not_known_is_said(query: str) -> None:
    with pytest.raises(Untyped):
        columns(query)


def test_queries_in_each_other_have_an_end() -> None:
    with pytest.raises(Stopped):
        columns("SELECT " + "(SELECT " * 200 + "1" + ")" * 200)


def test_sides_of_an_outer_join_may_be_null() -> None:
    objects = catalog(Flavor.MARIADB, "CREATE TABLE a (x INT NOT NULL)")
    query = "SELECT l.x AS lx, r.x AS rx FROM a l {} JOIN a r ON l.x = r.x"
    nullable = {
        kind: [column.is_nullable for column in columns(query.format(kind), objects=objects)]
        for kind in ("", "LEFT", "RIGHT OUTER")
    }
    assert nullable == {"": [False, False], "LEFT": [False, True], "RIGHT OUTER": [True, False]}


def test_stored_functions_give_their_type() -> None:
    objects = catalog(
        Flavor.MARIADB,
        "CREATE FUNCTION f() RETURNS VARCHAR(30) RETURN 'x'",
        "CREATE FUNCTION g(x INT) RETURNS DECIMAL(8,2) RETURN x",
    )
    assert printed("SELECT f() AS a, m.g(1) AS b", Flavor.MARIADB, objects) == [
        "`a` varchar(30) DEFAULT NULL",
        "`b` decimal(8,2) DEFAULT NULL",
    ]


class Session:
    """An environment with variables."""

    flavor = Flavor.MARIADB
    collation = "utf8mb4_general_ci"
    database = "m"

    def default_collation(self, charset: str) -> str:
        return default_collation(charset, self.flavor)

    def local(self, name: str) -> Value:
        raise LookupError(name)

    def user_variable(self, name: str) -> Value:
        known: dict[str, Value] = {
            "i": 5,
            "d": Decimal("1.5"),
            "f": 1.0,
            "s": Text("abc", "latin1_swedish_ci"),
            "u": UNKNOWN,
        }
        return known.get(name)

    def user_variable_values(self, name: str) -> tuple[Value, ...] | None:
        return (self.user_variable(name),)

    def assign_user_variable(self, name: str, value: Value) -> None:
        raise AssertionError((name, value))

    def system_variable(self, name: str, scope: str) -> Value:
        return Text("ROW", "utf8mb3_general_ci") if (name, scope) == ("binlog_format", "") else 1

    def call(self, database: str | None, name: str, arguments: object) -> Value:
        raise AssertionError((database, name, arguments))


@pytest.mark.parametrize(
    "expression, mariadb, mysql",
    [
        ("@i", "bigint(20) DEFAULT NULL", "bigint DEFAULT NULL"),
        ("@d", "decimal(65,38) DEFAULT NULL", "decimal(65,30) DEFAULT NULL"),
        ("@f", "double DEFAULT NULL", "double DEFAULT NULL"),
        ("@s", "longtext DEFAULT NULL", "longtext CHARACTER SET latin1"),
        ("@none", "longblob DEFAULT NULL", "longblob"),
        ("@@autocommit", "bigint(1) DEFAULT NULL", "int DEFAULT NULL"),
        ("@@server_id", "bigint(21) unsigned DEFAULT NULL", "bigint unsigned DEFAULT NULL"),
        ("@@timestamp", "double(21,6) DEFAULT NULL", "double(22,6) DEFAULT NULL"),
        (
            "@@binlog_format",
            "varchar(3) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL",
            "text CHARACTER SET utf8mb3",
        ),
        ("@a := i", "bigint(11) DEFAULT NULL", "int DEFAULT NULL"),
    ],
)
def test_types_of_variables(expression: str, mariadb: str, mysql: str) -> None:
    query = f"SELECT {expression} AS e FROM base"
    assert printed(query, Flavor.MARIADB, environment=Session()) == [f"`e` {mariadb}"]
    assert printed(query, Flavor.MYSQL, environment=Session()) == [f"`e` {mysql}"]


def test_a_variable_whose_value_is_not_known_has_no_type() -> None:
    with pytest.raises(Untyped):
        columns("SELECT @u", environment=Session())
