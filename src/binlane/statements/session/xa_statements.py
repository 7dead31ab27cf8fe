"""XA transactions of a session, in the servers' states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.log.codec.transaction import TransactionXid, XaPrepareEvent
from binlane.statements.policy.refusals import (
    Refusal,
)
from binlane.statements.session import log_events
from binlane.statements.session.caches import BinlogCaches
from binlane.statements.session.log_events import Body
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transaction import XaPhase
from binlane.statements.sql.evaluation.evaluator import content_of
from binlane.statements.sql.facts import (
    StatementFacts,
)
from binlane.statements.sql.tree.expressions import Literal, LiteralKind
from binlane.statements.sql.tree.statements import Transaction as TransactionNode


def refusal_in_xa(state: SessionState) -> Refusal:
    """Return the refusal of a statement that the state of the XA transaction does not allow."""
    phase = state.transaction.xa_phase
    message = (
        "XAER_RMFAIL: The statement cannot be executed when global transaction is in the  "
        f"{'NON-EXISTING' if phase is None else phase.value} state"
    )
    return Refusal(1399, "XAE07", "ER_XAER_RMFAIL", message)


def execute_xa(state: SessionState, statement: SessionStatement) -> None:
    """Carry out XA START, END, PREPARE, COMMIT and ROLLBACK; XA RECOVER changes nothing."""
    execute = _XA_VERBS.get(statement.facts.verb)
    if not statement.succeeds:
        state.fail_as_stated(statement)
    elif execute is not None:
        refusal = execute(_Xa(state, statement.facts))
        if refusal is not None:
            state.fail(refusal)


class _Xa:
    """The effects of an XA statement on its transaction; each method returns the refusal, or None."""

    def __init__(self, state: SessionState, facts: StatementFacts) -> None:
        self._state = state
        self._is_mariadb = state.server.is_mariadb
        self._options = facts.options
        self._xid = _xid(facts)

    def start(self) -> Refusal | None:
        state, transaction = self._state, self._state.transaction
        if transaction.xa_phase is not None:
            return refusal_in_xa(state)
        if transaction.is_active and state.is_in_transaction:
            return _OUTSIDE
        if self._xid in state.prepared_xa.held:
            return _DUPLICATE
        state.begin()
        state.transaction.xid, state.transaction.xa_phase = self._xid, XaPhase.ACTIVE
        return None

    def end(self) -> Refusal | None:
        refusal = self._refusal_but_in(XaPhase.ACTIVE)
        if refusal is None:
            self._state.transaction.xa_phase = XaPhase.IDLE
        return refusal

    def prepare(self) -> Refusal | None:
        refusal = self._refusal_but_in(XaPhase.IDLE)
        if refusal is not None:
            return refusal
        state, end = self._state, XaPrepareEvent(one_phase=0, xid=self._xid)
        logged = set()
        for name, binlog in state.binlogs.items():
            is_empty = binlog.transaction_cache.is_empty
            if binlog.is_registered if self._is_mariadb else not is_empty:
                logged.add(name)
                self._write(binlog, end)
        state.prepared_xa.held[self._xid] = frozenset(logged)
        # Other sessions can end the transaction: in MariaDB they log its end even where it is not logged
        # itself, and there is nothing left of a transaction that did nothing.
        if not self._is_mariadb:
            state.prepared_xa.left[self._xid] = frozenset(logged)
        elif logged.difference((log_events.SOURCE_LOG,)) or state.transaction.changes.engines:
            state.prepared_xa.left[self._xid] = frozenset(state.binlogs)
        state.end_transaction()
        if self._is_mariadb:
            state.transaction.is_begun = state.transaction.is_active = True
            state.transaction.xa_phase = XaPhase.PREPARED
        else:
            state.transaction.leave_xa()
        return None

    def commit(self) -> Refusal | None:
        state = self._state
        if "ONE PHASE" not in self._options:
            return self._finish("XA COMMIT")
        if state.transaction.xid == self._xid:
            refusal = self._refusal_but_in(XaPhase.IDLE)
            if refusal is not None:
                return refusal
            state.transaction.leave_xa()
            for binlog in () if self._is_mariadb else state.binlogs.values():
                if not binlog.transaction_cache.is_empty:
                    self._write(binlog, XaPrepareEvent(one_phase=1, xid=self._xid))
            state.commit()
            return None
        refusal = self._refusal_to_finish()
        if refusal is None and self._is_mariadb:
            return refusal_in_xa(state)
        if refusal is None:
            # MySQL commits what another session prepared, and does not log it.
            state.prepared_xa.end(self._xid)
        return refusal

    def roll_back(self) -> Refusal | None:
        state, transaction = self._state, self._state.transaction
        if transaction.xid != self._xid or transaction.xa_phase is XaPhase.PREPARED:
            return self._finish("XA ROLLBACK")
        if transaction.xa_phase is XaPhase.ACTIVE:
            return refusal_in_xa(state)
        for binlog in () if self._is_mariadb else state.binlogs.values():
            if binlog.has_unsafe_content:
                self._write(binlog, state.query(f"XA ROLLBACK {self._xid}"))
        transaction.leave_xa()
        state.roll_back(is_xa=True)
        return None

    def _write(self, binlog: BinlogCaches, end: Body) -> None:
        """Write the transaction between its start and its end."""
        state, events = self._state, binlog.transaction_cache.events
        start, end_of_work = log_events.xa_start(self._xid, state.server), f"XA END {self._xid}"
        changes = state.transaction.changes
        binlog.write_xa([start, *events, state.query(end_of_work), end], changes)

    def _finish(self, text: str) -> Refusal | None:
        """Commit or roll back a prepared transaction."""
        refusal = self._refusal_to_finish()
        if refusal is not None:
            return refusal
        state = self._state
        logged = state.prepared_xa.end(self._xid)
        if state.transaction.xa_phase is not None:
            state.transaction.leave_xa()
            state.end_transaction()
        for name, binlog in state.each_logging().items():
            if name in logged:
                binlog.write_directly([state.query(f"{text} {self._xid}")])
        return None

    def _refusal_to_finish(self) -> Refusal | None:
        """Return the refusal to end a prepared transaction now."""
        state, transaction = self._state, self._state.transaction
        if transaction.xid == self._xid:
            is_prepared = transaction.xa_phase is XaPhase.PREPARED
            return None if is_prepared else refusal_in_xa(state)
        if self._is_mariadb:
            if transaction.xa_phase is not None or state.is_in_transaction:
                return _OUTSIDE
        elif transaction.xa_phase is not None or (
            transaction.is_active and state.is_in_transaction
        ):
            return refusal_in_xa(state)
        return None if self._xid in state.prepared_xa.held else _UNKNOWN

    def _refusal_but_in(self, phase: XaPhase) -> Refusal | None:
        """Return the refusal of a statement unless the session's XA transaction is in a phase."""
        transaction = self._state.transaction
        if transaction.xa_phase is not phase:
            return refusal_in_xa(self._state)
        return None if transaction.xid == self._xid else _UNKNOWN


def _xid(facts: StatementFacts) -> TransactionXid:
    """An XA transaction's id: two texts, of which the second may be left out, and a number."""
    assert isinstance(facts.tree, TransactionNode)
    texts = [_bytes(node, facts) for node in facts.tree.xid[:2]]
    number = facts.tree.xid[2:]
    return TransactionXid(
        format_id=int(facts.text_of(number[0]), 0) if number else 1,
        global_id=texts[0],
        branch=texts[1] if len(texts) > 1 else b"",
    )


def _bytes(node: Literal, facts: StatementFacts) -> bytes:
    is_text = node.kind is LiteralKind.STRING
    content = content_of(node, facts)
    return content.encode("utf-8", "surrogateescape") if is_text else content.encode("latin-1")


_UNKNOWN: Final = Refusal(1397, "XAE04", "ER_XAER_NOTA", "XAER_NOTA: Unknown XID")

_DUPLICATE: Final = Refusal(*(1440, "XAE08", "ER_XAER_DUPID"), "XAER_DUPID: The XID already exists")

_OUTSIDE: Final = Refusal(
    *(1400, "XAE09", "ER_XAER_OUTSIDE"),
    "XAER_OUTSIDE: Some work is done outside global transaction",
)

_XA_VERBS: Final[Mapping[str, Callable[[_Xa], Refusal | None]]] = MappingProxyType(
    {
        "XA START": _Xa.start,
        "XA BEGIN": _Xa.start,
        "XA END": _Xa.end,
        "XA PREPARE": _Xa.prepare,
        "XA COMMIT": _Xa.commit,
        "XA ROLLBACK": _Xa.roll_back,
    }
)


def leave_xa_at_end(state: SessionState) -> None:
    """Leave the XA transaction at the session's end; MySQL logs changes that cannot be undone."""
    transaction = state.transaction
    if transaction.xid is not None and not state.server.is_mariadb:
        start = log_events.xa_start(transaction.xid, state.server)
        for binlog in state.binlogs.values():
            if binlog.has_unsafe_content:
                events = binlog.transaction_cache.events
                binlog.write_xa([start, *events, log_events.ROLLBACK], transaction.changes)
    transaction.leave_xa()
