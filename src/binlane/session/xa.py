"""XA transactions: their states, and how their phases are logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.session import log_events
from binlane.session.failures import fail_as_stated
from binlane.session.report import LoggedEvent, Refusal
from binlane.session.state import Command, SessionState, XaPhase
from binlane.session.transactions import refuse_in_xa
from binlane.sql.effects import StatementKind
from binlane.sql.tokens import TokenKind, tokenise

_ALWAYS: Final = frozenset((StatementKind.XA, StatementKind.SET, StatementKind.SESSION))
_WHILE_ACTIVE: Final = _ALWAYS | {
    StatementKind.INSERT,
    StatementKind.REPLACE,
    StatementKind.UPDATE,
    StatementKind.DELETE,
    StatementKind.LOAD_DATA,
    StatementKind.SELECT,
    StatementKind.DO,
    StatementKind.CALL,
    StatementKind.COMPOUND,
    StatementKind.SAVEPOINT,
    StatementKind.ROLLBACK_TO,
    StatementKind.RELEASE_SAVEPOINT,
}


def is_forbidden(state: SessionState, command: Command) -> bool:
    """Whether the state of the XA transaction forbids a statement, which is then refused."""
    if state.xa_phase is None:
        return False
    kind = command.facts.effects.kind
    allowed = _WHILE_ACTIVE if state.xa_phase is XaPhase.ACTIVE else _ALWAYS
    if kind in allowed or (command.facts.effects.is_temporary and allowed is _WHILE_ACTIVE):
        return False
    refuse_in_xa(state)
    return True


def execute_xa(state: SessionState, command: Command) -> None:
    """XA START, END, PREPARE, COMMIT and ROLLBACK; XA RECOVER changes nothing."""
    handler = _HANDLERS.get(command.facts.verb)
    if not command.succeeds:
        fail_as_stated(state, command)
    elif handler is not None:
        handler(state, command, shown_xid(command.facts.xid))


def _start(state: SessionState, _: Command, xid: str) -> None:
    if state.xa_phase is not None:
        refuse_in_xa(state)
        return
    if state.is_begun or (state.is_active and state.is_in_transaction):
        _fail(state, 1400, "XAE09", "ER_XAER_OUTSIDE", _OUTSIDE)
        return
    state.begin()
    state.xid, state.xa_phase = xid, XaPhase.ACTIVE


def _end(state: SessionState, _: Command, xid: str) -> None:
    if not _is_current(state, xid, XaPhase.ACTIVE):
        return
    state.xa_phase = XaPhase.IDLE


def _prepare(state: SessionState, _: Command, xid: str) -> None:
    if not _is_current(state, xid, XaPhase.IDLE):
        return
    logged = set()
    for name, binlog in state.binlogs.items():
        holds = (
            binlog.is_registered
            if state.server.is_mariadb
            else not binlog.transaction_cache.is_empty
        )
        if holds:
            logged.add(name)
            end = LoggedEvent("XA_prepare", f"XA PREPARE {xid}")
            binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.prepared_xids[xid] = frozenset(logged)
    state.end_transaction()
    if state.server.is_mariadb:
        state.is_begun = state.is_active = True
        state.xa_phase = XaPhase.PREPARED
    else:
        state.xid = state.xa_phase = None


def _framed(state: SessionState, events: list[LoggedEvent], xid: str) -> list[LoggedEvent]:
    """Events of an XA transaction between its start and its end."""
    start = (
        LoggedEvent("Gtid", f"XA START {xid} GTID #")
        if state.server.is_mariadb
        else log_events.query(f"XA START {xid}")
    )
    return [start, *events, log_events.query(f"XA END {xid}")]


def _commit(state: SessionState, command: Command, xid: str) -> None:
    if "ONE PHASE" in command.facts.options:
        if _is_current(state, xid, XaPhase.IDLE):
            _commit_at_once(state, xid)
        return
    _finish(state, xid, "XA COMMIT")


def _commit_at_once(state: SessionState, xid: str) -> None:
    state.xid = state.xa_phase = None
    if not state.server.is_mariadb:
        for binlog in state.binlogs.values():
            if not binlog.transaction_cache.is_empty:
                end = LoggedEvent("XA_prepare", f"XA COMMIT {xid} ONE PHASE")
                binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.commit()


def _roll_back(state: SessionState, _: Command, xid: str) -> None:
    if state.xid != xid or state.xa_phase is XaPhase.PREPARED:
        _finish(state, xid, "XA ROLLBACK")
        return
    if state.xa_phase is XaPhase.ACTIVE:
        refuse_in_xa(state)
        return
    if not state.server.is_mariadb:
        for binlog in state.binlogs.values():
            if binlog.has_unsafe_content:
                end = log_events.query(f"XA ROLLBACK {xid}")
                binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.xid = state.xa_phase = None
    state.roll_back()


def _finish(state: SessionState, xid: str, text: str) -> None:
    """Commit or roll back what was prepared."""
    if state.xa_phase is not None and state.xid != xid:
        if state.xa_phase is XaPhase.PREPARED:
            _fail(state, 1400, "XAE09", "ER_XAER_OUTSIDE", _OUTSIDE)
        else:
            refuse_in_xa(state)
        return
    if xid not in state.prepared_xids or state.xa_phase in (XaPhase.ACTIVE, XaPhase.IDLE):
        if state.is_begun or state.xa_phase is not None:
            refuse_in_xa(state)
        else:
            _fail(state, 1397, "XAE04", "ER_XAER_NOTA", "XAER_NOTA: Unknown XID")
        return
    if state.xa_phase is None and state.is_begun:
        refuse_in_xa(state)
        return
    logged = state.prepared_xids.pop(xid)
    if state.xa_phase is not None:
        state.xid = state.xa_phase = None
        state.end_transaction()
    for name, binlog in state.each_logging().items():
        if name in logged:
            binlog.write_directly([log_events.query(f"{text} {xid}")])


def _is_current(state: SessionState, xid: str, phase: XaPhase) -> bool:
    if state.xa_phase is not phase:
        refuse_in_xa(state)
        return False
    if state.xid != xid:
        _fail(state, 1397, "XAE04", "ER_XAER_NOTA", "XAER_NOTA: Unknown XID")
        return False
    return True


def _fail(state: SessionState, errno: int, sqlstate: str, symbol: str, message: str) -> None:
    state.fail(Refusal(errno=errno, sqlstate=sqlstate, symbol=symbol, message=message))


def shown_xid(text: str) -> str:
    """An XA transaction's id as the log prints it: two texts in hexadecimal and a number."""
    parts = ["X''", "X''", "1"]
    place = 0
    for token in tokenise(text):
        if token.kind is TokenKind.STRING:
            prefix = text[: token.offset].rstrip()[-1:].upper()
            digits = token.value if prefix == "X" else token.value.encode().hex()
            parts[place] = f"X'{digits.lower()}'"
        elif token.kind is TokenKind.NUMBER and token.text[:2].lower() == "0x" and place < 2:
            parts[place] = f"X'{token.text[2:].lower()}'"
        elif token.kind is TokenKind.NUMBER:
            parts[place] = token.text
        elif token.text == ",":
            place += 1
    return ",".join(parts)


_OUTSIDE: Final = "XAER_OUTSIDE: Some work is done outside global transaction"
_HANDLERS: Final[Mapping[str, Callable[[SessionState, Command, str], None]]] = MappingProxyType(
    {
        "XA START": _start,
        "XA BEGIN": _start,
        "XA END": _end,
        "XA PREPARE": _prepare,
        "XA COMMIT": _commit,
        "XA ROLLBACK": _roll_back,
    }
)
