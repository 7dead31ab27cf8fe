"""Which findings count."""

from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.statements.check.findings import NOT_UNDERSTOOD, CheckedStatement, findings
from binlane.statements.check.reasons import (
    DESCRIPTIONS,
    SAFETY_REASONS,
    SHORT_NAMES,
    Judgement,
    short_name,
)
from binlane.statements.session.safety import SYMBOLS
from tests.unit.statements.check.results import in_rows, noted, refused, unanalysed


def counts(statement: CheckedStatement, *, deny: str = "", allow: str = "") -> bool:
    judgement = Judgement.of(deny=deny.split(), allow=allow.split())
    return any(judgement.counts(finding) for finding in findings(statement))


@pytest.mark.parametrize(
    ("statement", "deny", "allow", "expected"),
    [
        (noted(), "", "", True),
        (noted(), "", "unsafe-system-function", False),
        (noted(), "", "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION", False),
        (noted(), "", "unsafe", False),
        (noted(), "", "all", False),
        (noted(), "", "unsafe-limit", True),
        (noted(), "unsafe-system-function", "unsafe", True),
        (noted(), "unsafe", "unsafe-system-function", False),
        (noted(), "unsafe", "unsafe", True),
        (refused(), "", "unsafe", True),
        (refused(), "", "partial-write", False),
        (refused(), "", "scope", False),
        (unanalysed(), "", "all", True),
        (in_rows(), "", "", False),
        (in_rows(), "unsafe-system-function", "", True),
        (in_rows(), "unsafe", "", True),
    ],
)
def test_what_counts(statement: CheckedStatement, deny: str, allow: str, *, expected: bool) -> None:
    assert counts(statement, deny=deny, allow=allow) is expected


def test_an_unknown_reason_is_told_with_its_neighbours() -> None:
    with pytest.raises(ConfigError, match="no reason 'sytem-function'") as caught:
        Judgement.of(deny=["sytem-function"])
    assert "unsafe-system-function" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        Judgement.of(allow=["x"])
    assert "unsafe-limit" in caught.value.hint


def test_short_names_are_unique() -> None:
    assert len(SHORT_NAMES) == len(DESCRIPTIONS)
    assert short_name("ER_BINLOG_UNSAFE_LIMIT") == "unsafe-limit"
    assert short_name("ER_NO_SUCH_TABLE") == "no-such-table"


def test_every_refusal_of_a_scope_has_a_name() -> None:
    assert set(SYMBOLS.values()) - set(SAFETY_REASONS) == {NOT_UNDERSTOOD}
