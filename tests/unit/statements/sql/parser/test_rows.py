"""Trees of expressions, queries and statements on rows: their shape, places and bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.statements.sql.parser import Stopped, TooMuch, parse, parse_expression
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import SqlSyntaxError
from binlane.statements.sql.tree.expressions import (
    Expression,
    Literal,
    Name,
    Node,
    Operation,
    Query,
    SetOperation,
    children,
)
from binlane.statements.sql.tree.statements import Insert, QueryStatement, Update

_BOTH = Dialect()
_MARIADB = Dialect(flavor="mariadb", version=(11, 8, 0))
_MYSQL = Dialect(flavor="mysql", version=(9, 7, 0))


def _plain(node: object) -> Any:
    """A tree without places, to be compared."""
    if isinstance(node, Node):
        names = [field.name for field in fields(node)]
        values = {
            name: _plain(getattr(node, name))
            for name in names
            if name not in ("at", "end") and not name.endswith("_at") and name != "opens"
        }
        return type(node).__name__, values
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_plain(each) for each in node]
    return node


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _all(child)


@pytest.mark.parametrize(
    ("text", "operator", "parts"),
    [
        ("a OR b AND c OR d", "OR", ["a", "b AND c", "d"]),
        ("NOT a = 1", "NOT", ["a = 1"]),
        ("a + b + c", "+", ["a", "b", "c"]),
        ("a - b + c", "+", ["a - b", "c"]),
        ("a || b", "OR", ["a", "b"]),
        ("a = b <> c", "<>", ["a = b", "c"]),
        ("2 = NULL IS NULL", "IS NULL", ["2 = NULL"]),
        ("a BETWEEN 1 AND 2 AND b", "AND", ["a BETWEEN 1 AND 2", "b"]),
        ("a BETWEEN b BETWEEN 1 AND 2 AND c", "BETWEEN", ["a", "b BETWEEN 1 AND 2", "c"]),
        ("a BETWEEN 1 AND 2 BETWEEN 3 AND c", "BETWEEN", ["a", "1", "2 BETWEEN 3 AND c"]),
        ("-a ^ 2", "^", ["-a", "2"]),
        ("a & b | c", "|", ["a & b", "c"]),
        ("a << 1 + 2", "<<", ["a", "1 + 2"]),
        ("a NOT LIKE 'x' ESCAPE '!'", "LIKE", ["a", "'x'", "'!'"]),
        ("a IN (1, (2), b)", "IN", ["a", "1", "2", "b"]),
        ("a > ALL (SELECT 1)", "> ALL", ["a", "(SELECT 1)"]),
        ("!a = b", "=", ["!a", "b"]),
        ("d + INTERVAL 1 DAY", "+", ["d", "INTERVAL 1 DAY"]),
        ("-a COLLATE b", "NEG", ["a COLLATE b"]),
    ],
)
def test_operators_bind_as_the_servers_say(text: str, operator: str, parts: list[str]) -> None:
    found = parse_expression(text, _BOTH)
    assert isinstance(found, Operation)
    assert found.operator == operator
    assert [text[part.at : part.end] for part in found.operands] == parts


def test_modes_change_operators() -> None:
    concat = parse_expression("a || b = c", Dialect(pipes_as_concat=True))
    assert isinstance(concat, Operation)
    assert concat.operator == "="
    high = parse_expression("NOT a BETWEEN 1 AND 2", Dialect(high_not_precedence=True))
    assert isinstance(high, Operation)
    assert high.operator == "BETWEEN"


def test_quotes_follow_the_mode() -> None:
    assert isinstance(parse_expression('"a"', _BOTH), Literal)
    name = parse_expression('"a"', Dialect(ansi_quotes=True))
    assert isinstance(name, Name)
    assert name.parts == ("a",)
    insert = parse("INSERT INTO t VALUES ('\\', NULL)", Dialect(no_backslash_escapes=True))
    assert isinstance(insert, Insert)
    assert insert.rows is not None
    assert len(insert.rows[0].items) == 2


def test_intersect_binds_more_tightly() -> None:
    statement = parse("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4", _BOTH)
    assert isinstance(statement, QueryStatement)
    body = statement.query.body
    assert isinstance(body, SetOperation)
    assert body.operators == ("UNION", "EXCEPT")
    inner = body.operands[1].body
    assert isinstance(inner, SetOperation)
    assert inner.operators == ("INTERSECT",)


def test_limits_belong_to_their_query() -> None:
    statement = parse("UPDATE u SET a = (SELECT max(id) FROM t LIMIT 0) WHERE n = 4", _BOTH)
    assert isinstance(statement, Update)
    assert statement.limit is None
    assert [node.limit is None for node in _all(statement) if isinstance(node, Query)] == [False]


@pytest.mark.parametrize("rows", [3, 10, 3_000])
def test_rows_of_literals_are_read_when_asked_for(rows: int) -> None:
    values = ",".join(f"({n}, -{n}.5, 'it''s {n}', NULL, _utf8mb4'x', 0x41)" for n in range(rows))
    text = f"INSERT INTO t VALUES {values} ON DUPLICATE KEY UPDATE a = VALUES(a)"
    insert = parse(text, _MARIADB)
    assert isinstance(insert, Insert)
    assert insert.rows is not None
    assert len(insert.rows) == rows
    last = insert.rows[-1]
    assert text[last.at : last.end].startswith(f"({rows - 1}, -{rows - 1}.5")
    assert [text[item.at : item.end] for item in last.items] == [
        f"{rows - 1}",
        f"-{rows - 1}.5",
        f"'it''s {rows - 1}'",
        "NULL",
        "_utf8mb4'x'",
        "0x41",
    ]


def test_long_rows_among_others() -> None:
    values = ",".join(f"({n}, NOW())" if n % 50 == 7 else f"({n}, 'x')" for n in range(5_000))
    insert = parse(f"INSERT INTO t VALUES {values}", _MARIADB)
    assert isinstance(insert, Insert)
    assert insert.rows is not None
    assert len(insert.rows) == 5_000
    assert [row.items[0].at for row in insert.rows] == sorted(
        row.items[0].at for row in insert.rows
    )


def test_a_long_list_in_one_row_and_in_a_condition() -> None:
    numbers = ", ".join(map(str, range(10_000)))
    insert = parse(f"INSERT INTO t VALUES ({numbers})", _MARIADB)
    assert isinstance(insert, Insert)
    assert insert.rows is not None
    assert len(insert.rows[0].items) == 10_000
    found = parse(f"DELETE FROM t WHERE a IN ({numbers}) AND b = 1", _MARIADB)
    operations = [node for node in _all(found) if isinstance(node, Operation)]
    assert [len(each.operands) for each in operations if each.operator == "IN"] == [10_001]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
        "SELECT " + "f(" * 1_000 + "1" + ")" * 1_000,
        "SELECT " + "- " * 10_000 + "1",
        "SELECT " + "NOT " * 10_000 + "1",
        "SELECT 1" + " + 1 - 1" * 10_000,
        "SELECT 1" + " = 1" * 10_000,
        "SELECT " + "@a := " * 10_000 + "1",
        "SELECT " + "(SELECT " * 100 + "1" + ")" * 100,
        "SELECT * FROM " + "(t JOIN " * 1_000 + "t" + ")" * 1_000,
        "SELECT * FROM t" + " JOIN t" * 10_000,
        "SELECT a BETWEEN 1 AND " + "a BETWEEN 1 AND " * 10_000 + "2",
        "SELECT " + "a BETWEEN " * 10_000 + "1" + " AND 2" * 10_000,
        "INSERT INTO t VALUES " + "((" * 10_000,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_too_deep_is_said(text: str) -> None:
    with pytest.raises(TooMuch, match="nested too deep"):
        parse(text, _MARIADB)


def test_long_chains_are_not_deep() -> None:
    condition = " OR ".join(f"(a = {n} AND b = 'x')" for n in range(20_000))
    update = parse(f"UPDATE t SET n = 1 WHERE {condition}", _MARIADB)
    assert isinstance(update, Update)
    assert isinstance(update.where, Operation)
    assert len(update.where.operands) == 20_000


@pytest.mark.parametrize(
    ("statement", "taken_by"),
    [
        ("INSERT INTO t (a) VALUES (1) AS new ON DUPLICATE KEY UPDATE n = new.a", {"mysql 8.0.19"}),
        ("INSERT INTO t (a) VALUES (1) RETURNING a", {"mariadb 10.6"}),
        ("WITH q AS (SELECT 1) UPDATE t, q SET n = 1", {"mysql 8.0.19"}),
        ("SELECT a FROM t FETCH FIRST 1 ROW ONLY", {"mariadb 10.6"}),
        ("SELECT a FROM t FOR UPDATE SKIP LOCKED", {"mariadb 10.6", "mysql 8.0.19"}),
        ("SELECT ROW_NUMBER() OVER () FROM t", {"mariadb 10.6", "mysql 8.0.19"}),
        ("SELECT a->>'$.x' FROM t", {"mysql 5.7.44", "mysql 8.0.19"}),
        ("SELECT 1 EXCEPT SELECT 2", {"mariadb 10.6"}),
        ("SELECT rank FROM t", {"mariadb 10.6", "mysql 5.7.44"}),
        ("SELECT a FROM t GROUP BY a DESC", {"mariadb 10.6", "mysql 5.7.44"}),
        ("SELECT * FROM order", set()),
        ("UPDATE t SET n= WHERE a = 1", set()),
    ],
)
def test_each_server_has_its_own_grammar(statement: str, taken_by: set[str]) -> None:
    found = set()
    for server in ("mariadb 10.6", "mysql 5.7.44", "mysql 8.0.19"):
        flavor, _, version = server.partition(" ")
        numbers = (*map(int, version.split(".")), 0)[:3]
        try:
            parse(statement, Dialect(flavor=flavor, version=numbers))  # type: ignore[arg-type] # three
        except Stopped:
            continue
        found.add(server)
    assert found == taken_by


# Properties -----------------------------------------------------------------------------------

_WORDS = (
    *("SELECT", "FROM", "WHERE", "t", "a", "`b c`", "1", "'x'", "(", ")", ",", ".", "*", "+", "-"),
    *("=", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "CASE", "WHEN", "END", "IF"),
    *("INSERT", "INTO", "VALUES", "SET", "UPDATE", "DELETE", "JOIN", "ON", "UNION", "LIMIT", "AS"),
    *("COUNT", "OVER", "INTERVAL", "DAY", "@x", ":=", "@@y", "?", "{", "}", "/*", "*/", "--", "'"),
)
_TEXTS = st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join) | st.text(max_size=60)


@given(_TEXTS)
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        node = parse(text, _BOTH)
    except (Stopped, SqlSyntaxError):
        return
    assert 0 <= node.at <= node.end <= len(text)


def _expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(
        ("a", "t.b", "`c d`", "1", "2.5", "'x'", "NULL", "@v", "@@w", "?", "NOW()", "COUNT(*)")
    )

    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, inner)
        return st.one_of(
            st.tuples(
                pair, st.sampled_from(("+", "-", "*", "AND", "OR", "=", "<", "|", "DIV", "XOR"))
            ).map(lambda each: f"{each[0][0]} {each[1]} {each[0][1]}"),
            inner.map(lambda each: f"({each})"),
            inner.map(lambda each: f"- {each}"),
            pair.map(lambda each: f"IF({each[0]}, {each[1]}, f(1))"),
            pair.map(lambda each: f"CASE WHEN {each[0]} THEN {each[1]} END"),
            pair.map(lambda each: f"({each[0]}) IN (1, {each[1]})"),
            inner.map(lambda each: f"(SELECT {each} FROM t LIMIT 1)"),
            inner.map(lambda each: f"CAST({each} AS CHAR(3))"),
            inner.map(lambda each: f"({each}) IS NOT NULL"),
        )

    return st.recursive(leaves, around, max_leaves=12)


@given(_expressions())
@settings(max_examples=300, deadline=None)
def test_each_part_of_an_expression_reads_alone_as_it_stands(text: str) -> None:
    whole = parse_expression(text, _BOTH)
    for node in _all(whole):
        if isinstance(node, Expression) and text[node.at : node.end] != "*":
            part = parse_expression(text[node.at : node.end], _BOTH)
            assert _plain(part) == _plain(node)
