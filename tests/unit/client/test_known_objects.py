"""What is known of a server's objects: what is asked for, and what DDL makes unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from binlane.client.known_objects import KnownObjects
from binlane.client.needed_objects import BASE, Question, Topic
from binlane.client.questions import (
    Answer,
    NotUnderstoodError,
    Rows,
    asking,
)
from binlane.errors import StatementError
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.object_store import ObjectStore
from binlane.statements.sql.reading import read

_NO_SUCH_TABLE: Final = 1146
TABLES: Final = {
    "SHOW CREATE TABLE `d`.`t`": "CREATE TABLE `t` (`a` int PRIMARY KEY) ENGINE=InnoDB",
    "SHOW CREATE TABLE `d`.`child`": "CREATE TABLE `child` (`a` int, CONSTRAINT `k` FOREIGN KEY"
    " (`a`) REFERENCES `t` (`a`) ON DELETE CASCADE) ENGINE=InnoDB",
    "SHOW CREATE TABLE `d`.`noted`": "CREATE TABLE `noted` (`a` int) ENGINE=MyISAM",
    "SHOW CREATE TABLE `d`.`alone`": "CREATE TABLE `alone` (`a` int) ENGINE=InnoDB",
    "SHOW CREATE TABLE `d`.`v`": "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY"
    " DEFINER VIEW `v` AS select `d`.`t`.`a` AS `a` from `d`.`t`",
}
TRIGGER: Final = (
    "CREATE DEFINER=`root`@`localhost` TRIGGER g AFTER DELETE ON child"
    " FOR EACH ROW INSERT INTO noted VALUES (f())"
)
FUNCTION: Final = "CREATE DEFINER=`root`@`localhost` FUNCTION `f`() RETURNS int(11) RETURN 1"


class Server:
    """Answers as a MariaDB does.

    Attributes:
        asked: The statements, in order.
        texts: Of SHOW CREATE TABLE, by the statement.
        lower: lower_case_table_names.
    """

    def __init__(self, texts: Mapping[str, str] = TABLES, lower: str = "0") -> None:
        self.asked: list[str] = []
        self.texts = dict(texts)
        self.lower = lower

    def rows(self, statement: str) -> Rows:
        self.asked.append(statement)
        if statement.startswith("SHOW CREATE TABLE"):
            if statement not in self.texts:
                raise StatementError("no such table", errno=_NO_SUCH_TABLE)
            return [["", self.texts[statement]]]
        if statement.startswith("SHOW CREATE TRIGGER"):
            return [["g", "", TRIGGER, "utf8mb4", "utf8mb4_bin", "latin1_swedish_ci", ""]]
        if statement.startswith("SHOW CREATE FUNCTION"):
            return [["f", "", FUNCTION, "utf8mb4", "utf8mb4_bin", "latin1_swedish_ci"]]
        for word, rows in (
            ("TRIGGERS", [["d", "child", "g"]]),
            ("ROUTINES", [["d", "F", "FUNCTION"]]),
            ("INNODB_SYS_FOREIGN", [["d", "child", "d", "t"]]),
            ("SCHEMATA", [["d", "utf8mb4"]]),
            ("SHOW GLOBAL VARIABLES", [["lower_case_table_names", self.lower]]),
        ):
            if word in statement:
                return [list(row) for row in rows]
        return []


def answer(server: Server, known: KnownObjects, question: Question) -> Answer:
    steps = asking(question, known.asked)
    try:
        statement = next(steps)
        while True:
            try:
                rows = server.rows(statement)
            except StatementError as error:
                statement = steps.throw(error)
            else:
                statement = steps.send(rows)
    except StopIteration as stop:
        found: Answer = stop.value
        return found


def facts_of(known: KnownObjects, text: str) -> StatementFacts:
    return read(text, database="d", dialect=known.dialect)


def know(server: Server, known: KnownObjects, text: str) -> StatementFacts:
    """Ask until all is known that a statement uses."""
    for _ in range(20):
        facts = facts_of(known, text)
        questions = list(known.lacking(facts, "d"))
        if not questions:
            assert known.covers(facts, "d")
            return facts
        for question in dict.fromkeys(questions):
            known.take(question, answer(server, known, question))
    raise AssertionError("there is no end")


@pytest.fixture
def known() -> KnownObjects:
    return KnownObjects(Flavor.MARIADB, (10, 11, 6))


def names(known: KnownObjects) -> set[str]:
    return {name.table for name in (*known.store.tables, *known.store.views)}


def test_first_is_asked_what_all_else_hangs_on(known: KnownObjects) -> None:
    assert tuple(known.lacking(facts_of(known, "SELECT 1"), "d")) == BASE
    server = Server()
    know(server, known, "SELECT 1")
    assert not any("SHOW CREATE" in statement for statement in server.asked)


def test_all_that_belongs_to_a_table_is_asked_once(known: KnownObjects) -> None:
    server = Server()
    know(server, known, "DELETE FROM v")
    assert names(known) == {"v", "t", "child", "noted"}
    assert TableName("d", "child") in known.store.triggers
    ((is_function, name),) = known.store.routines
    assert (is_function, name.table) == (True, "f")
    assert known.store.routines[is_function, name].charset == "latin1"
    count = len(server.asked)
    know(server, known, "DELETE FROM t")
    know(server, known, "SELECT COUNT(*), NOW(), LENGTH('x') FROM child")
    assert len(server.asked) == count
    assert len(set(server.asked)) == count


@pytest.mark.parametrize(
    ("ddl", "unknown"),
    [
        ("ALTER TABLE noted ADD b INT", {"noted"}),
        ("ALTER TABLE t ADD b INT", {"t", "child"}),
        ("RENAME TABLE t TO u", {"t", "child"}),
        ("RENAME TABLE nothing TO noted", {"noted"}),
        ("RENAME TABLE nothing TO other, other TO noted", {"noted"}),
        ("ALTER TABLE nothing RENAME TO noted", {"noted"}),
        ("DROP TABLE noted, nothing", {"noted"}),
        ("CREATE OR REPLACE TABLE noted (a INT)", {"noted"}),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", {"v"}),
        ("ALTER TABLE alone CONVERT PARTITION p0 TO TABLE noted", {"noted"}),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE noted", {"t", "child", "noted"}),
        ("ALTER TABLE nothing CONVERT PARTITION p0 TO TABLE noted", {"noted"}),
        ("DROP DATABASE d", {"t", "child", "noted", "v"}),
        ("DROP DATABASE other", set()),
        ("CREATE TABLE IF NOT EXISTS t (z INT)", set()),
        ("DROP TABLE IF EXISTS nothing", set()),
        ("CREATE TRIGGER h BEFORE INSERT ON t FOR EACH ROW SET @a = 1", set()),
        ("CREATE TABLE what is this", {"t", "child", "noted", "v"}),
        ("BEGIN NOT ATOMIC DROP TABLE noted; END", {"noted"}),
    ],
)
def test_ddl_makes_unknown_what_it_may_have_changed(
    known: KnownObjects, ddl: str, unknown: set[str]
) -> None:
    server = Server()
    facts = know(server, known, "DELETE FROM v")
    know(server, known, "SELECT * FROM nothing")
    before, version, epoch = known.store, known.version, known.epoch
    had = dict(before.tables)
    known.changed(facts_of(known, ddl), "d")
    assert names(known) == {"t", "child", "noted", "v"} - unknown
    assert before.tables == had, "who shares the objects keeps them"
    assert known.epoch > epoch
    is_forgotten = bool(unknown) or "TRIGGER" in ddl or "DATABASE" in ddl
    assert (known.version is not version) is is_forgotten
    if unknown:
        assert not known.covers(facts, "d")
    know(server, known, "DELETE FROM v")
    assert names(known) == {"t", "child", "noted", "v"}


def test_a_table_that_comes_out_of_a_partition_is_looked_for(known: KnownObjects) -> None:
    server = Server()
    know(server, known, "SELECT * FROM t")
    facts = know(server, known, "SELECT * FROM apart")
    known.changed(facts_of(known, "ALTER TABLE t CONVERT PARTITION p0 TO TABLE apart"), "d")
    assert not known.covers(facts, "d")


def test_dropped_triggers_and_routines_are_asked_for_anew(known: KnownObjects) -> None:
    server = Server()
    facts = know(server, known, "DELETE FROM t")
    for ddl in ("DROP TRIGGER g", "DROP FUNCTION f", "CREATE PROCEDURE f() SELECT 1"):
        known.changed(facts_of(known, ddl), "d")
        assert not known.covers(facts, "d"), ddl
        know(server, known, "DELETE FROM t")


def test_a_table_that_is_not_understood_is_unknown_until_it_is_changed(known: KnownObjects) -> None:
    server = Server({**TABLES, "SHOW CREATE TABLE `d`.`alone`": "CREATE TABLE `alone` (?)"})
    know(server, known, "SELECT 1")
    question = Question(Topic.TABLE, TableName("d", "alone"))
    with pytest.raises(NotUnderstoodError) as raised:
        answer(server, known, question)
    known.fail(question, raised.value)
    assert known.covers(facts_of(known, "SELECT * FROM alone"), "d")
    assert known.store.unknown == {question.name}
    server.texts |= TABLES
    known.changed(facts_of(known, "ALTER TABLE alone ADD b INT"), "d")
    assert not known.store.unknown
    know(server, known, "SELECT * FROM alone")


def test_what_else_is_not_understood_is_said_each_time(known: KnownObjects) -> None:
    know(Server(), known, "SELECT 1")
    known.fail(Question(Topic.EVENT, TableName("d", "e")), NotUnderstoodError("strange"))
    for _ in range(2):
        with pytest.raises(NotUnderstoodError):
            known.covers(facts_of(known, "DROP EVENT e"), "d")


def test_names_without_case_are_one(known: KnownObjects) -> None:
    server = Server(lower="1")
    know(server, known, "SELECT 1")
    assert known.dialect.lower_case_names
    facts = know(server, known, "DELETE FROM D.T")
    assert names(known) == {"t", "child", "noted"}
    known.changed(facts_of(known, "ALTER TABLE D.NOTED ADD b INT"), "D")
    assert not known.covers(facts, "d")


def test_what_was_read_for_somebody_can_be_given_to_him(known: KnownObjects) -> None:
    server = Server()
    know(server, known, "SELECT * FROM alone")
    store = ObjectStore()
    known.give(store, [Question(Topic.TABLE, TableName("d", "alone"))])
    assert set(store.tables) == {TableName("d", "alone")}
