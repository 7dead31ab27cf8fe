"""Statements that come again in a session: what is told of them is what would be told of first ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest

from binlane.cli.main import main
from binlane.live.provision.private_server import PrivateServer
from binlane.statements.session.planning_session import PlanningSession
from tests.judged_statements import run_judged
from tests.servers import ServerFactory, execute

pytestmark = pytest.mark.system

_TABLES: Final = (
    "DROP DATABASE IF EXISTS known",
    "DROP DATABASE IF EXISTS beside",
    "CREATE DATABASE known",
    "CREATE DATABASE beside",
    "CREATE TABLE known.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40), n INT UNIQUE)",
    "CREATE TABLE known.p (id INT PRIMARY KEY, v VARCHAR(40))",
    "CREATE TABLE beside.p (id INT PRIMARY KEY, v VARCHAR(40))",
    "CREATE TABLE known.m (id INT PRIMARY KEY AUTO_INCREMENT, v INT) ENGINE=MyISAM",
    "INSERT INTO known.p VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO beside.p VALUES (1, 'a'), (2, 'b'), (3, 'c')",
)
_ENCODED_LEAST: Final = 20
_OFTEN: Final = (
    "INSERT INTO t (v) VALUES ('{text}')",
    "INSERT INTO t (v, n) VALUES ('{text}', {number})",
    "INSERT INTO p VALUES ({number}, '{text}')",
    "UPDATE p SET v = '{text}' WHERE id = {few}",
    "UPDATE p SET v = 'same' WHERE id = {few}",
    "UPDATE beside.p SET v = '{text}' WHERE id = {few}",
    "UPDATE t SET v = '{text}' WHERE id = {few}",
    "DELETE FROM t WHERE id = {number}",
    "SELECT v FROM p WHERE id = {few}",
    "SELECT v FROM nowhere WHERE id = {few}",
)
_SELDOM: Final = (
    "INSERT INTO m (v) VALUES ({number})",
    "INSERT IGNORE INTO t (v, n) VALUES ('{text}', {few})",
    "INSERT INTO t (v, n) VALUES ('{text}', {few}) ON DUPLICATE KEY UPDATE v = 'again'",
    "INSERT INTO t (v) VALUES ('{text}'), ('more')",
    "INSERT INTO t (v) SELECT v FROM p WHERE id = {few}",
    "UPDATE p SET v = LEFT(UUID(), 0) WHERE id = {few}",
    "SHOW WARNINGS",
    "UPDATE p SET v = LAST_INSERT_ID() WHERE id = {few}",
    "USE beside",
    "USE known",
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    "SET SESSION auto_increment_increment = {few}",
    "SET character_set_client = latin1",
    "SET character_set_client = utf8mb4",
    "ALTER TABLE known.t COMMENT = '{number}'",
    "SET SESSION binlog_format = MIXED",
    "SET SESSION binlog_format = STATEMENT",
)
_FOR_A_WHILE: Final = (
    ("SET timestamp = 1700000000", "SET timestamp = DEFAULT"),
    ("SET autocommit = 0", "SET autocommit = 1"),
    ("BEGIN", "COMMIT"),
    ("BEGIN", "ROLLBACK"),
    ("SET sql_log_bin = 0", "SET sql_log_bin = 1"),
    ("CREATE TEMPORARY TABLE temporary (a INT)", "DROP TEMPORARY TABLE temporary"),
)
_BY_OTHERS: Final = (
    "ALTER TABLE known.p COMMENT = '{number}'",
    "CREATE OR REPLACE VIEW known.w AS SELECT {number}",
)


@pytest.fixture(params=["mariadb", "mysql"])
def source(servers: ServerFactory, request: pytest.FixtureRequest) -> PrivateServer:
    start = servers.start if request.param == "mariadb" else servers.start_mysql
    server = start("source")
    assert main(["setup", "--quiet", server.url]) == 0
    return server


def _statements(numbers: random.Random, count: int) -> Iterator[tuple[bool, str]]:
    """Statements, and whether they run beside the port."""
    # A session is followed from outside of transactions alone.
    yield False, "INSERT INTO p VALUES (99, 'first')"
    end = ""
    for number in range(100, 100 + count):
        values = {
            "text": numbers.choice(("plain", "größer", "Ω", "it''s", "x" * 30, "")) + str(number),
            "number": number,
            "few": numbers.randrange(1, 4),
        }
        dice = numbers.random()
        if end and dice < 0.3:
            yield False, end
            end = ""
        elif not end and dice < 0.03:
            begin, end = numbers.choice(_FOR_A_WHILE)
            yield False, begin
        elif not end and dice < 0.05:
            yield True, numbers.choice(_BY_OTHERS).format(**values)
        elif dice < 0.12:
            yield False, numbers.choice(_SELDOM).format(**values)
        else:
            yield False, numbers.choice(_OFTEN).format(**values)


def test_what_is_told_of_statements_that_come_again(
    source: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = list(_statements(random.Random(1), 300))
    execute(source, *_TABLES)
    known, answers = run_judged(source, "known", statements)
    with monkeypatch.context() as patch:
        patch.setattr(PlanningSession, "unchanging", lambda *_: None)
        execute(source, *_TABLES)
        first, answers_of_first = run_judged(source, "known", statements)
    assert not first.encoded
    assert known.encoded > _ENCODED_LEAST
    for one, other in zip(answers, answers_of_first, strict=True):
        assert one == other
    for told, expected in zip(known.told, first.told, strict=True):
        assert told == expected

    # Once its table is another one, a write has to be looked at anew.
    insert = (False, "INSERT INTO t (v) VALUES ('a')")
    altered = (True, "ALTER TABLE known.t ADD COLUMN w INT")
    heard, _ = run_judged(source, "known", [insert] * 5 + [altered] + [insert] * 5)
    intended = [told for told in heard.told if isinstance(told, tuple) and told[0] == "intend"]
    assert len(intended) == 10
    assert heard.encoded >= 10
