"""XA transactions that one session prepared and another one ends, as both servers log them."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.statements.check.checker import Checker
from binlane.statements.policy.server import Server
from binlane.statements.session.report import StatementResult

SCHEMA: Final = """
SET GLOBAL gtid_mode = OFF; SET GLOBAL enforce_gtid_consistency = OFF;
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE n (a INT PRIMARY KEY) ENGINE=MyISAM;
"""
PREPARED: Final = """
XA START 'x'; INSERT INTO t VALUES (1); XA END 'x'; XA PREPARE 'x';
-- @disconnect
"""
BOTH: Final = ("mariadb", "mysql")


def results(script: str, server: str) -> list[StatementResult]:
    checker = Checker(Server.parse(server), SCHEMA, None)
    return [checked.result for checked in checker.check(script)]


def error(result: StatementResult) -> int | None:
    return result.error.errno if result.error else None


def texts(result: StatementResult) -> list[str]:
    return [info for _, info in result.binlogs["binlog"].events]


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_the_next_session_ends_it_once(server: str, end: str) -> None:
    *_, first, second = results(f"{PREPARED}XA {end} 'x';\nXA {end} 'x';", server)
    logged = f"XA {end} X'78',X'',1"
    assert texts(first) == (["GTID #", logged] if server == "mariadb" else [logged])
    assert (error(first), error(second)) == (None, 1397)


@pytest.mark.parametrize("server", BOTH)
def test_its_id_stays_taken(server: str) -> None:
    assert error(results(f"{PREPARED}XA START 'x';", server)[-1]) == 1440


@pytest.mark.parametrize("server, errno", [("mariadb", 1400), ("mysql", 1399)])
@pytest.mark.parametrize("before", ["XA START 'y';", "XA START 'y'; XA END 'y';", "BEGIN;"])
def test_not_within_another_transaction(server: str, errno: int, before: str) -> None:
    script = f"{PREPARED}{before}\nXA COMMIT 'x';"
    assert error(results(script, server)[-1]) == errno


def test_mariadb_logs_the_end_of_what_it_did_not_log() -> None:
    script = "SET sql_log_bin = 0;" + PREPARED + "XA COMMIT 'x';"
    assert texts(results(script, "mariadb")[-1]) == ["GTID #", "XA COMMIT X'78',X'',1"]
    assert texts(results(script, "mysql")[-1]) == []


def test_an_empty_one_is_gone_in_mariadb_only() -> None:
    script = "XA START 'x'; XA END 'x'; XA PREPARE 'x';\n-- @disconnect\nXA COMMIT 'x';"
    assert error(results(script, "mariadb")[-1]) == 1397
    assert error(results(script, "mysql")[-1]) is None


def test_mysql_does_not_log_one_phase_of_another_session() -> None:
    *_, first, second = results(f"{PREPARED}XA COMMIT 'x' ONE PHASE;\nXA COMMIT 'x';", "mysql")
    assert (error(first), texts(first), error(second)) == (None, [], 1397)
    assert error(results(f"{PREPARED}XA COMMIT 'x' ONE PHASE;", "mariadb")[-1]) == 1399


@pytest.mark.parametrize("server", BOTH)
def test_autocommit_cannot_end_it(server: str) -> None:
    script = "SET autocommit = 0; XA START 'x'; INSERT INTO t VALUES (1); SET autocommit = 1;"
    last = results(script, server)[-1]
    assert (error(last), texts(last)) == (1399, [])
