"""Statements that were judged with objects that others may have changed before they ran."""

from __future__ import annotations

import pytest

from binlane.live.port.judged_objects import JudgedObjects
from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read

SCHEMA = (
    "CREATE DATABASE d; USE d;"
    "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b INT) ENGINE=InnoDB;"
    "CREATE TABLE log (a INT) ENGINE=InnoDB;"
    "CREATE VIEW v AS SELECT a FROM t;"
    "CREATE FUNCTION f() RETURNS INT RETURN 1;"
)


def _catalog(*more: str) -> SchemaCatalog:
    catalog = SchemaCatalog(flavor=Flavor.MARIADB)
    catalog.load(SCHEMA, database="d")
    for statement in more:
        catalog.apply(statement, database="d")
    assert not catalog.problems
    return catalog


def _judged(statement: str) -> JudgedObjects:
    session = Session(
        server=Server.parse("mariadb"), objects=_catalog(), definitions=[], database="d"
    )
    return JudgedObjects.of(read(statement, database="d", dialect=session.dialect), session)


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("INSERT INTO t (b) VALUES (1)", "CREATE TABLE other (a INT)"),
        ("INSERT INTO t (b) VALUES (1)", "ALTER TABLE t AUTO_INCREMENT=17"),
        ("INSERT INTO v VALUES (1)", "ALTER TABLE log ADD c INT"),
        # What it makes or changes itself.
        ("CREATE TABLE made AS SELECT a FROM t", "CREATE TABLE made (a INT)"),
        ("ALTER TABLE t ADD c INT", "ALTER TABLE t ADD c INT"),
    ],
)
def test_what_others_changed_does_not_matter(statement: str, change: str) -> None:
    assert _judged(statement).are_same(_catalog(change))


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("INSERT INTO t (b) VALUES (1)", "ALTER TABLE t ADD c INT"),
        ("INSERT INTO t (b) VALUES (1)", "ALTER TABLE t ENGINE=MyISAM"),
        ("INSERT INTO t (b) VALUES (1)", "DROP TABLE t"),
        (
            "INSERT INTO t (b) VALUES (1)",
            "CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (1)",
        ),
        ("INSERT INTO v VALUES (1)", "ALTER VIEW v AS SELECT a FROM t WHERE a > 1"),
        ("UPDATE t SET b = f()", "DROP FUNCTION f"),
        ("CREATE TABLE made AS SELECT a FROM t", "ALTER TABLE t ADD c INT"),
    ],
)
def test_what_others_changed_leaves_a_judged(statement: str, change: str) -> None:
    assert not _judged(statement).are_same(_catalog(change))
