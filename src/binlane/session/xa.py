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
    if xid in state.prepared_xids:
        _fail(state, 1440, "XAE08", "ER_XAER_DUPID", "XAER_DUPID: The XID already exists")
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
    _leave(state, xid, frozenset(logged))
    state.end_transaction()
    if state.server.is_mariadb:
        state.is_begun = state.is_active = True
        state.xa_phase = XaPhase.PREPARED
    else:
        state.xid = state.xa_phase = None


def _leave(state: SessionState, xid: str, logged: frozenset[str]) -> None:
    """Note what other sessions can do with a prepared transaction.

    In MariaDB they log its end even where it is not logged itself, and there is nothing left of
    one that did nothing.
    """
    if not state.server.is_mariadb:
        state.left_xids[xid] = logged
    elif logged or state.transaction.engines:
        state.left_xids[xid] = frozenset(state.binlogs)


def _framed(state: SessionState, events: list[LoggedEvent], xid: str) -> list[LoggedEvent]:
    """Events of an XA transaction between its start and its end."""
    start = (
        LoggedEvent("Gtid", f"XA START {xid} GTID #")
        if state.server.is_mariadb
        else log_events.query(f"XA START {xid}")
    )
    (end,) = log_events.with_options(
        [log_events.query(f"XA END {xid}")], state.variables.shown_options
    )
    return [start, *events, end]


def _commit(state: SessionState, command: Command, xid: str) -> None:
    if "ONE PHASE" not in command.facts.options:
        _finish(state, xid, "XA COMMIT")
    elif state.xid == xid:
        if _is_current(state, xid, XaPhase.IDLE):
            _commit_at_once(state, xid)
    elif _may_finish(state, xid):
        if state.server.is_mariadb:
            refuse_in_xa(state)
            return
        # MySQL commits what another session prepared, and does not log it.
        del state.prepared_xids[xid]
        state.left_xids.pop(xid, None)


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
    state.roll_back(is_xa=True)


def _finish(state: SessionState, xid: str, text: str) -> None:
    """Commit or roll back what was prepared."""
    if not _may_finish(state, xid):
        return
    logged = state.prepared_xids.pop(xid)
    state.left_xids.pop(xid, None)
    if state.xa_phase is not None:
        state.xid = state.xa_phase = None
        state.end_transaction()
    for name, binlog in state.each_logging().items():
        if name in logged:
            binlog.write_directly([log_events.query(f"{text} {xid}")])


def _may_finish(state: SessionState, xid: str) -> bool:
    """Whether a prepared transaction can be ended now; else why not is told."""
    if state.xid == xid:
        if state.xa_phase is not XaPhase.PREPARED:
            refuse_in_xa(state)
            return False
        return True
    if state.server.is_mariadb:
        if state.xa_phase is not None or state.is_in_transaction:
            _fail(state, 1400, "XAE09", "ER_XAER_OUTSIDE", _OUTSIDE)
            return False
    elif state.xa_phase is not None or (state.is_active and state.is_in_transaction):
        refuse_in_xa(state)
        return False
    if xid not in state.prepared_xids:
        _fail(state, 1397, "XAE04", "ER_XAER_NOTA", "XAER_NOTA: Unknown XID")
        return False
    return True


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
            digits = (
                token.value
                if prefix == "X"
                else token.value.encode("utf-8", "surrogateescape").hex()
            )
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
