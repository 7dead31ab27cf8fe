"""Rows that change unseen: what may change what, and both paths on recorded logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.routing.cascades import CASCADED, changes_unseen, dangers
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.routed_files import definitions, outputs, routed, written


def effects_of(statement: str) -> StatementEffects:
    return read(statement, database="", dialect=Dialect()).effects


def _key(column: str, parent: str) -> str:
    return f"FOREIGN KEY ({column}) REFERENCES {parent}"


# a, outside → b, outside → c, in scope → d, in scope; e is set to NULL by b's key.
TABLES = (
    "CREATE TABLE crm.a (id INT PRIMARY KEY, k INT)",
    f"CREATE TABLE crm.b (a INT, {_key('a', 'crm.a (id)')} ON DELETE CASCADE ON UPDATE CASCADE)",
    f"CREATE TABLE shop.c (b INT, {_key('b', 'crm.b (id)')} ON DELETE CASCADE)",
    f"CREATE TABLE shop.d (c INT, {_key('c', 'shop.c (id)')} ON DELETE CASCADE)",
    f"CREATE TABLE shop.e (ba INT, {_key('ba', 'crm.b (a)')} ON UPDATE SET NULL)",
    "CREATE TABLE crm.m (id INT) ENGINE=MERGE UNION=(shop.x, crm.y)",
)
A, B, C, D, E = (
    TableName(*name.split(".")) for name in ("crm.a", "crm.b", "shop.c", "shop.d", "shop.e")
)
M, X = TableName("crm", "m"), TableName("shop", "x")


def links_of(*statements: str) -> TableLinks:
    links = NO_LINKS
    for statement in statements:
        facts = read(statement, database="", dialect=Dialect())
        links = links.after(facts, facts.effects)
    return links


def test_what_rows_may_change_over_several_tables() -> None:
    (shop,) = definitions("LOG(shop)")
    found = dangers(links_of(*TABLES), shop.scope)
    assert set(found) == {A, B, M}
    assert found[A].by_delete == {C}
    assert found[A].by_update == {("id",): {E}}
    assert found[B].by_delete == {C}
    assert found[B].by_update == {("a",): {E}}
    assert found[M].by_any == {X}


@pytest.mark.parametrize(
    ("clauses", "parents"),
    [
        ("LOG(shop, crm)", set()),
        ("LOG(crm)", set()),
        ("LOG ALL", set()),
        # The replica has a and c, and not b between them.
        ("LOG(shop, crm.a)", {A, B, M}),
        ("LOG(shop.d)", {C, B, A}),
        ("LOG(shop.c, shop.d, crm.b), IGNORE(shop.e)", {A}),
    ],
)
def test_only_what_crosses_the_edge_counts(clauses: str, parents: set[TableName]) -> None:
    (definition,) = definitions(clauses)
    assert set(dangers(links_of(*TABLES), definition.scope)) == parents


@pytest.mark.parametrize(
    ("statement", "is_unseen"),
    [
        ("DELETE FROM crm.a", True),
        ("UPDATE crm.b SET a = 1", True),
        ("REPLACE INTO crm.b VALUES (1, 1)", True),
        ("INSERT INTO crm.b VALUES (1, 1)", False),
        ("INSERT INTO crm.m VALUES (1)", True),
        ("TRUNCATE TABLE crm.m", True),
        ("TRUNCATE TABLE crm.a", False),
        ("DELETE FROM shop.c", False),
        ("DELETE FROM crm.other", False),
        ("DROP TABLE crm.m", False),
    ],
)
def test_statements_logged_as_such(statement: str, *, is_unseen: bool) -> None:
    (shop,) = definitions("LOG(shop)")
    effects = effects_of(statement)
    assert changes_unseen(effects, links_of(*TABLES), shop.scope) == is_unseen


# Children whose parent is outside; a grandchild of one that is outside as well; all of them.
SCOPES = ("LOG(shop.ch_c)", "LOG(shop.gch)", "LOG(shop.ch_n)", "IGNORE(shop.par)", "LOG(shop)")


@pytest.mark.parametrize("name", ["md1011_fk", "md118_fk", "my97_fk"])
def test_all_paths_find_the_same_in_recorded_logs(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    ways: dict[str, dict[str, Any]] = {"reference": {"uses_kernels": False}}
    if is_compiled(("copying", "scan")):
        ways |= {"spans": {}, "large": {"window_bytes": 64, "held_bytes_max": 200}}
    reports = {
        way: routed(paths, tmp_path / way, *SCOPES, **options) for way, options in ways.items()
    }
    for way, report in reports.items():
        assert outputs(tmp_path / way) == outputs(tmp_path / "reference")
        assert report.counts == reports["reference"].counts
    told = {
        binlog: sum(CASCADED in text for text in counts.incidents)
        for binlog, counts in reports["reference"].counts.items()
    }
    assert told["b5"] == 0
    assert all(told[f"b{number}"] for number in range(1, 5)) == name.startswith("md")
    assert any(told.values()) == name.startswith("md")


def test_names_that_differ_in_case_alone_are_one_where_the_source_says_so() -> None:
    scope = Scope(log_databases=frozenset({"shop"}), ignores_case=True)
    shouted = tuple(text.replace("crm.b", "CRM.B").replace("shop.c", "Shop.C") for text in TABLES)
    links = links_of(*shouted).folded
    assert dangers(links, scope)[A].by_delete == {C}
    assert changes_unseen(effects_of("DELETE FROM Crm.A"), links, scope)
    assert links.knows(scope.key(TableName("SHOP", "C")))
