"""Notes among the source's own warnings."""

from __future__ import annotations

import pytest

from binlane.live.gateway.judge import StatementReply
from binlane.live.port.warnings import COUNT, LIST, Warnings
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.types import Flavor
from binlane.statements.session.report import Note
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

NOTES = tuple(
    Note(errno=1592, reason=f"ER_BINLOG_UNSAFE_{name}", message=f"unsafe: {name}")
    for name in ("LIMIT", "SYSTEM_FUNCTION")
)
UNTOLD = Note(errno=1592, reason="ER_BINLOG_UNSAFE_LIMIT", message="unsafe", is_told=False)
OWN = (("Warning", "1264", "out of range"), ("Warning", "1265", "truncated"))
BEHIND = ("Warning", "1196", "not rolled back")


def facts_of(text: str) -> StatementFacts:
    return read(text, database="d", dialect=Dialect(flavor="mariadb"))


def _after(*statements: tuple[str, StatementReply], flavor: Flavor = Flavor.MARIADB) -> Warnings:
    """What is known of warnings behind an INSERT with notes and some statements."""
    warnings = Warnings(flavor)
    warnings.follow(
        facts_of("INSERT INTO t SELECT UUID() LIMIT 1"), [StatementReply(warnings=2)], NOTES
    )
    for text, reply in statements:
        warnings.follow(facts_of(text), [reply], ())
    return warnings


def _result(rows: tuple[tuple[str, ...], ...], *names: str) -> ResultSet:
    cells = tuple(tuple(cell.encode() for cell in row) for row in rows)
    heads = tuple(ColumnDefinition(name=name) for name in names)
    return ResultSet(names, cells, ServerStatus.AUTOCOMMIT, heads)


def _shown(
    warnings: Warnings,
    text: str,
    rows: tuple[tuple[str, ...], ...],
    *,
    count: int | None = None,
    errors_max: int | None = None,
) -> list[str]:
    facts = facts_of(text)
    assert warnings.questions(facts) == (LIST, COUNT)
    listed = _result(rows, "Level", "Code", "Message")
    counted = _result(((str(len(rows) if count is None else count),),), "@@session.warning_count")
    told = warnings.answer(facts, [listed, counted], errors_max)
    found: list[str] = []
    for row in told.rows:
        assert isinstance(row[2], bytes)
        found.append(row[2].decode())
    return found


def test_notes_stand_behind_the_servers_warnings() -> None:
    notes = ["unsafe: LIMIT", "unsafe: SYSTEM_FUNCTION"]
    assert _shown(_after(), "SHOW WARNINGS", OWN) == ["out of range", "truncated", *notes]
    assert _shown(_after(), "SHOW WARNINGS", ()) == notes
    assert _shown(_after(), "SHOW WARNINGS", (*OWN, BEHIND)) == [
        *("out of range", "truncated"),
        *notes,
        "not rolled back",
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SHOW WARNINGS LIMIT 1", ["out of range"]),
        ("SHOW WARNINGS LIMIT 1, 2", ["truncated", "unsafe: LIMIT"]),
        ("show warnings limit 1 offset 3", ["unsafe: SYSTEM_FUNCTION"]),
        ("SHOW WARNINGS LIMIT 0", []),
    ],
)
def test_a_part_of_them(text: str, wanted: list[str]) -> None:
    assert _shown(_after(), text, OWN) == wanted


def test_no_more_than_max_error_count() -> None:
    assert _shown(_after(), "SHOW WARNINGS", OWN, count=5) == ["out of range", "truncated"]
    three = ["out of range", "truncated", "unsafe: LIMIT"]
    assert _shown(_after(), "SHOW WARNINGS", OWN, errors_max=3) == three


def test_they_are_counted() -> None:
    facts = facts_of("SHOW COUNT(*) WARNINGS")
    warnings = _after()
    assert warnings.questions(facts) == (COUNT,)
    counted = _result((("3",),), "@@session.warning_count")
    assert warnings.answer(facts, [counted]).rows == [[b"5"]]
    assert warnings.questions(facts_of("SHOW COUNT(*) ERRORS")) == ()
    assert warnings.questions(facts_of("SHOW ERRORS")) == ()


@pytest.mark.parametrize(
    ("text", "reply", "on_mariadb", "on_mysql"),
    [
        ("SHOW WARNINGS", StatementReply(is_result_set=True), 2, 2),
        ("SHOW COUNT(*) WARNINGS", StatementReply(is_result_set=True), 2, 2),
        ("GET DIAGNOSTICS @n = NUMBER", StatementReply(), 2, 2),
        ("SET @a = 1", StatementReply(), 2, 0),
        ("SELECT 1", StatementReply(is_result_set=True), 2, 0),
        ("COMMIT", StatementReply(), 2, 0),
        ("USE d", StatementReply(), 2, 0),
        ("ROLLBACK TO s", StatementReply(), 2, 0),
        ("CREATE OR REPLACE USER u", StatementReply(), 2, 0),
        ("CREATE PROCEDURE p() SELECT 1", StatementReply(), 2, 0),
        ("DROP DATABASE IF EXISTS e", StatementReply(warnings=1), 0, 0),
        ("SELECT 1/0", StatementReply(is_result_set=True, warnings=1), 0, 0),
        ("SELECT * FROM t", StatementReply(is_result_set=True), 0, 0),
        ("SET bogus = 1", StatementReply(errno=1193), 0, 0),
        ("INSERT INTO t VALUES (1)", StatementReply(), 0, 0),
        ("SHOW TABLES", StatementReply(is_result_set=True), 0, 0),
        ("DROP TABLE IF EXISTS t", StatementReply(), 0, 0),
    ],
)
def test_how_long_they_are_there(
    text: str, reply: StatementReply, on_mariadb: int, on_mysql: int
) -> None:
    assert _after((text, reply)).count == on_mariadb
    assert _after((text, reply), flavor=Flavor.MYSQL).count == on_mysql


def test_notes_that_nobody_is_told_of() -> None:
    warnings = Warnings(Flavor.MARIADB)
    warnings.follow(facts_of("DELETE FROM t LIMIT 1"), [StatementReply()], (UNTOLD,))
    assert warnings.count == 0
    assert warnings.questions(facts_of("SHOW WARNINGS")) == ()


def test_other_commands_take_them_away() -> None:
    warnings = _after()
    warnings.forget()
    assert warnings.count == 0


@pytest.mark.parametrize("errno", ["1105", "1870"])
def test_what_the_source_says_of_its_rows_alone_is_left_out(errno: str) -> None:
    of_rows = ("Warning", errno, "Row events are not logged for DELETE statements that modify …")
    text, reply = "DELETE FROM b LIMIT 1", StatementReply(warnings=2)
    warnings = Warnings(Flavor.MARIADB)
    assert warnings.follow(facts_of(text), [reply], NOTES[:1], hides=True) == 0
    assert _shown(warnings, "SHOW WARNINGS", (OWN[0], of_rows)) == ["out of range", "unsafe: LIMIT"]
    counted = _result((("2",),), "@@session.warning_count")
    assert warnings.answer(facts_of("SHOW COUNT(*) WARNINGS"), [counted]).rows == [[b"2"]]
    assert warnings.follow(facts_of(text), [StatementReply(warnings=1)], (), hides=True) == -1
    assert (warnings.count, warnings.are_changed) == (-1, True)
    assert _shown(warnings, "SHOW WARNINGS", (of_rows,)) == []
    warnings.follow(facts_of("INSERT INTO t VALUES (1)"), [StatementReply()], ())
    assert not warnings.are_changed
