"""What a refusal says to who may not see all binlogs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.errors import UnsafeStatementError
from binlane.live.port.statement_refusals import as_error, as_told
from binlane.log.codec.packets.replies import ErrPacket, error_packet
from binlane.statements.policy.refusals import Refusal, Why, innodb_in_statement_mode
from binlane.statements.policy.server import Server
from binlane.statements.session.safety import SYMBOLS


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


@pytest.mark.parametrize(("server", "behind"), [("mariadb", [1665, 1030]), ("mysql", [1665, 1015])])
def test_what_the_engine_tells_of_a_refusal_is_told_as_well(server: str, behind: list[int]) -> None:
    error = as_error(innodb_in_statement_mode(Server.parse(server)), None)
    assert [each.errno for each in error.listed if each.level == "Error"] == behind
    assert {each.errno for each in error.listed if each.level == "Note"} == {1105}


def test_who_refuses_stands_behind_the_text_and_says_how_to_see_more() -> None:
    whole = refusal("BINLANE_PARTIAL_WRITE", "own", "secret")
    text = ErrPacket.decode(error_packet(as_error(whole, None))).message
    assert text.startswith(f"{whole.message} (hint: binlane refuses it for binlogs 'own', 'secret'")
    assert "EXPLAIN BINLOG" in text
    assert text.endswith("ALTER BINLOG 'secret' ADD LOG(`t`))")


@pytest.mark.parametrize("symbol", ["BINLANE_PARTIAL_WRITE", "ER_BINLOG_UNSAFE_AND_STMT_ENGINE"])
def test_who_refuses_names_no_binlog_that_is_not_seen(symbol: str) -> None:
    whole = refusal(symbol, "secret")
    for seen in ((), ("own",)):
        error = as_error(replace(as_told(whole, seen), why=()), seen)
        assert "secret" not in error.hint + repr(error.listed[1:])
        assert "binlane refuses it" in error.hint
        assert ("EXPLAIN BINLOG" in error.hint) is bool(seen)
