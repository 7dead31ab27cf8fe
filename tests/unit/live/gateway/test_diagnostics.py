"""What a session's own diagnostics give, statement by statement."""

from __future__ import annotations

import pytest

from binlane.errors import Diagnostic
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.diagnostics import OwnDiagnostics
from binlane.live.gateway.judge import StatementReply
from binlane.log.codec.types import Flavor

ERROR = Diagnostic("Error", 1, "it's wrong")
NOTE = Diagnostic("Note", 1105, "do ü")


def told(*rows: Diagnostic) -> OwnDiagnostics:
    own = OwnDiagnostics()
    own.tell(rows or (ERROR, NOTE))
    return own


def answer(statement: str, own: OwnDiagnostics | None = None) -> list[list[object]] | str | None:
    found = (own or told()).answer(statement, Flavor.MARIADB)
    return [list(row) for row in found.rows] if isinstance(found, RowsAnswer) else found


LISTED = [["Error", "1", "it's wrong"], ["Note", "1105", "do ü"]]


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("SHOW WARNINGS", LISTED),
        ("/* why */ show warnings ;", LISTED),
        ("SHOW ERRORS", LISTED[:1]),
        ("SHOW WARNINGS LIMIT 1", LISTED[:1]),
        ("SHOW WARNINGS LIMIT 1, 5", LISTED[1:]),
        ("SHOW WARNINGS LIMIT 5 OFFSET 1", LISTED[1:]),
        ("SHOW COUNT(*) WARNINGS", [["2"]]),
        ("SHOW COUNT(*) ERRORS", [["1"]]),
        ("SELECT @@warning_count", [["2"]]),
        ("select @@Session.error_count, @@local.warning_count;", [["1", "2"]]),
        ("GET DIAGNOSTICS @n = NUMBER", "SET @n = 2"),
        (
            "GET CURRENT DIAGNOSTICS CONDITION 2 @a = MYSQL_ERRNO, @b=MESSAGE_TEXT",
            f"SET @a = 1105, @b = _utf8mb4 0x{'do ü'.encode().hex()}",
        ),
        # The source says what it thinks of these.
        ("SHOW WARNINGS WHERE 1", None),
        ("SHOW WARNINGS LIMIT x", None),
        ("SHOW COUNT(*)", None),
        ("SHOW ERRORS; SELECT 1", None),
        ("SELECT @@warning_count + 1", None),
        ("SELECT 'warnings'", None),
        ("GET DIAGNOSTICS CONDITION 3 @a = MYSQL_ERRNO", None),
        ("GET DIAGNOSTICS @n = ROW_COUNT", None),
        ("GET DIAGNOSTICS n = NUMBER", None),
        ("GET DIAGNOSTICS", None),
        ("SHOW 'warnings", None),
        ("warnings", None),
    ],
)
def test_statements_about_them(statement: str, expected: object) -> None:
    assert answer(statement) == expected


def test_only_what_was_told_is_looked_at() -> None:
    own = OwnDiagnostics()
    assert not own.concern(b"SHOW WARNINGS")
    own.tell(())
    assert own.concern(b"SHOW WARNINGS")
    assert not own.concern(b"SHOW BINLOGS")
    assert not own.concern(b"SHOW WARNINGS" + b" " * 2000)
    assert answer("SHOW WARNINGS", own) == []


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    "statement, reply, stays",
    [
        ("SET @a = 1", StatementReply(), True),
        ("SELECT 1", StatementReply(is_result_set=True), True),
        ("SELECT 1 / 0", StatementReply(is_result_set=True, warnings=1), False),
        ("SET @@nothing = 1", StatementReply(errno=1193), False),
        ("SELECT * FROM t", StatementReply(is_result_set=True), False),
        ("INSERT INTO t VALUES (1)", StatementReply(), False),
    ],
)
def test_they_stay_as_long_as_on_the_servers(
    flavor: Flavor, statement: str, reply: StatementReply, *, stays: bool
) -> None:
    own = told()
    own.runs(statement, flavor)
    own.ran([reply])
    assert own.are_own is (stays and flavor is Flavor.MARIADB)


def test_a_statement_in_the_place_of_another_takes_none_away() -> None:
    own = told()
    assigned = own.answer("GET DIAGNOSTICS @n = NUMBER", Flavor.MYSQL)
    assert isinstance(assigned, str)
    own.runs(assigned, Flavor.MYSQL)
    own.ran([StatementReply()])
    assert own.are_own
    own.runs("SET @a = 1", Flavor.MYSQL)
    assert not own.are_own
