"""Children of outside parents: what their DDL is in the binlog, and which keys replicas lack."""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.outside_references import (
    KEY_LEFT_OUT,
    after_left_keys,
    without_outside_keys,
)
from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.binlogs.routing.statement_verdicts import Drop, IncidentVerdict, Keep
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.pairs import query
from tests.routed_files import definitions

C, D = TableName("shop", "c"), TableName("shop", "d")
PARENT = "REFERENCES crm.p (id) ON DELETE CASCADE"
LEFT = NOTHING.with_left_keys(C, ["x"])


def scope() -> Scope:
    return definitions("LOG(shop)")[0].scope


def made(text: str, memory: Memory = NOTHING) -> tuple[str, set[str]] | None:
    """The text in the binlog, empty if there is none, and the keys that replicas lack."""
    body = query(text.encode())
    found = judge_statement(logged_statement(body), scope(), memory)
    child = without_outside_keys(body, found, scope(), memory)
    if child is None:
        return None
    assert child.table == C
    if isinstance(child.found.verdict, Drop):
        return "", set(child.left_keys)
    assert isinstance(child.found.verdict, Keep)
    return child.query.query.decode(), set(child.left_keys)


@pytest.mark.parametrize(
    ("elements", "others", "names"),
    [
        (f"p INT, FOREIGN KEY (p) {PARENT}", "p INT, KEY (`p`)", {"c_ibfk_1"}),
        (f"p INT, CONSTRAINT X FOREIGN KEY (p) {PARENT}", "p INT, KEY `X` (`p`)", {"x"}),
        (f"p INT, KEY k (p, q), FOREIGN KEY (p) {PARENT}", "p INT, KEY k (p, q)", {"c_ibfk_1"}),
        (f"p INT PRIMARY KEY, FOREIGN KEY (p) {PARENT}", "p INT PRIMARY KEY", {"c_ibfk_1"}),
        (f"p TEXT, KEY k (p(3)), FOREIGN KEY (p) {PARENT}", None, {"c_ibfk_1"}),
        (f"p INT NOT NULL {PARENT}, z INT", "p INT NOT NULL , KEY (`p`), z INT", {"c_ibfk_1"}),
        (
            f"p INT, FOREIGN KEY (p) {PARENT}, CONSTRAINT h FOREIGN KEY (p) REFERENCES shop.h (id)",
            "p INT, KEY (`p`), CONSTRAINT h FOREIGN KEY (p) REFERENCES shop.h (id)",
            {"c_ibfk_1"},
        ),
        (
            f"a INT, b INT, FOREIGN KEY (a, b) {PARENT}",
            "a INT, b INT, KEY (`a`, `b`)",
            {"c_ibfk_1"},
        ),
    ],
)
def test_a_child_is_made_without_its_key(
    elements: str, others: str | None, names: set[str]
) -> None:
    found = made(f"CREATE TABLE c ({elements}) ENGINE=InnoDB")
    others = "p TEXT, KEY k (p(3)), KEY (`p`)" if others is None else others
    assert found == (f"CREATE TABLE c ({others}) ENGINE=InnoDB", names)


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES h (id), FOREIGN KEY (p) {PARENT})",
        f"CREATE TABLE IF NOT EXISTS c (p INT, FOREIGN KEY (p) {PARENT})",
        f"CREATE TABLE c (p INT, FOREIGN KEY (p) {PARENT}) SELECT * FROM crm.z",
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES h (id))",
        "CREATE TABLE c LIKE crm.p",
        f"ALTER TABLE c ADD FOREIGN KEY (p) {PARENT}",
        "ALTER TABLE c DROP FOREIGN KEY y",
        f"CREATE TABLE crm.c (p INT, FOREIGN KEY (p) {PARENT})",
    ],
)
def test_other_statements_stay_as_they_are(text: str) -> None:
    assert made(text, LEFT) is None


@pytest.mark.parametrize(
    ("actions", "others", "names"),
    [
        (
            f"ADD CONSTRAINT Y FOREIGN KEY (p) {PARENT}",
            "ADD KEY IF NOT EXISTS `Y` (`p`)",
            {"x", "y"},
        ),
        ("DROP FOREIGN KEY X, DROP KEY X", "DROP KEY X", set()),
        ("ADD z INT, DROP FOREIGN KEY x", "ADD z INT", set()),
    ],
)
def test_a_child_is_altered_without_its_key(actions: str, others: str, names: set[str]) -> None:
    assert made(f"ALTER TABLE c {actions}", LEFT) == (f"ALTER TABLE c {others}", names)


def test_nothing_stays_of_a_key_that_replicas_do_not_have() -> None:
    assert made("ALTER TABLE c DROP FOREIGN KEY x", LEFT) == ("", set())


def test_a_key_that_is_left_out_is_told() -> None:
    body = query(f"CREATE TABLE c (p INT, FOREIGN KEY (p) {PARENT})".encode())
    found = judge_statement(logged_statement(body), scope(), NOTHING)
    assert isinstance(found.verdict, IncidentVerdict)
    child = without_outside_keys(body, found, scope(), NOTHING)
    assert child is not None
    assert child.found.omissions == (KEY_LEFT_OUT,)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("RENAME TABLE shop.c TO shop.d", {(D, "d_ibfk_1"), (D, "x")}),
        ("DROP TABLE shop.c", set()),
        ("DROP DATABASE shop", set()),
        ("CREATE OR REPLACE TABLE shop.c (id INT)", set()),
        ("CREATE TABLE IF NOT EXISTS shop.c (id INT)", {(C, "c_ibfk_1"), (C, "x")}),
        ("DROP TEMPORARY TABLE shop.c", {(C, "c_ibfk_1"), (C, "x")}),
        ("TRUNCATE TABLE shop.c", {(C, "c_ibfk_1"), (C, "x")}),
    ],
)
def test_what_becomes_of_the_keys(statement: str, left: set[tuple[TableName, str]]) -> None:
    before = NOTHING.with_left_keys(C, ["x", "c_ibfk_1"])
    effects = read(statement, database="", dialect=Dialect()).effects
    after = after_left_keys(before, effects, scope())
    assert after.left_keys == left
    assert Memory.decode(after.encode()) == after
