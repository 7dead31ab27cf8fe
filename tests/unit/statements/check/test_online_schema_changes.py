"""Schema change tools at binlogs of single tables: their shadows are left out, all else is refused as ever."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.statements.policy.refusals import Refusal
from binlane.statements.session.report import StatementResult
from tests.checked import check, short

SCHEMA: Final = """
CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40)) ENGINE=InnoDB;
CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT) ENGINE=InnoDB;
CREATE TABLE items (id INT PRIMARY KEY) ENGINE=InnoDB;
"""
SHADOW: Final = (
    "CREATE TABLE `shop`.`_orders_new` (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(60));"
)
_NEW: Final = "`shop`.`_orders_new`"
_KEY: Final = f"{_NEW}.`id` <=> OLD.`id`"
_FILL: Final = f"REPLACE INTO {_NEW} (`id`, `v`) VALUES (NEW.`id`, NEW.`v`)"
_TAKE: Final = f"DELETE IGNORE FROM {_NEW} WHERE {_KEY}"
_CHANGE: Final = f"DELETE IGNORE FROM {_NEW} WHERE !(OLD.`id` <=> NEW.`id`) AND {_KEY};{_FILL};"
_HANDLER: Final = "DECLARE CONTINUE HANDLER FOR 1146 begin end;"


def _trigger(word: str, event: str, body: str, table: str = "`shop`.`orders`") -> str:
    name = f"`pt_osc_shop_orders_{word}`"
    return f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {body}"


DELETED: Final = _trigger("del", "DELETE", _TAKE)
UPDATED: Final = _trigger("upd", "UPDATE", f"BEGIN {_CHANGE}END ")
INSERTED: Final = _trigger("ins", "INSERT", _FILL)
TRIGGERS: Final = (DELETED, UPDATED, INSERTED)
LATER: Final = (
    _trigger("del", "DELETE", f"BEGIN {_HANDLER} {_TAKE}; END "),
    _trigger("upd", "UPDATE", f"BEGIN {_HANDLER} {_CHANGE} END "),
    _trigger("ins", "INSERT", f"BEGIN {_HANDLER} {_FILL}; END "),
)
"""The triggers of pt-online-schema-change since 3.3."""
WRITES: Final = (
    "INSERT INTO shop.orders (v) VALUES ('a')",
    "UPDATE shop.orders SET v = 'b' WHERE id = 1",
    "REPLACE INTO shop.orders VALUES (1, 'c')",
    "INSERT INTO shop.orders VALUES (1, 'c') ON DUPLICATE KEY UPDATE v = 'd'",
    "DELETE FROM shop.orders WHERE id = 1",
)
ORDERS: Final = "LOG(shop.orders)"
NONE: Final = {"b": "none"}


def _last(*statements: str, scope: str = ORDERS, mode: str = "ROW", server: str) -> StatementResult:
    """The result of the last statement; none before it may be refused."""
    binlogs = f"CREATE BINLOG b {scope}, FORMAT='{mode}';"
    script = "DELIMITER //\n" + "\n//\n".join(statements) + "\n//\n"
    *before, last = check(script, binlogs=binlogs, schema=SCHEMA, server=server)
    assert [one.result.error for one in before if one.result.error] == []
    assert last.result.unanalysed is None
    return last.result


def _logged(
    *statements: str, scope: str = ORDERS, mode: str = "ROW", server: str
) -> dict[str, str]:
    """How the last statement is logged, which is not refused."""
    result = _last(*statements, scope=scope, mode=mode, server=server)
    assert result.error is None, result.error
    return {
        name: "none" if one.logged_as is None else one.logged_as.value
        for name, one in result.binlogs.items()
    }


def _refused(*statements: str, scope: str = ORDERS, mode: str = "ROW", server: str) -> Refusal:
    error = _last(*statements, scope=scope, mode=mode, server=server).error
    assert error is not None
    return error


@pytest.mark.rule("000:shadow-beside")
@pytest.mark.parametrize("mode", ["ROW", "MIXED", "STATEMENT"])
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize("triggers", [TRIGGERS, LATER])
def test_writes_beside_the_tools_triggers_are_rows(
    triggers: tuple[str, ...], server: str, mode: str
) -> None:
    made = (SHADOW, *triggers)
    for count in range(2, len(made) + 1):
        assert _logged(*made[:count], mode=mode, server=server) == NONE
    for write in WRITES:
        assert _logged(*made, write, mode=mode, server=server) == {"b": "row"}
    several = (*made, "BEGIN", WRITES[0], WRITES[1])
    assert _logged(*several, mode=mode, server=server) == {"b": "row"}
    assert _logged(*several, "COMMIT", mode=mode, server=server)
    copied = (
        f"INSERT LOW_PRIORITY IGNORE INTO {_NEW} (`id`, `v`) SELECT `id`, `v` FROM `shop`.`orders` "
        "FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) AND ((`id` <= '9')) LOCK IN SHARE MODE"
    )
    assert _logged(*made, copied, mode=mode, server=server) == NONE
    dropped = "DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_orders_ins`"
    assert _logged(*made, dropped, mode=mode, server=server) == NONE


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_rows_of_the_shadow_are_not_told(server: str) -> None:
    told = _last(SHADOW, *TRIGGERS, WRITES[1], server=server).binlogs["b"].events
    assert "map shop.orders" in short(told)
    assert "_orders_new" not in str([info for kind, info in told if kind != "Annotate_rows"])


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_text_stays_one_once_the_triggers_are_gone(server: str) -> None:
    dropped = "DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_orders_upd`"
    made = (SHADOW, UPDATED)
    assert _logged(*made, WRITES[1], mode="STATEMENT", server=server) == {"b": "row"}
    assert _logged(*made, WRITES[0], mode="STATEMENT", server=server) == {"b": "statement"}
    assert _logged(*made, dropped, WRITES[1], mode="STATEMENT", server=server) == {"b": "statement"}


@pytest.mark.parametrize("mode", ["ROW", "MIXED"])
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_with_the_shadow_in_scope_all_is_logged(server: str, mode: str) -> None:
    scope = "LOG(shop.orders, shop._orders_new, shop._orders_old)"
    made = (SHADOW, *TRIGGERS)
    assert _logged(*made, scope=scope, mode=mode, server=server) == {"b": "statement"}
    assert _logged(*made, WRITES[1], scope=scope, mode=mode, server=server) == {"b": "row"}


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_shadow_alone_in_scope_is_refused(server: str) -> None:
    refused = _refused(SHADOW, INSERTED, WRITES[0], scope="LOG(shop._orders_new)", server=server)
    assert refused.symbol == "BINLANE_PARTIAL_WRITE"


@pytest.mark.rule("000:partial-write")
@pytest.mark.rule("000:table-scope-triggers")
@pytest.mark.parametrize("mode", ["ROW", "MIXED", "STATEMENT"])
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "trigger",
    [
        INSERTED.replace("pt_osc_shop_orders_ins", "copy_of_orders"),
        INSERTED.replace("pt_osc_shop_orders_ins", "pt_osc_shop_orders_upd"),
        INSERTED.replace("AFTER", "BEFORE"),
        INSERTED.replace("REPLACE", "INSERT IGNORE"),
        INSERTED.replace("_orders_new", "audit"),
        INSERTED.replace("NEW.`v`)", "LOWER(NEW.`v`))"),
        _trigger("ins", "INSERT", f"BEGIN {_FILL}; INSERT INTO shop.audit VALUES (1); END"),
        _trigger("ins", "INSERT", f"REPLACE INTO {_NEW} SELECT id, '' FROM shop.items"),
        _trigger("ins", "INSERT", f"REPLACE INTO {_NEW} VALUES (NEW.id, @v)"),
        _trigger("ins", "INSERT", f"BEGIN SET @a = 1; {_FILL}; END"),
    ],
)
def test_other_triggers_are_refused(trigger: str, server: str, mode: str) -> None:
    made = (SHADOW, trigger)
    refused = _refused(*made, mode=mode, server=server)
    assert refused.errno == 1
    # One that was there before the binlog was defined.
    write = WRITES[0]
    schema = f"{SCHEMA}{SHADOW}\nDELIMITER //\n{trigger}//\nDELIMITER ;\n"
    (last,) = check(
        write, binlogs=f"CREATE BINLOG b {ORDERS}, FORMAT='{mode}'", schema=schema, server=server
    )
    assert last.result.error is not None
    assert "[11314]" in last.result.error.message


@pytest.mark.rule("000:partial-write")
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_what_the_shadow_leads_to_is_refused(server: str) -> None:
    own = (
        f"CREATE TRIGGER own AFTER INSERT ON {_NEW} FOR EACH ROW INSERT INTO shop.audit VALUES (1)"
    )
    refused = _refused(SHADOW, INSERTED, own, WRITES[0], server=server)
    assert refused.symbol == "BINLANE_PARTIAL_WRITE"
    assert {why.what for why in refused.why} == {"shop.orders", "shop.audit"}
    both = f"UPDATE shop.orders o JOIN {_NEW} n USING (id) SET o.v = 1, n.v = 2"
    refused = _refused(SHADOW, *TRIGGERS, both, server=server)
    assert refused.symbol == "BINLANE_PARTIAL_WRITE"


@pytest.mark.rule("000:partial-transaction")
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_transaction_that_writes_the_shadow_itself_is_refused(server: str) -> None:
    itself = f"INSERT INTO {_NEW} VALUES (9, '')"
    refused = _refused(SHADOW, *TRIGGERS, "BEGIN", WRITES[0], itself, server=server)
    assert refused.symbol == "BINLANE_PARTIAL_TRANSACTION"


SWAPS: Final = (
    ("_orders_old", "_orders_new"),
    ("___orders_old", "__orders_new"),
    ("_orders_del", "_orders_gho"),
    ("_orders_20261129143501_del", "_orders_gho"),
)


def _swap(old: str, shadow: str) -> str:
    return f"RENAME TABLE shop.orders TO shop.{old}, shop.{shadow} TO shop.orders"


def _shadow(name: str) -> str:
    return SHADOW.replace("_orders_new", name)


@pytest.mark.rule("000:shadow-beside")
@pytest.mark.parametrize("mode", ["ROW", "MIXED", "STATEMENT"])
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(("old", "shadow"), SWAPS)
def test_the_tools_swap_passes(old: str, shadow: str, server: str, mode: str) -> None:
    done = (_shadow(shadow), _swap(old, shadow))
    assert _logged(*done, mode=mode, server=server) == {"b": "statement"}
    assert _logged(*done, scope="LOG(shop.items)", mode=mode, server=server) == NONE
    assert _logged(*done, f"DROP TABLE shop.{old}", mode=mode, server=server) == NONE
    assert _logged(*done, WRITES[0], mode="ROW", server=server) == {"b": "row"}


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_shadow_takes_the_place_of_a_table_that_was_dropped(server: str) -> None:
    done = (SHADOW, *TRIGGERS, "DROP TABLE IF EXISTS `shop`.`orders`")
    assert _logged(*done, server=server) == {"b": "statement"}
    rename = "RENAME TABLE `shop`.`_orders_new` TO `shop`.`orders`"
    assert _logged(*done, rename, server=server) == {"b": "statement"}


@pytest.mark.rule("000:partial-write")
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("statement", "scope"),
    [
        ("RENAME TABLE shop.orders TO shop._orders_old", ORDERS),
        ("RENAME TABLE shop._orders_new TO shop.b", "LOG(shop.b)"),
        ("RENAME TABLE shop.items TO i, " + _swap("_orders_old", "_orders_new")[13:], ORDERS),
        (_swap("_orders_old", "items"), ORDERS),
        (_swap("was", "_orders_new"), ORDERS),
        (_swap("_orders_del", "_orders_new"), ORDERS),
        (_swap("_orders_old", "_orders_new") + ", shop.items TO shop.i", ORDERS),
        (_swap("_orders_old", "_orders_new"), "LOG(shop.orders, shop._orders_new)"),
        (_swap("_orders_old", "_orders_new"), "LOG(shop.orders, shop._orders_old)"),
        (_swap("_orders_old", "_orders_new"), "LOG(shop._orders_new)"),
        (_swap("_orders_old", "_orders_new"), "LOG(shop), IGNORE(shop._orders_new)"),
        (_swap("_orders_old", "_orders_new").replace("TO shop._", "TO test._"), ORDERS),
    ],
)
def test_other_renames_are_refused(statement: str, scope: str, server: str) -> None:
    made = (SHADOW, "CREATE DATABASE test") if "test." in statement else (SHADOW,)
    assert _refused(*made, statement, scope=scope, server=server).symbol == "BINLANE_PARTIAL_WRITE"


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_swap_of_rows_that_no_log_has_is_refused(server: str) -> None:
    """A foreign key may have changed the shadow's rows unseen: they could not come in."""
    key = "FOREIGN KEY (id) REFERENCES shop.items (id) ON DELETE CASCADE"
    shadow = SHADOW.replace("AUTO_INCREMENT, ", "AUTO_INCREMENT, " + key + ", ")
    refused = _refused(shadow, _swap("_orders_old", "_orders_new"), server=server)
    assert refused.symbol == "BINLANE_PARTIAL_WRITE"
    # The tool is to end before it has changed anything.
    assert _refused(shadow, DELETED, server=server).symbol == "BINLANE_DEPENDENCY"
