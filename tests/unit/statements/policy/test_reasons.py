"""Texts of the unsafe reasons, as the servers' message files have them."""

from __future__ import annotations

import pytest

from binlane.statements.policy import reasons
from binlane.statements.policy.reasons import Reason
from binlane.statements.policy.server import Server

MARIADB = Server.parse("mariadb")
MYSQL = Server.parse("mysql")


def test_order_is_that_of_the_bits() -> None:
    assert [reason.position for reason in Reason] == list(range(len(Reason)))
    assert Reason.LIMIT.position < Reason.SYSTEM_FUNCTION.position < Reason.INSERT_TWO_KEYS.position


@pytest.mark.parametrize("server", [MARIADB, MYSQL], ids=lambda server: server.flavor)
@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_its_texts(reason: Reason, server: Server) -> None:
    text = reasons.text(reason, server)
    assert "{" not in text
    assert reasons.symbol(reason).startswith("ER_")
    assert reasons.note(reason, server).endswith(text)
    assert ("slave" in text) <= server.is_mariadb
    if server.is_mariadb:
        assert not text.endswith(".")
    else:
        assert text.endswith(".") == (reason is not Reason.INSERT_TWO_KEYS)


def test_a_note_as_the_servers_give_it() -> None:
    assert reasons.note(Reason.SYSTEM_FUNCTION, MARIADB) == (
        "Unsafe statement written to the binary log using statement format since "
        "BINLOG_FORMAT = STATEMENT. Statement is unsafe because it uses a system function that "
        "may return a different value on the slave"
    )
    assert reasons.note(Reason.INSERT_IGNORE_SELECT, MYSQL) == (
        "Unsafe statement written to the binary log using statement format since "
        "BINLOG_FORMAT = STATEMENT. INSERT IGNORE... SELECT is unsafe because the order in which "
        "rows are retrieved by the SELECT determines which (if any) rows are ignored. This order "
        "cannot be predicted and may differ on source and the replica."
    )


def test_old_mysql_speaks_of_slaves() -> None:
    old = Server.parse("mysql:5.7.44")
    assert reasons.text(Reason.UDF, old) == (
        "Statement is unsafe because it uses a UDF which may not return the same value on the "
        "slave."
    )


def test_what_the_servers_name_differently() -> None:
    assert reasons.text(Reason.SKIP_LOCKED, MARIADB) == "SKIP LOCKED makes this statement unsafe"
    assert reasons.symbol(Reason.AUTOINC_LOCK_MODE) == "ER_BINLOG_UNSAFE_SYSTEM_VARIABLE"
    assert reasons.symbol(Reason.LIMIT) == "ER_BINLOG_UNSAFE_LIMIT"
