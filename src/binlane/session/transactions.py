"""BEGIN, COMMIT, ROLLBACK and savepoints; XA transactions, and how their phases are logged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from binlane.codec.transaction import TransactionXid, XaPrepareEvent
from binlane.names import TableName
from binlane.policy.engines import traits
from binlane.policy.refusals import NONTRANSACTIONAL_AND_GTID, Refusal
from binlane.policy.resolution import TableAccess
from binlane.session import creates, log_events
from binlane.session.log_events import Body
from binlane.session.state import LockedTables, SessionState, SessionStatement
from binlane.session.transaction import EngineChanges, EngineUse, Savepoint, XaPhase
from binlane.sql.evaluation.evaluator import content_of
from binlane.sql.facts import READING_KINDS, WRITING_KINDS, StatementFacts, StatementKind
from binlane.sql.schema import Table
from binlane.sql.tree.expressions import Literal, LiteralKind
from binlane.sql.tree.statements import Transaction as TransactionNode


def begin(state: SessionState, statement: SessionStatement) -> None:
    """START TRANSACTION and BEGIN."""
    state.begin()
    if "WITH CONSISTENT SNAPSHOT" in statement.facts.options:
        state.transaction.changes.engines["INNODB"] = EngineUse(has_two_phases=True)
        if state.server.is_mariadb:
            for binlog in state.each_logging().values():
                binlog.is_registered = True


def commit(state: SessionState, statement: SessionStatement) -> None:
    """COMMIT."""
    isolation = state.current_isolation
    state.commit()
    _chain(state, statement, isolation)


def roll_back(state: SessionState, statement: SessionStatement) -> None:
    """ROLLBACK."""
    isolation = state.current_isolation
    state.roll_back()
    _chain(state, statement, isolation)


def _chain(state: SessionState, statement: SessionStatement, isolation: object) -> None:
    tree = statement.facts.tree
    options = tree.options if isinstance(tree, TransactionNode) else frozenset()
    is_usual = state.variables.text("completion_type") in ("1", "CHAIN")
    if "AND CHAIN" in options or (is_usual and "AND NO CHAIN" not in options):
        state.begin()
        assert isinstance(isolation, type(state.transaction.isolation))
        state.transaction.isolation = isolation


def refuse_in_xa(state: SessionState) -> None:
    """Refuse what the state of the XA transaction does not allow."""
    phase = state.transaction.xa_phase
    message = (
        "XAER_RMFAIL: The statement cannot be executed when global transaction is in the  "
        f"{'NON-EXISTING' if phase is None else phase.value} state"
    )
    state.fail(Refusal(1399, "XAE07", "ER_XAER_RMFAIL", message))


def set_savepoint(state: SessionState, statement: SessionStatement) -> None:
    """SAVEPOINT; outside a transaction it means nothing."""
    if not state.is_in_transaction:
        return
    name = statement.facts.name
    _release(state, name)
    state.transaction.savepoints.append(
        Savepoint(name, frozenset(state.transaction.changes.engines))
    )
    event = state.query(f"SAVEPOINT {state.quote(name)}")
    for binlog in state.each_logging().values():
        binlog.set_savepoint(name, event)
    if state.safety is not None:
        state.safety.savepoint(name)


def roll_back_to(state: SessionState, statement: SessionStatement) -> None:
    """ROLLBACK TO SAVEPOINT."""
    savepoint = _find(state, statement.facts.name)
    if savepoint is None:
        _unknown(state, statement.facts.name)
        return
    for later in state.transaction.savepoints[state.transaction.savepoints.index(savepoint) + 1 :]:
        _forget(state, later.name)
    del state.transaction.savepoints[state.transaction.savepoints.index(savepoint) + 1 :]
    nothing = EngineChanges()
    event = state.query(f"ROLLBACK TO {state.quote(statement.facts.name)}")
    for name, binlog in state.binlogs.items():
        context = state.write_context(name, nothing)
        binlog.roll_back_to(statement.facts.name, event, context)
    state.transaction.changes.keep_only(savepoint.engines)
    if state.safety is not None:
        state.safety.rolled_back_to(savepoint.name)


def release_savepoint(state: SessionState, statement: SessionStatement) -> None:
    """RELEASE SAVEPOINT: it and all later ones are gone; nothing is logged."""
    savepoint = _find(state, statement.facts.name)
    if savepoint is None:
        _unknown(state, statement.facts.name)
        return
    for gone in state.transaction.savepoints[state.transaction.savepoints.index(savepoint) :]:
        _forget(state, gone.name)
    del state.transaction.savepoints[state.transaction.savepoints.index(savepoint) :]


def _release(state: SessionState, name: str) -> None:
    """A new savepoint takes the place of one of the same name."""
    known = _find(state, name)
    if known is not None:
        state.transaction.savepoints.remove(known)
        _forget(state, name)


def _find(state: SessionState, name: str) -> Savepoint | None:
    return next(
        (one for one in state.transaction.savepoints if one.name.lower() == name.lower()), None
    )


def _forget(state: SessionState, name: str) -> None:
    for binlog in state.binlogs.values():
        binlog.forget_savepoint(name)


def _unknown(state: SessionState, name: str) -> None:
    message = f"SAVEPOINT {name} does not exist"
    state.fail(Refusal(1305, "42000", "ER_SP_DOES_NOT_EXIST", message))


# XA -----------------------------------------------------------------------------------------------


_ALWAYS: Final = frozenset((StatementKind.XA, StatementKind.SET, StatementKind.SESSION))
_WHILE_ACTIVE: Final = (
    _ALWAYS
    | WRITING_KINDS
    | READING_KINDS
    | {
        *(StatementKind.CALL, StatementKind.COMPOUND, StatementKind.SAVEPOINT),
        *(StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT),
    }
)


def is_forbidden(state: SessionState, statement: SessionStatement) -> bool:
    """Whether the state of the XA transaction forbids a statement, which is then refused."""
    if state.transaction.xa_phase is None:
        return False
    kind = statement.facts.effects.kind
    allowed = _WHILE_ACTIVE if state.transaction.xa_phase is XaPhase.ACTIVE else _ALWAYS
    if kind in allowed or (statement.facts.effects.is_temporary and allowed is _WHILE_ACTIVE):
        return False
    refuse_in_xa(state)
    return True


def execute_xa(state: SessionState, statement: SessionStatement) -> None:
    """XA START, END, PREPARE, COMMIT and ROLLBACK; XA RECOVER changes nothing."""
    handler = _HANDLERS.get(statement.facts.verb)
    if not statement.succeeds:
        state.fail_as_stated(statement)
    elif handler is not None:
        handler(state, statement, _xid(statement.facts))


def _start(state: SessionState, _: SessionStatement, xid: TransactionXid) -> None:
    if state.transaction.xa_phase is not None:
        refuse_in_xa(state)
        return
    if state.transaction.is_begun or (state.transaction.is_active and state.is_in_transaction):
        state.fail(_OUTSIDE)
        return
    if xid in state.prepared_xa.held:
        state.fail(_DUPLICATE)
        return
    state.begin()
    state.transaction.xid, state.transaction.xa_phase = xid, XaPhase.ACTIVE


def _end(state: SessionState, _: SessionStatement, xid: TransactionXid) -> None:
    if not _is_current(state, xid, XaPhase.ACTIVE):
        return
    state.transaction.xa_phase = XaPhase.IDLE


def _prepare(state: SessionState, _: SessionStatement, xid: TransactionXid) -> None:
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
            end = XaPrepareEvent(one_phase=0, xid=xid)
            binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.prepared_xa.held[xid] = frozenset(logged)
    _leave(state, xid, frozenset(logged))
    state.end_transaction()
    if state.server.is_mariadb:
        state.transaction.is_begun = state.transaction.is_active = True
        state.transaction.xa_phase = XaPhase.PREPARED
    else:
        state.transaction.leave_xa()


def _leave(state: SessionState, xid: TransactionXid, logged: frozenset[str]) -> None:
    """Note what other sessions can do with a prepared transaction.

    In MariaDB they log its end even where it is not logged itself, and there is nothing left of
    one that did nothing.
    """
    if not state.server.is_mariadb:
        state.prepared_xa.left[xid] = logged
    elif logged or state.transaction.changes.engines:
        state.prepared_xa.left[xid] = frozenset(state.binlogs)


def _framed(state: SessionState, events: list[Body], xid: TransactionXid) -> list[Body]:
    """Events of an XA transaction between its start and its end."""
    return [log_events.xa_start(xid, state.server), *events, state.query(f"XA END {xid}")]


def _commit(state: SessionState, statement: SessionStatement, xid: TransactionXid) -> None:
    if "ONE PHASE" not in statement.facts.options:
        _finish(state, xid, "XA COMMIT")
    elif state.transaction.xid == xid:
        if _is_current(state, xid, XaPhase.IDLE):
            _commit_at_once(state, xid)
    elif _may_finish(state, xid):
        if state.server.is_mariadb:
            refuse_in_xa(state)
            return
        # MySQL commits what another session prepared, and does not log it.
        state.prepared_xa.end(xid)


def _commit_at_once(state: SessionState, xid: TransactionXid) -> None:
    state.transaction.leave_xa()
    if not state.server.is_mariadb:
        for binlog in state.binlogs.values():
            if not binlog.transaction_cache.is_empty:
                end = XaPrepareEvent(one_phase=1, xid=xid)
                binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.commit()


def _roll_back(state: SessionState, _: SessionStatement, xid: TransactionXid) -> None:
    if state.transaction.xid != xid or state.transaction.xa_phase is XaPhase.PREPARED:
        _finish(state, xid, "XA ROLLBACK")
        return
    if state.transaction.xa_phase is XaPhase.ACTIVE:
        refuse_in_xa(state)
        return
    if not state.server.is_mariadb:
        for binlog in state.binlogs.values():
            if binlog.has_unsafe_content:
                end = state.query(f"XA ROLLBACK {xid}")
                binlog.write_xa([*_framed(state, binlog.transaction_cache.events, xid), end])
    state.transaction.leave_xa()
    state.roll_back(is_xa=True)


def _finish(state: SessionState, xid: TransactionXid, text: str) -> None:
    """Commit or roll back what was prepared."""
    if not _may_finish(state, xid):
        return
    logged = state.prepared_xa.end(xid)
    if state.transaction.xa_phase is not None:
        state.transaction.leave_xa()
        state.end_transaction()
    for name, binlog in state.each_logging().items():
        if name in logged:
            binlog.write_directly([state.query(f"{text} {xid}")])


def _may_finish(state: SessionState, xid: TransactionXid) -> bool:
    """Whether a prepared transaction can be ended now; else why not is told."""
    if state.transaction.xid == xid:
        if state.transaction.xa_phase is not XaPhase.PREPARED:
            refuse_in_xa(state)
            return False
        return True
    if state.server.is_mariadb:
        if state.transaction.xa_phase is not None or state.is_in_transaction:
            state.fail(_OUTSIDE)
            return False
    elif state.transaction.xa_phase is not None or (
        state.transaction.is_active and state.is_in_transaction
    ):
        refuse_in_xa(state)
        return False
    if xid not in state.prepared_xa.held:
        state.fail(_UNKNOWN)
        return False
    return True


def _is_current(state: SessionState, xid: TransactionXid, phase: XaPhase) -> bool:
    if state.transaction.xa_phase is not phase:
        refuse_in_xa(state)
        return False
    if state.transaction.xid != xid:
        state.fail(_UNKNOWN)
        return False
    return True


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
_HANDLERS: Final[Mapping[str, Callable[[SessionState, SessionStatement, TransactionXid], None]]] = (
    MappingProxyType(
        {
            "XA START": _start,
            "XA BEGIN": _start,
            "XA END": _end,
            "XA PREPARE": _prepare,
            "XA COMMIT": _commit,
            "XA ROLLBACK": _roll_back,
        }
    )
)


def execute_lock(state: SessionState, statement: SessionStatement) -> None:
    """LOCK TABLES commits what is open; UNLOCK TABLES does if tables were locked."""
    if statement.facts.verb.startswith("LOCK"):
        state.implicit_commit()
        state.locked_tables = None
        if statement.succeeds:
            opened = state.host.resolved(statement.facts, statement.database).accesses
            written = [one.table for one in opened if one.is_locked_for_write]
            if _mixes_engines(state, written):
                state.fail(NONTRANSACTIONAL_AND_GTID)
            else:
                state.locked_tables = LockedTables(
                    tuple(table.name for table in written),
                    _locks(state, statement, opened),
                    frozenset(one.name for one in opened)
                    - {use.name for use in statement.facts.tables},
                )
                # With autocommit=0 an engine that is locked has begun a transaction.
                state.transaction.is_active |= state.is_in_transaction and any(
                    traits(one.table, state.server).is_transactional for one in opened
                )
    elif statement.facts.verb.startswith("UNLOCK"):
        if state.locked_tables is not None:
            state.implicit_commit()
        state.locked_tables = None
    if not statement.succeeds:
        state.fail_as_stated(statement)


def _locks(
    state: SessionState, statement: SessionStatement, opened: Iterable[TableAccess]
) -> tuple[tuple[TableName, str, bool], ...]:
    """What LOCK TABLES locks, views included."""
    views = [use for use in statement.facts.tables if state.objects.view(use.name) is not None]
    return (
        *((use.name, use.alias.lower(), use.lock.upper().endswith("WRITE")) for use in views),
        *((one.name, one.alias, one.is_locked_for_write) for one in opened),
    )


def _mixes_engines(state: SessionState, written: Iterable[Table]) -> bool:
    """Whether MySQL's GTID consistency forbids to write some tables under the same locks."""
    kinds = {traits(table, state.server).is_transactional for table in written}
    return len(kinds) > 1 and creates.is_gtid_enforced(state)
