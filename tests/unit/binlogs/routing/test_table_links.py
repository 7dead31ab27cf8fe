"""Links between tables, as DDL makes and ends them."""

from __future__ import annotations

import json

import pytest

from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.names import TableName
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

CHILD = (
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT,"
    " FOREIGN KEY (p) REFERENCES crm.p (id) ON DELETE CASCADE,"
    " CONSTRAINT named FOREIGN KEY (q) REFERENCES q (id) ON UPDATE SET NULL)"
)


def links_after(*statements: str, links: TableLinks = NO_LINKS) -> TableLinks:
    for statement in statements:
        facts = read(statement, database="shop", dialect=Dialect())
        links = links.after(facts, facts.effects)
    return links


def edges(links: TableLinks) -> set[str]:
    return {
        f"{key.own_name}: {key.table.plain}({','.join(key.columns)}) > "
        f"{key.parent.plain}({','.join(key.parent_columns)})"
        for key in links.keys
    }


OF_P = "c_ibfk_1: shop.c(p) > crm.p(id)"
OF_Q = "named: shop.c(q) > shop.q(id)"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], {OF_P, OF_Q}),
        (["DROP TABLE x, c"], set()),
        (["DROP DATABASE shop"], set()),
        (["CREATE OR REPLACE DATABASE shop"], set()),
        (["CREATE DATABASE IF NOT EXISTS shop"], {OF_P, OF_Q}),
        (["DROP TABLE crm.p"], {OF_P, OF_Q}),
        (["ALTER TABLE c DROP FOREIGN KEY named"], {OF_P}),
        (["ALTER TABLE c DROP CONSTRAINT IF EXISTS NAMED, ADD x INT"], {OF_P}),
        (["ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"], {OF_Q}),
        (["CREATE TABLE c (id INT)"], set()),
        (["CREATE TABLE IF NOT EXISTS c (id INT)"], {OF_P, OF_Q}),
        (
            ["ALTER TABLE c ADD FOREIGN KEY (q) REFERENCES crm.z (id) ON DELETE SET NULL"],
            {OF_P, OF_Q, "c_ibfk_2: shop.c(q) > crm.z(id)"},
        ),
        (
            ["ALTER TABLE c ADD CONSTRAINT r FOREIGN KEY (q) REFERENCES crm.z (id)"],
            {OF_P, OF_Q},
        ),
        (
            ["RENAME TABLE c TO d"],
            {"d_ibfk_1: shop.d(p) > crm.p(id)", "named: shop.d(q) > shop.q(id)"},
        ),
        (["ALTER TABLE crm.p CHANGE id key_ INT"], {"c_ibfk_1: shop.c(p) > crm.p(key_)", OF_Q}),
        (["ALTER TABLE c RENAME COLUMN q TO r"], {OF_P, "named: shop.c(r) > shop.q(id)"}),
        (["RENAME TABLE crm.p TO crm.old"], {OF_P, "c_ibfk_1: shop.c(p) > crm.old(id)", OF_Q}),
        (["CREATE TABLE e LIKE c"], {OF_P, OF_Q}),
        (["CREATE TEMPORARY TABLE c (id INT)"], {OF_P, OF_Q}),
    ],
)
def test_foreign_keys_follow_ddl(statements: list[str], expected: set[str]) -> None:
    assert edges(links_after(CHILD, *statements)) == expected


def test_tables_of_merge_tables() -> None:
    links = links_after("CREATE TABLE m (id INT) ENGINE=MERGE UNION=(a, crm.b)")
    merge = TableName("shop", "m")
    assert links.unions == {(merge, TableName("shop", "a")), (merge, TableName("crm", "b"))}
    links = links_after("ALTER TABLE m UNION=(a)", links=links)
    assert links.unions == {(merge, TableName("shop", "a"))}
    assert not links_after("DROP TABLE m", links=links).unions


def test_what_is_known() -> None:
    c, other = TableName("shop", "c"), TableName("shop", "other")
    assert links_after(CHILD).knows(c)
    assert not links_after(CHILD).knows(other)
    assert not links_after("CREATE TABLE IF NOT EXISTS c (id INT)").knows(c)
    assert not links_after(CHILD, "DROP TABLE c").knows(c)
    assert links_after(CHILD, "RENAME TABLE c TO other").knows(other)
    complete = TableLinks(is_complete=True)
    assert complete.knows(c)
    assert links_after(CHILD, links=complete).knows(c)
    assert links_after(CHILD, links=complete).known == frozenset()


def test_links_as_a_text() -> None:
    links = links_after(CHILD, "CREATE TABLE m (id INT) ENGINE=MERGE UNION=(a)")
    assert TableLinks.of_fields(json.loads(json.dumps(links.fields()))) == links
    assert TableLinks.of_fields({}) == NO_LINKS
    assert NO_LINKS.fields() == {}


@pytest.mark.parametrize("statement", ["CREATE TABLE [zz] (a INT)", "ALTER TABLE [zz] ADD a INT"])
def test_a_statement_whose_table_is_not_understood_may_be_about_any(statement: str) -> None:
    before = links_after(CHILD)
    links = links_after(statement, links=before)
    assert edges(links) == edges(before)
    assert not links.knows(TableName("shop", "c"))
    assert not links_after(statement, links=TableLinks(is_complete=True)).knows(TableName("a", "b"))
