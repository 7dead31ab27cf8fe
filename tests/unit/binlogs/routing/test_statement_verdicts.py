from __future__ import annotations

import pytest

from binlane.binlogs.routing.routed_group import OmissionKind
from binlane.binlogs.routing.statement_verdicts import (
    Drop,
    IncidentVerdict,
    Keep,
    KeepWithRows,
    LeaveOut,
    Rewrite,
    judge,
)
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.scope import Scope
from binlane.statements.scope.statements import CreateBinlog, create
from tests.reading import analyse


def scope_of(clauses: str) -> Scope:
    statement = parse_binlog_statement(f"CREATE BINLOG 'b' {clauses}")
    assert isinstance(statement, CreateBinlog)
    return create(statement, 1).scope


TABLES = "LOG(shop.orders, shop.items)"
DATABASE = "LOG(shop)"
SHOP_WITHOUT_STOCK = "LOG(shop), IGNORE(shop.stock)"
NOT_CRM = "IGNORE(crm)"


@pytest.mark.parametrize(
    ("clauses", "statement", "verdict"),
    [
        (TABLES, "CREATE TABLE shop.orders (id INT)", Keep()),
        (TABLES, "CREATE TABLE shop.stock (id INT)", Drop()),
        (TABLES, "ALTER TABLE orders ADD COLUMN x INT", Keep()),
        (TABLES, "ALTER TABLE crm.person ADD COLUMN x INT", Drop()),
        (TABLES, "TRUNCATE TABLE items", Keep()),
        (TABLES, "DROP TABLE orders, crm.person", Rewrite("DROP TABLE IF EXISTS `shop`.`orders`")),
        (TABLES, "DROP TABLE crm.person", Drop()),
        (TABLES, "CREATE DATABASE shop", Drop()),
        (DATABASE, "CREATE DATABASE shop", Keep()),
        (DATABASE, "DROP DATABASE shop", Keep()),
        (
            TABLES,
            "DROP DATABASE shop",
            Rewrite("DROP TABLE IF EXISTS `shop`.`items`, `shop`.`orders`"),
        ),
        (TABLES, "DROP DATABASE crm", Drop()),
        (
            TABLES,
            "RENAME TABLE orders TO items_old",
            Rewrite("DROP TABLE IF EXISTS `shop`.`orders`"),
        ),
        (
            TABLES,
            "ALTER TABLE orders RENAME TO archive.orders",
            Rewrite("DROP TABLE IF EXISTS `shop`.`orders`"),
        ),
        (DATABASE, "RENAME TABLE orders TO orders_old", Keep()),
        (
            DATABASE,
            "RENAME TABLE orders TO orders_old, crm.a TO crm.b",
            Rewrite("RENAME TABLE `shop`.`orders` TO `shop`.`orders_old`"),
        ),
        (TABLES, "RENAME TABLE crm.a TO crm.b", Drop()),
        (
            TABLES,
            "RENAME TABLE orders TO tmp, items TO orders, tmp TO items",
            Rewrite(
                "RENAME TABLE `shop`.`items` TO `shop`.`binlane_moving_1`, "
                "`shop`.`orders` TO `shop`.`items`, `shop`.`binlane_moving_1` TO `shop`.`orders`"
            ),
        ),
        (
            DATABASE,
            "RENAME TABLE a TO crm.x, b TO a, crm.x TO b, c TO d, crm.p TO crm.q",
            Rewrite(
                "RENAME TABLE `shop`.`c` TO `shop`.`d`, `shop`.`b` TO `shop`.`binlane_moving_1`, "
                "`shop`.`a` TO `shop`.`b`, `shop`.`binlane_moving_1` TO `shop`.`a`"
            ),
        ),
        (
            TABLES,
            "RENAME TABLE orders TO old, items TO older",
            Rewrite("DROP TABLE IF EXISTS `shop`.`orders`, `shop`.`items`"),
        ),
        (TABLES, "RENAME TABLE orders TO old, items TO orders", None),
        (TABLES, "RENAME TABLE new TO orders, other TO items", None),
        (DATABASE, "RENAME TABLE orders TO tmp, items TO orders, tmp TO items", Keep()),
        (SHOP_WITHOUT_STOCK, "DROP TABLE stock", Drop()),
        (NOT_CRM, "CREATE TABLE shop.anything (id INT)", Keep()),
        (NOT_CRM, "CREATE TABLE crm.anything (id INT)", Drop()),
        (NOT_CRM, "CREATE DATABASE crm", Drop()),
        (NOT_CRM, "SAVEPOINT a", KeepWithRows()),
        (NOT_CRM, "FLUSH TABLES", Drop()),
        (TABLES, "ANALYZE TABLE orders", Keep()),
        (NOT_CRM, "CREATE USER a@b", Keep()),
        (TABLES, "CREATE USER a@b", Drop()),
        (NOT_CRM, "GRANT SELECT ON shop.orders TO a@b", Keep()),
        ("LOG(mysql)", "RENAME USER a@b TO c@d", Keep()),
        ("IGNORE(crm, mysql)", "DROP USER a@b", Drop()),
    ],
)
def test_verdict(clauses: str, statement: str, verdict: object) -> None:
    found = judge(analyse(statement, database="shop"), scope_of(clauses))
    if verdict is None:
        assert isinstance(found, IncidentVerdict)
    else:
        assert found == verdict


@pytest.mark.parametrize(
    ("clauses", "statement"),
    [
        (TABLES, "RENAME TABLE crm.orders TO shop.orders"),
        (TABLES, "CREATE TABLE orders LIKE crm.person"),
        (TABLES, "CREATE TABLE orders (c INT, FOREIGN KEY (c) REFERENCES customers (id))"),
        (TABLES, "UPDATE orders JOIN crm.person p ON p.id = orders.c SET orders.x = 1, p.y = 2"),
        (TABLES, "INSERT INTO orders SELECT * FROM crm.person"),
        (TABLES, "CALL shop.anything()"),
        (NOT_CRM, "CREATE TABLE shop.x (y WHAT IS THIS"),
    ],
)
def test_what_cannot_be_expressed_stops_replicas(clauses: str, statement: str) -> None:
    assert isinstance(
        judge(analyse(statement, database="shop"), scope_of(clauses)), IncidentVerdict
    )


@pytest.mark.parametrize(
    ("clauses", "statement", "kind"),
    [
        (TABLES, "ANALYZE TABLE orders, crm.person", OmissionKind.ADMIN),
    ],
)
def test_what_names_outside_objects_is_left_out_and_noted(
    clauses: str, statement: str, kind: OmissionKind
) -> None:
    verdict = judge(analyse(statement, database="shop"), scope_of(clauses))
    assert isinstance(verdict, LeaveOut)
    assert verdict.omission.kind is kind
    assert "crm" not in verdict.omission.reason
