"""What was left out of a scope stays left out, whatever is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule, ScheduledChange
from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.routed_group import OmissionKind
from binlane.binlogs.routing.routing_memory import NOTHING, Memory
from binlane.binlogs.routing.statement_verdicts import (
    Drop,
    IncidentVerdict,
    Keep,
    LeaveOut,
    Rewrite,
)
from binlane.log.codec.event import Event
from binlane.log.codec.query import QueryEvent
from binlane.log.grouping.event_group import EventGroup, group_events
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import LoggedStatement
from tests.routed_files import definitions, outputs, written

TABLES = "LOG(shop.orders, shop.items)"
DATABASE = "LOG(shop)"
NOT_STOCK = "LOG(shop), IGNORE(shop.stock)"
NOT_CRM = "IGNORE(crm)"


def scope_of(clauses: str) -> Scope:
    return definitions(clauses)[0].scope


def run(clauses: str, *statements: str, database: str = "shop") -> list[str | None]:
    """What a binlog holds of statements, one after the other; `!` before why it stops."""
    memory, found = NOTHING, list[str | None]()
    for statement in statements:
        text, memory = one(clauses, statement, memory, database=database)
        found.append(text)
    return found


def one(
    clauses: str, statement: str, memory: Memory, *, database: str = "shop"
) -> tuple[str | None, Memory]:
    logged = LoggedStatement(text=statement, database=database, sql_mode=0)
    judged = judge_statement(logged, scope_of(clauses), memory)
    verdict = judged.verdict
    # What is remembered is a text between groups.
    memory = Memory.decode(judged.memory.encode())
    if isinstance(verdict, IncidentVerdict):
        return f"! {verdict.reason}", memory
    if isinstance(verdict, Rewrite):
        return verdict.statement, memory
    return judged.text if isinstance(verdict, Keep) else None, memory


SECRET_VIEW = "CREATE VIEW v AS SELECT * FROM crm.secret"


@pytest.mark.parametrize(
    "later",
    [
        "DROP VIEW v",
        "DROP VIEW IF EXISTS v",
        "ALTER VIEW v AS SELECT * FROM crm.secret",
        "CREATE OR REPLACE VIEW v AS SELECT * FROM crm.secret",
        "RENAME TABLE v TO w",
        "CREATE VIEW w AS SELECT * FROM v",
        "GRANT SELECT ON v TO u@h",
        "REVOKE SELECT ON shop.v FROM u@h",
        "ANALYZE TABLE v",
    ],
)
@pytest.mark.parametrize("clauses", [DATABASE, NOT_CRM, NOT_STOCK])
def test_a_view_stays_left_out(clauses: str, later: str) -> None:
    assert run(clauses, SECRET_VIEW, later) == [None, None]


def test_a_view_is_left_out_under_its_new_name() -> None:
    found = run(
        DATABASE,
        SECRET_VIEW,
        "RENAME TABLE v TO w, orders TO old",
        "DROP VIEW w, other",
        "CREATE VIEW w AS SELECT 1 AS a",
        "DROP VIEW w",
    )
    assert found == [
        None,
        "RENAME TABLE `shop`.`orders` TO `shop`.`old`",
        "DROP VIEW IF EXISTS `shop`.`other`",
        "CREATE VIEW w AS SELECT 1 AS a",
        "DROP VIEW IF EXISTS `shop`.`w`",
    ]


def test_what_was_there_goes_with_its_definition() -> None:
    found = run(
        DATABASE,
        "CREATE VIEW v AS SELECT 1 AS a",
        "ALTER VIEW v AS SELECT * FROM crm.secret",
        "ALTER VIEW v AS SELECT 2 AS a",
        "CREATE OR REPLACE VIEW v AS SELECT secret_of(1) AS a",
        "ALTER EVENT e DO DELETE FROM crm.secret",
        "ALTER EVENT e ENABLE",
    )
    assert found == [
        "CREATE VIEW v AS SELECT 1 AS a",
        "DROP VIEW IF EXISTS `shop`.`v`",
        "CREATE OR REPLACE VIEW v AS SELECT 2 AS a",
        "CREATE OR REPLACE VIEW v AS SELECT secret_of(1) AS a",
        "DROP EVENT IF EXISTS `shop`.`e`",
        None,
    ]


@pytest.mark.parametrize(
    ("create", "later"),
    [
        ("CREATE FUNCTION f() RETURNS INT RETURN crm.g()", "ALTER FUNCTION F COMMENT 'x'"),
        ("CREATE FUNCTION f() RETURNS INT RETURN crm.g()", "DROP FUNCTION f"),
        ("CREATE FUNCTION f() RETURNS INT RETURN crm.g()", "CREATE VIEW v AS SELECT F()"),
        ("CREATE FUNCTION f() RETURNS INT RETURN crm.g()", "GRANT EXECUTE ON FUNCTION f TO u@h"),
        ("CREATE PROCEDURE p() CALL crm.q()", "DROP PROCEDURE IF EXISTS p"),
        (
            "CREATE PROCEDURE p() BEGIN PREPARE s FROM @x; END",
            "ALTER PROCEDURE p SQL SECURITY INVOKER",
        ),
        ("CREATE PROCEDURE p() EXECUTE IMMEDIATE 'DELETE FROM crm.t'", "DROP PROCEDURE p"),
        ("CREATE PROCEDURE p() EXECUTE IMMEDIATE concat('a', 'b')", "DROP PROCEDURE p"),
        (
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM crm.t",
            "ALTER EVENT e RENAME TO f",
        ),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM crm.t", "DROP EVENT e"),
        ("CREATE PACKAGE k AS FUNCTION f RETURN INT; END", "DROP PACKAGE k"),
        (
            "CREATE TRIGGER t AFTER INSERT ON orders FOR EACH ROW INSERT INTO crm.t VALUES (1)",
            "DROP TRIGGER t",
        ),
    ],
)
def test_a_program_stays_left_out(create: str, later: str) -> None:
    assert run(DATABASE, create, later) == [None, None]


def test_what_may_have_been_there_is_dropped() -> None:
    """IF NOT EXISTS with a definition that cannot pass: nobody knows whether it did anything."""
    create = "CREATE VIEW IF NOT EXISTS v AS SELECT * FROM crm.secret"
    dropped = "DROP VIEW IF EXISTS `shop`.`v`"
    assert run(DATABASE, create, "DROP VIEW v", "DROP VIEW v") == [None, dropped, dropped]
    secret = "ALTER VIEW v AS SELECT * FROM crm.secret"
    assert run(DATABASE, create, secret, "DROP VIEW v") == [None, dropped, None]
    event = "CREATE EVENT IF NOT EXISTS e ON SCHEDULE EVERY 1 DAY DO DELETE FROM crm.t"
    assert run(DATABASE, event, "ALTER EVENT e RENAME TO f", "DROP EVENT f") == [
        None,
        "DROP EVENT IF EXISTS `shop`.`e`",
        None,
    ]
    trigger = TRIGGER.replace("TRIGGER t", "TRIGGER IF NOT EXISTS t").replace("1", "crm.f()")
    assert run(DATABASE, trigger, "DROP TRIGGER t") == [None, "DROP TRIGGER IF EXISTS `shop`.`t`"]


def test_an_event_keeps_being_left_out_by_its_new_name() -> None:
    create = "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM crm.t"
    moved = "ALTER EVENT e RENAME TO crm.e"
    found = run(DATABASE, create, "ALTER EVENT e RENAME TO f", "DROP EVENT F", "DROP EVENT f")
    assert found == [None, None, None, "DROP EVENT IF EXISTS `shop`.`f`"]
    assert run(DATABASE, moved, "ALTER EVENT crm.x RENAME TO y", "DROP EVENT y") == [
        "DROP EVENT IF EXISTS `shop`.`e`",
        None,
        None,
    ]


TRIGGER = "CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW SET NEW.a = 1"


def test_a_scope_of_tables_has_the_drop_of_a_trigger_of_theirs() -> None:
    assert run(TABLES, TRIGGER, "DROP TRIGGER t") == [TRIGGER, "DROP TRIGGER IF EXISTS `shop`.`t`"]


@pytest.mark.parametrize("clauses", [TABLES, NOT_STOCK])
def test_triggers_of_other_tables_are_told_apart(clauses: str) -> None:
    other = "CREATE TRIGGER o BEFORE INSERT ON stock FOR EACH ROW SET NEW.a = 1"
    assert run(clauses, other, "DROP TRIGGER o") == [None, None]
    # Nobody knows whose trigger it was: that it is gone is not told, but noted.
    logged = LoggedStatement(text="DROP TRIGGER unknown", database="shop", sql_mode=0)
    verdict = judge_statement(logged, scope_of(clauses), NOTHING).verdict
    assert isinstance(verdict, LeaveOut)
    assert verdict.omission.kind is OmissionKind.TRIGGER


def test_a_trigger_goes_and_moves_with_its_table() -> None:
    gone = "DROP TABLE orders"
    found = run(TABLES, TRIGGER, gone, "DROP TRIGGER t")
    assert found == [TRIGGER, gone, None]
    rename = "RENAME TABLE orders TO items"
    found = run(TABLES, TRIGGER, rename, "DROP TRIGGER t")
    assert found == [TRIGGER, rename, "DROP TRIGGER IF EXISTS `shop`.`t`"]
    found = run(TABLES, TRIGGER, "RENAME TABLE orders TO stock", "DROP TRIGGER t")
    assert found == [TRIGGER, "DROP TABLE IF EXISTS `shop`.`orders`", None]


def test_a_trigger_does_not_follow_one_that_is_left_out() -> None:
    secret = "CREATE TRIGGER s AFTER INSERT ON orders FOR EACH ROW INSERT INTO crm.t VALUES (1)"
    follows = TRIGGER.replace("ROW SET", "ROW FOLLOWS {} SET")
    assert run(DATABASE, secret, follows.format("s"), follows.format("u")) == [
        None,
        TRIGGER,
        follows.format("u"),
    ]


@pytest.mark.parametrize("drop", ["DROP", "CREATE OR REPLACE"])
def test_a_database_takes_along_what_was_left_out_of_it(drop: str) -> None:
    found = run(DATABASE, SECRET_VIEW, f"{drop} DATABASE shop", "DROP VIEW v")
    assert found == [None, f"{drop} DATABASE shop", "DROP VIEW IF EXISTS `shop`.`v`"]


def test_no_replica_reads_a_view_that_is_left_out() -> None:
    (_, found) = run(DATABASE, SECRET_VIEW, "INSERT INTO orders SELECT * FROM v")
    assert found is not None
    assert found.startswith("! ")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE PROCEDURE shop.p() SELECT * FROM orders",
        "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM orders",
        "CREATE VIEW shop.v AS SELECT * FROM orders",
        "CREATE VIEW shop.v AS SELECT f(1) AS a",
    ],
)
def test_who_wrote_a_body_may_have_meant_the_default_database(statement: str) -> None:
    assert run(DATABASE, statement, database="crm") == [None]
    assert run(DATABASE, statement, database="shop") == [statement]


def test_a_server_may_not_tell_case_apart() -> None:
    scope = replace(scope_of(DATABASE), ignores_case=True)
    logged = LoggedStatement(text=SECRET_VIEW, database="Shop", sql_mode=0)
    memory = judge_statement(logged, scope, NOTHING).memory
    drop = replace(logged, text="DROP VIEW SHOP.V, SHOP.W")
    verdict = judge_statement(drop, scope, memory).verdict
    assert verdict == Rewrite("DROP VIEW IF EXISTS `shop`.`w`")


def test_memory_is_of_the_tables_in_scope() -> None:
    _, memory = one(TABLES, TRIGGER, NOTHING)
    assert memory.triggers == {(TableName("shop", "t"), TableName("shop", "orders"))}
    assert one(TABLES, "CREATE VIEW v AS SELECT * FROM crm.t", NOTHING)[1] == NOTHING
    logged = LoggedStatement(text=SECRET_VIEW, database="shop", sql_mode=0)
    assert isinstance(judge_statement(logged, scope_of(TABLES), NOTHING).verdict, Drop)


@pytest.mark.parametrize("name", ["md1011_stored", "my97_stored"])
def test_what_was_left_out_stays_so_under_a_scope_of_everything(name: str, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    found = [group for path in paths for group in group_events(_events(Path(path)), file=path)]
    (at,) = (n for n, group in enumerate(found) if b"ALTER EVENT evt ENABLE" in _texts(group))
    after = found[at - 1].gtid
    assert after is not None
    schedule = Schedule(
        definitions("IGNORE(shop.log_i)"),
        (ScheduledChange(after, definitions("LOG ALL", "LOG ALL")),),
    )
    for fast in (True, False):
        out = tmp_path / str(fast)
        route_files(RouteRequest(paths=paths, schedule=schedule, out=out, uses_kernels=fast))
        data = (out / "b1" / "b1.000001").read_bytes()
        assert b"ALTER EVENT" not in data
        assert b"evt2" not in data
        # It takes everything else again, and a new binlog takes that, too.
        assert b"DROP TRIGGER" in data
        assert b"evt2" in (out / "b2" / "b2.000001").read_bytes()
    assert outputs(tmp_path / "True") == outputs(tmp_path / "False")


def _events(path: Path) -> Iterator[Event]:
    return walk([path.read_bytes()], file=path.name)


def _texts(group: EventGroup) -> list[bytes]:
    return [event.body.query for event in group.events if isinstance(event.body, QueryEvent)]
