"""Statements that come again in a session: what is told of them is what would be told of first ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from binlane.cli.main import main
from binlane.live.provision.private_server import PrivateServer
from binlane.log.kernels.load import is_compiled
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import TextPart
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import LoggingMode
from tests.judged_statements import (
    Heard,
    judging,
    logging_everything,
    run_judged,
    run_prepared,
)
from tests.servers import ServerFactory, connect, execute

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
_WRITES: Final = (
    "UPDATE p SET v = '{text}' WHERE id = {few}",
    "INSERT INTO t (v) VALUES ('{text}')",
    "SELECT v FROM p WHERE id = {few}",
    "UPDATE p SET v = 'ä{text}' WHERE id = {few}",
    "DELETE FROM beside.p WHERE id = {number}",
    "INSERT INTO p VALUES ({number}, '{text}')",
)
_SPECIAL: Final = (
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "INSERT INTO m (v) VALUES ({number})",
    "INSERT INTO p VALUES (1, 'there already')",
    "UPDATE p SET v = LEFT(UUID(), 0) WHERE id = {few}",
    "UPDATE p SET v = LAST_INSERT_ID() WHERE id = {few}",
    "INSERT INTO t (v) SELECT v FROM p WHERE id = {few}",
    "INSERT INTO t (v) VALUES ('{text}'), ('more')",
    "UPDATE p SET v = 'same' WHERE id = {few}",
    "SELECT v FROM p WHERE id = {few} FOR UPDATE",
    "SET @a = {few}",
    "SET character_set_client = latin1",
    "SET character_set_client = utf8mb4",
    "ROLLBACK",
    "COMMIT",
)
_OF_ONE: Final = (
    "UPDATE p SET v = '{text}' WHERE id = {few}",
    "UPDATE t SET n = NULL, v = '{text}' WHERE id = {few}",
    "INSERT INTO t (v) VALUES ('{text}')",
    "INSERT INTO p VALUES ({number}, '{text}')",
    "DELETE FROM p WHERE id = {number} - 2",
)
_OF_OTHER: Final = (
    "UPDATE beside.p SET v = '{text}' WHERE id = {few}",
    "INSERT INTO beside.p VALUES ({number}, 'ä{text}')",
)
_ALONE: Final = (
    "INSERT INTO t (v) VALUES ('{text}')",
    "INSERT INTO t (v, n) VALUES ('{text}', {number})",
    "INSERT INTO t (id, v) VALUES ({number}0, '{text}')",
    "INSERT INTO p VALUES ({number}, '{text}')",
    "INSERT INTO p VALUES ({number}, '{long}')",
    "INSERT INTO p VALUES ({few}, '{text}') ON DUPLICATE KEY UPDATE v = 'again {text}'",
    "INSERT INTO t (v, n) VALUES ('{text}', {few}) ON DUPLICATE KEY UPDATE v = 'again {text}'",
    "INSERT INTO p VALUES ({few}, 'there already')",
    "INSERT IGNORE INTO p VALUES ({few}, '{text}')",
    "REPLACE INTO p VALUES ({few}, '{text}')",
    "REPLACE INTO t (v, n) VALUES ('{text}', {few})",
    "UPDATE p SET v = '{text}' WHERE id = {few}",
    "UPDATE p SET v = 'same' WHERE id = {few}",
    "UPDATE p SET v = '{text}' WHERE id = {number}0",
    "UPDATE beside.p SET v = '{text}' WHERE id = {few}",
    "DELETE FROM p WHERE id = {number} - 2",
    "DELETE FROM t WHERE n = {number}",
    "SELECT v FROM p WHERE id = {few}",
)
_BETWEEN: Final = (
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'",
    "SET SESSION auto_increment_increment = {few}",
    "SET insert_id = {number}00",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "INSERT INTO m (v) VALUES ({number})",
    "INSERT INTO t (v) VALUES ('{text}'), ('more')",
    "UPDATE p SET v = LAST_INSERT_ID() WHERE id = {few}",
    "SELECT LAST_INSERT_ID(), ROW_COUNT()",
    "SHOW WARNINGS",
    "BEGIN",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
)
_ENDS: Final = ("COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK")
_BY_OTHERS: Final = (
    "ALTER TABLE known.p COMMENT = '{number}'",
    "CREATE OR REPLACE VIEW known.w AS SELECT {number}",
)

_COMPOSED_LEAST: Final = 90
_PASSED_LEAST: Final = 20 if is_compiled(("passing",)) else 0
"""Transactions that pass as wholes."""
_SCOPED: Final = tuple(
    replace(logging_everything(mode), name=name, scope=scope, log_id=number)
    for number, (name, mode, scope) in enumerate(
        (
            ("all", LoggingMode.STATEMENT, Scope.everything()),
            ("mixed", LoggingMode.MIXED, Scope.everything()),
            ("one", LoggingMode.MIXED, Scope(log_databases=frozenset({"known"}))),
            ("other", LoggingMode.STATEMENT, Scope(log_databases=frozenset({"beside"}))),
            ("rows", LoggingMode.ROW, Scope.everything()),
        ),
        1,
    )
)

_Writing = Callable[[random.Random, int], Iterator[tuple[bool, str]]]


_Running = Callable[..., tuple[Heard, list[Any]]]


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


def _transactions(numbers: random.Random, count: int) -> Iterator[tuple[bool, str]]:
    """Transactions of the same few writes, seldom with something special among them."""
    yield False, "INSERT INTO p VALUES (99, 'first')"
    is_begun_by_itself = False
    number = 100
    for _ in range(count):
        special = numbers.random() < 0.3
        if numbers.random() < 0.1:
            is_begun_by_itself = not is_begun_by_itself
            yield False, f"SET autocommit = {int(not is_begun_by_itself)}"
        if not is_begun_by_itself:
            yield False, "BEGIN"
        for write in _WRITES[: numbers.randrange(len(_WRITES) + 1)]:
            number += 1
            values = {"text": f"{number}", "number": number, "few": numbers.randrange(1, 4)}
            if special and numbers.random() < 0.3:
                yield False, numbers.choice(_SPECIAL).format(**values)
            yield False, write.format(**values)
        yield False, numbers.choice(_ENDS)


def _any_order(numbers: random.Random, count: int) -> Iterator[tuple[bool, str]]:
    """Transactions of few kinds of writes in any order, of one database or of two."""
    yield False, "INSERT INTO p VALUES (99, 'first')"
    number = 100
    for _ in range(count):
        yield False, "BEGIN"
        writes = numbers.choice((_OF_ONE, _OF_ONE, _OF_OTHER, _OF_ONE + _OF_OTHER))
        for _ in range(numbers.randrange(1, 6)):
            number += 1
            values = {"text": f"{number}", "number": number, "few": numbers.randrange(1, 4)}
            yield False, numbers.choice(writes).format(**values)
        yield False, numbers.choice(_ENDS)


def _alone(numbers: random.Random, count: int) -> Iterator[tuple[bool, str]]:
    """Writes that mostly have autocommit, of few kinds for a while."""
    yield False, "INSERT INTO p VALUES (99, 'first')"
    often: tuple[str, ...] = _ALONE
    for number in range(100, 100 + count):
        if number % 50 == 0:
            often = tuple(numbers.sample(_ALONE, 5))
            yield False, "COMMIT"
            yield False, "SET autocommit = 1"
        values = {"text": f"{number}", "number": number, "few": numbers.randrange(1, 4)}
        values["long"] = "x" * numbers.choice((5, 45))
        if numbers.random() < 0.03:
            yield False, numbers.choice(_BETWEEN).format(**values)
        yield False, numbers.choice(often).format(**values)


def _told_twice(
    source: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    statements: list[tuple[bool, str]],
    definitions: tuple[Definition, ...] | None = None,
    *,
    run: _Running = run_judged,
    by_messages: bool = False,
) -> tuple[Heard, Heard]:
    """What is told of statements, as known ones and as first ones, once their answers were compared."""
    execute(source, *_TABLES)
    known, answers = run(source, "known", statements, definitions, by_messages=by_messages)
    with monkeypatch.context() as patch:
        patch.setattr(PlanningSession, "plain", lambda *_: None)
        execute(source, *_TABLES)
        first, answers_of_first = run(source, "known", statements, definitions)
    assert not first.encoded
    for one, other in zip(answers, answers_of_first, strict=True):
        assert one == other
    return known, first


@pytest.mark.parametrize("by_messages", [False, True], ids=["at once", "by messages"])
@pytest.mark.parametrize(
    ("write", "run"),
    [(_statements, run_judged), (_transactions, run_judged), (_transactions, run_prepared)],
)
def test_what_is_told_of_statements_that_come_again(
    source: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    write: _Writing,
    run: _Running,
    *,
    by_messages: bool,
) -> None:
    statements = list(write(random.Random(1), 300))
    known, first = _told_twice(source, monkeypatch, statements, run=run, by_messages=by_messages)
    assert known.encoded > _ENCODED_LEAST
    if by_messages:
        assert known.by_kernel >= (0 if write is _statements else _PASSED_LEAST)
    for told, expected in zip(known.told, first.told, strict=True):
        assert told == expected


@pytest.mark.parametrize("by_messages", [False, True], ids=["at once", "by messages"])
@pytest.mark.parametrize("run", [run_judged, run_prepared])
@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))]
)
def test_transactions_whose_writes_come_in_any_order(
    source: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    run: _Running,
    *,
    by_messages: bool,
) -> None:
    statements = list(_any_order(random.Random(seed), 250))
    known, first = _told_twice(
        source, monkeypatch, statements, _SCOPED, run=run, by_messages=by_messages
    )
    if by_messages:
        assert known.by_kernel >= _PASSED_LEAST
    assert known.encoded > _COMPOSED_LEAST
    for told, expected in zip(known.told, first.told, strict=True):
        assert told == expected


@pytest.mark.parametrize("run", [run_judged, run_prepared])
@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))]
)
def test_writes_with_autocommit(
    source: PrivateServer, monkeypatch: pytest.MonkeyPatch, seed: int, run: _Running
) -> None:
    statements = list(_alone(random.Random(seed), 400))
    known, first = _told_twice(source, monkeypatch, statements, _SCOPED, run=run, by_messages=True)
    assert known.by_kernel >= _PASSED_LEAST
    for told, expected in zip(known.told, first.told, strict=True):
        assert told == expected


def test_a_write_is_looked_at_anew_once_its_table_is_another_one(source: PrivateServer) -> None:
    execute(source, *_TABLES)
    insert = (False, "INSERT INTO t (v) VALUES ('a')")
    altered = (True, "ALTER TABLE known.t ADD COLUMN w INT")
    heard, _ = run_judged(source, "known", [insert] * 5 + [altered] + [insert] * 5)
    intended = [told for told in heard.told if told[0] == "intend"]
    assert len(intended) == 10
    assert heard.encoded >= 10


@pytest.mark.parametrize("by_messages", [False, True], ids=["alone", "by messages"])
@pytest.mark.parametrize("quote", ["'", '"'], ids=["passes", "is read"])
def test_known_writes_behind_a_change_that_is_heard_of_before_their_end(
    source: PrivateServer, quote: str, *, by_messages: bool
) -> None:
    """A statement may run behind DDL beside the port that binlane has not heard of yet."""
    execute(source, *_TABLES)
    trigger = "CREATE TRIGGER late BEFORE INSERT ON p FOR EACH ROW SET NEW.v = UUID()"
    mixed = logging_everything(LoggingMode.MIXED)
    with (
        judging(source, (mixed,), by_messages=by_messages) as (port, parts),
        connect(source) as other,
        port.connect(database="known", charset="utf8mb4") as client,
        client.cursor() as cursor,
        other.cursor() as beside,
    ):

        async def hear() -> None:
            facts = read(trigger, database="known", dialect=parts.catalog.dialect)
            parts.catalog.changed(facts, "known")

        beside.execute("USE known")
        for number in range(100, 110):
            cursor.execute("BEGIN")
            if number == 109:
                beside.execute(trigger)
            cursor.execute(f"INSERT INTO p VALUES ({number}, {quote}a{quote})")
            if number == 109:
                port.run(hear())
            cursor.execute("COMMIT")
        cursor.execute("SELECT 1")
    heard = cast("Any", parts.attributions).heard.told
    *_, (*_, before), (*_, last) = (told for told in heard if told[0] == "done")
    ((_, binlogs, *_),) = before
    assert [type(part) for part in binlogs["all"]] == [TextPart]
    assert last == []


def test_writes_that_were_judged_by_the_model_behind_a_change_that_is_heard_of_before_their_end(
    source: PrivateServer,
) -> None:
    execute(source, *_TABLES)
    trigger = "CREATE TRIGGER late BEFORE INSERT ON p FOR EACH ROW SET NEW.v = UUID()"
    mixed = logging_everything(LoggingMode.MIXED)
    with (
        judging(source, (mixed,)) as (port, parts),
        connect(source) as other,
        port.connect(database="known", charset="utf8mb4") as client,
        client.cursor() as cursor,
        other.cursor() as beside,
    ):

        async def hear() -> None:
            facts = read(trigger, database="known", dialect=parts.catalog.dialect)
            parts.catalog.changed(facts, "known")

        cursor.execute("INSERT INTO p VALUES (100, 'a')")
        cursor.execute("BEGIN")
        beside.execute("USE known")
        beside.execute(trigger)
        cursor.execute("INSERT INTO p VALUES (101, 'for'), (102, 'the first time')")
        port.run(hear())
        cursor.execute("COMMIT")
        cursor.execute("SELECT 1")
    heard = cast("Any", parts.attributions).heard.told
    *_, (*_, last) = (told for told in heard if told[0] == "done")
    assert last == []
