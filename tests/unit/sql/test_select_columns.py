"""Columns of queries, against what both servers made of the same ones (`vectors`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.codec.types import Flavor
from binlane.names import TableName
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.query_types.scope import Untyped
from binlane.sql.schema import Table
from binlane.sql.select_columns import select_columns
from binlane.sql.show_create import create_table_text
from binlane.sql.sql_mode import quoting
from binlane.sql.table_definitions import TableColumn, TableDefinition

FILE = Path(__file__).parents[2] / "vectors" / "select_types.tsv"
HEAD, BASE, *LINES = FILE.read_text(encoding="utf-8").splitlines()
CASES = [
    (flavor, expression, expected)
    for expression, *columns in (line.split("\t") for line in LINES)
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
    query: str, flavor: Flavor = Flavor.MARIADB, objects: SchemaCatalog | None = None
) -> tuple[TableColumn, ...]:
    return select_columns(
        query,
        objects=objects or SERVERS[flavor],
        flavor=flavor,
        database="m",
        quoting=quoting(0),
        connection=CONNECTIONS[flavor],
    )


def printed(query: str, flavor: Flavor, objects: SchemaCatalog | None = None) -> list[str]:
    definition = TableDefinition(columns=columns(query, flavor, objects), charset=CHARSETS[flavor])
    table = Table(name=TableName("m", "x"), definition=definition, engine="INNODB")
    return [
        line.strip().rstrip(",") for line in create_table_text(table, flavor=flavor).split("\n")
    ][1:-1]


@pytest.mark.parametrize("flavor, expression, expected", CASES)
def test_the_type_of_an_expression(flavor: Flavor, expression: str, expected: str) -> None:
    assert printed(f"SELECT {expression} AS e FROM base", flavor) == [f"`e` {expected}"]


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
        ("TABLE one", ["only"]),
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
        "WITH RECURSIVE c AS (SELECT 1) SELECT * FROM c",
        "SELECT (SELECT 1, 2)",
        "VALUES (1)",
        "SELECT",
        "SELECT left(vc, i) FROM base",
        "SELECT d + 1 FROM base",
    ],
)
def test_what_is_not_known_is_said(query: str) -> None:
    with pytest.raises(Untyped):
        columns(query)


def test_queries_in_each_other_have_an_end() -> None:
    with pytest.raises(Untyped):
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
