"""The texts of statements that are kept: no comments, no name that is not proven."""

from __future__ import annotations

import pytest

from binlane.binlogs.routing.judging import judge_statement, text_in_scope
from binlane.binlogs.routing.routed_group import OmissionKind
from binlane.binlogs.routing.routing_memory import NOTHING
from binlane.binlogs.routing.statement_verdicts import (
    Drop,
    IncidentVerdict,
    Keep,
    LeaveOut,
    Rewrite,
)
from binlane.statements.sql.logged_statements import LoggedStatement
from tests.unit.binlogs.routing.test_objects import DATABASE, NOT_CRM, TABLES, scope_of

DEFINITION = "CREATE TABLE orders (a INT, b INT"


def logged(text: str, *, database: str = "shop", sql_mode: int = 0) -> LoggedStatement:
    return LoggedStatement(text=text, database=database, sql_mode=sql_mode)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("CREATE /* crm.t */ TABLE orders (a INT) -- crm", "CREATE   TABLE orders (a INT)"),
        ("/* crm */ TRUNCATE orders # crm", "TRUNCATE orders"),
        ("TRUNCATE/**/orders", "TRUNCATE orders"),
        ("CREATE TABLE orders (a INT) /*!40000 ENGINE=InnoDB */", None),
        ("CREATE TABLE orders (a CHAR(9) DEFAULT '-- /* crm')", None),
        (f"{DEFINITION} COMMENT 'crm.t') COMMENT='crm'", f"{DEFINITION} COMMENT '') COMMENT=''"),
        (f"{DEFINITION}, KEY k (a) COMMENT 'crm')", f"{DEFINITION}, KEY k (a) COMMENT '')"),
        (f"{DEFINITION}, comment INT, CHECK (comment = 'crm'))", None),
        (
            f"{DEFINITION}) PARTITION BY LIST (a) (PARTITION p VALUES IN (1) COMMENT = 'crm')",
            f"{DEFINITION}) PARTITION BY LIST (a) (PARTITION p VALUES IN (1) COMMENT = '')",
        ),
        (f"{DEFINITION}) DATA DIRECTORY = '/crm'", f"{DEFINITION}) COMMENT ''"),
        (f"{DEFINITION}) TABLESPACE crm ENGINE InnoDB", f"{DEFINITION}) COMMENT '' ENGINE InnoDB"),
        ("ALTER TABLE orders DISCARD TABLESPACE", None),
        ("ALTER TABLE orders COMMENT 'crm', ADD c INT", "ALTER TABLE orders COMMENT '', ADD c INT"),
        ("CREATE TABLE orders SELECT comment = 'x' AS a FROM items", None),
        (
            "CREATE PROCEDURE p() COMMENT 'crm' SELECT 'data'",
            "CREATE PROCEDURE p() COMMENT '' SELECT 'data'",
        ),
        ("CREATE VIEW v AS SELECT comment 'x' FROM orders", None),
        ("ALTER DATABASE shop COMMENT 'crm'", "ALTER DATABASE shop COMMENT ''"),
        ("CREATE VIEW v AS SELECT * FROM information_schema.tables", None),
    ],
)
def test_a_text_without_what_people_say(text: str, kept: str | None) -> None:
    found = judge_statement(logged(text), scope_of(DATABASE), NOTHING)
    assert found.verdict == Keep()
    assert found.text == (text if kept is None else kept)
    emptied = "crm" in text and "COMMENT" in text and "comment =" not in text
    assert [one.kind for one in found.omissions] == [OmissionKind.COMMENT] * emptied


@pytest.mark.parametrize(
    "text",
    [
        f"{DEFINITION}) ENGINE=FEDERATED CONNECTION='mysql://u@h/crm/t'",
        f"{DEFINITION}) ENGINE=CONNECT TABLE_TYPE='MYSQL' TABNAME='t'",
        f"{DEFINITION}) ENGINE=MERGE UNION=(crm.t)",
        f"{DEFINITION}, CHECK (crm.t.a > 0))",
        f"{DEFINITION}, FOREIGN KEY (a) REFERENCES crm.t (a))",
        f"{DEFINITION}, c INT DEFAULT NEXTVAL(crm.s))",
        "CREATE TABLE orders LIKE crm.t",
        "INSERT INTO orders VALUES (crm.secret_of(1))",
    ],
)
def test_what_cannot_go_is_an_incident(text: str) -> None:
    verdict = judge_statement(logged(text), scope_of(DATABASE), NOTHING).verdict
    assert isinstance(verdict, IncidentVerdict)
    assert "crm" not in verdict.reason


_DEEP = "ABS(" * 300 + "1" + ")" * 300


@pytest.mark.parametrize(
    ("text", "database", "is_ours"),
    [
        (f"ALTER TABLE crm.person ADD CHECK ({_DEEP})", "crm", False),
        (f"ALTER TABLE orders ADD CHECK ({_DEEP})", "crm", False),
        (f"ALTER TABLE orders ADD CHECK ({_DEEP})", "shop", True),
        ("ALTER TABLE person BECOME NEWER", "crm", False),
        ("ALTER TABLE crm . person BECOME shop.stock", "crm", False),
        ("ALTER TABLE crm.person BECOME `shop` . `orders`", "crm", True),
        ("ALTER TABLE crm.person BECOME /*! shop.orders */", "crm", True),
        ("ALTER TABLE crm.person BECOME 'shop.orders'", "crm", False),
        ("CREATE NOVELTY crm.x", "crm", False),
        ("CREATE NOVELTY orders", "shop", True),
        ("DROP NOVELTY shop", "crm", True),
        ("FROBNICATE crm.x", "crm", True),
        (f"CALL crm.p({_DEEP})", "crm", True),
        ("GRANT NOVELTY ON ON shop.orders TO u", "shop", False),
        ("DROP TABLE " + ", ".join(f"crm.t{n}" for n in range(80_000)), "crm", False),
        ("DROP TABLE orders, " + ", ".join(f"crm.t{n}" for n in range(80_000)), "shop", True),
    ],
    ids=lambda given: str(given)[:50],
)
def test_what_is_not_understood_stops_whom_it_may_concern(
    text: str,
    database: str,
    is_ours: bool,  # noqa: FBT001
) -> None:
    found = judge_statement(logged(text, database=database), scope_of(TABLES), NOTHING).verdict
    assert isinstance(found, IncidentVerdict if is_ours else Drop)


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("GRANT SELECT ON *.* TO u@h", True),
        ("GRANT admin TO u@h", True),
        ("GRANT PROXY ON a@b TO u@h", True),
        ("GRANT SELECT (a), UPDATE (b) ON TABLE shop.orders TO u@h", True),
        ("GRANT SELECT ON `cr\\_m`.* TO u@h", True),
        ("GRANT SELECT ON shop.* TO u@h", True),
        ("GRANT SELECT ON crm.* TO u@h", False),
        ("GRANT SELECT ON * TO u@h", False),
        ("GRANT SELECT ON person TO u@h", False),
        ("GRANT EXECUTE ON PROCEDURE crm.p TO u@h", False),
        ("REVOKE ALL ON crm.person FROM u@h", False),
        ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM u@h", True),
    ],
)
def test_grants_go_by_the_accounts_and_name_nothing_outside(text: str, is_kept: bool) -> None:  # noqa: FBT001
    found = judge_statement(logged(text, database="crm"), scope_of(NOT_CRM), NOTHING)
    assert isinstance(found.verdict, Keep if is_kept else LeaveOut)


def test_tables_take_the_defaults_of_their_database() -> None:
    create = "CREATE DATABASE shop CHARACTER SET latin1"
    found = judge_statement(logged(create), scope_of(TABLES), NOTHING).verdict
    assert found == Rewrite("ALTER DATABASE `shop` CHARACTER SET latin1")
    alter = "ALTER DATABASE shop CHARACTER SET utf8mb4"
    assert judge_statement(logged(alter), scope_of(TABLES), NOTHING).verdict == Keep()
    replace = "CREATE OR REPLACE DATABASE shop"
    found = judge_statement(logged(replace), scope_of(TABLES), NOTHING).verdict
    assert found == Rewrite("DROP TABLE IF EXISTS `shop`.`items`, `shop`.`orders`")


def test_a_text_in_scope_is_the_same_when_it_is_read_again() -> None:
    for text in (
        "DROP VIEW v /* x */",
        "CREATE TABLE t (a INT COMMENT 'x') -- y",
        "DROP FUNCTION f",
    ):
        first = text_in_scope(logged(text))
        assert first != text
        assert text_in_scope(logged(first)) == first
