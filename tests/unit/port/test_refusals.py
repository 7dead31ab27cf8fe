"""What a refusal says to who may not see all binlogs."""

from __future__ import annotations

import pytest

from binlane.errors import UnsafeStatementError
from binlane.policy.refusals import Refusal, Why
from binlane.port.refusals import as_told
from binlane.session.safety import SYMBOLS


def refusal(symbol: str, *binlogs: str, others: tuple[Refusal, ...] = ()) -> Refusal:
    text = str(UnsafeStatementError(f"of {', '.join(binlogs)}"))
    hints = tuple(Why(hint=f"ALTER BINLOG '{name}' ADD LOG(`t`)") for name in binlogs)
    return Refusal(1, "HY000", symbol, text, binlogs=binlogs, why=hints, others=others)


@pytest.mark.parametrize("symbol", [*SYMBOLS.values(), "BINLANE_DEFINITION"])
def test_names_are_told_to_who_may_see_them_all(symbol: str) -> None:
    whole = refusal(symbol, "secret", "own")
    assert as_told(whole, None) is whole
    assert as_told(whole, {"own", "secret"}) == whole
    if symbol == "BINLANE_NOT_UNDERSTOOD":
        return  # its text names none
    for seen in ((), ("own",)):
        told = as_told(whole, seen)
        assert (told.errno, told.symbol) == (whole.errno, symbol)
        assert "secret" not in repr(told)


def test_the_reason_that_may_be_told_is() -> None:
    own = refusal("BINLANE_DEPENDENCY", "own")
    whole = refusal("BINLANE_PARTIAL_WRITE", "secret", others=(own,))
    assert as_told(whole, ("own",)) == own
