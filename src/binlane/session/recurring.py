"""Statements that come again: what one did, another of its shape does in the same state.

Most statements of an application differ from earlier ones in their literals alone, and meet the
session as those met it. Such a statement is carried out once; what it appended, and what it left
of the transaction, is kept and done again with the text of the next one. Kept is only what no
literal can change, and nothing that has a place in the text: notes, errors, ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Final, NamedTuple

from binlane.codec.query import AnnotateRowsEvent, QueryEvent
from binlane.scope.transaction import TransactionWrites
from binlane.session import log_events
from binlane.session.decision import Plan, plan_of
from binlane.session.log_events import Body
from binlane.session.report import BinlogResult, StatementResult
from binlane.session.state import SessionState
from binlane.session.transaction import Binlog, Transaction
from binlane.sql.facts import StatementFacts, StatementKind
from binlane.sql.tree.expressions import Literal, Node, Operation, children
from binlane.sql.tree.statements import Delete, Update

KEPT_MAX: Final = 4_096
"""Statements that a session keeps; then it begins anew."""

_INSERTS: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
_KINDS: Final = _INSERTS | {StatementKind.UPDATE, StatementKind.DELETE, StatementKind.SELECT}
_ENDS: Final = frozenset((b"BEGIN", b"COMMIT", b"ROLLBACK"))


class Recurring:
    """What a session keeps of its statements."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._holds_for: tuple[object, ...] = (None, None, self)
        self._looks_for_null = False
        self._may_recur: dict[Plan, bool] = {}

    def plan(self, facts: StatementFacts) -> Plan:
        """The plan of a statement of the client."""
        state = self._state
        return plan_of(facts, state.opening(state.database))

    def again(self, facts: StatementFacts, text: str) -> StatementResult | Attempt | None:
        """Do again what is known of a statement.

        Args:
            facts: What it says.
            text: As it is logged.

        Returns:
            What it did. If that is not known, what has to be told of it when it was carried out;
            None if it is none that can be kept.
        """
        if facts.shape is None or not self._is_plain():
            return None
        plan = self.plan(facts)
        may_recur = self._may_recur.get(plan)
        if may_recur is None:
            may_recur = self._may_recur[plan] = _may_recur(plan)
        if not may_recur:
            return None
        key = self._key(plan)
        kept = self._kept.get(key)
        if kept is None:
            return Attempt(self._kept, key, self._state, text)
        return kept.again(self._state, text)

    def _is_plain(self) -> bool:
        """Whether the session is in none of the states in which little comes again."""
        state = self._state
        holds_for = (
            *(state.variables.settings, state.objects.version),
            None if state.safety is None else state.safety.definitions,
        )
        if any(map(is_not, holds_for, self._holds_for)):
            self._kept.clear()
            self._may_recur.clear()
            self._holds_for = holds_for
            self._looks_for_null = state.variables.is_on("sql_auto_is_null", default=False)
        elif len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        transaction = state.transaction
        return not (
            transaction.xid is not None
            or transaction.unknown
            or state.locked_tables is not None
            or state.unknown_programs
            or state.temporary.names
            or self._looks_for_null
        )

    def _key(self, plan: Plan) -> tuple[object, ...]:
        """All of the session that the statements of a plan hang on."""
        state = self._state
        transaction = state.transaction
        changes = transaction.changes
        return (
            *(plan, state.database),
            *(transaction.is_begun, transaction.is_active),
            *(transaction.isolation, transaction.next_isolation),
            *[(name, use.has_two_phases, use.is_changed) for name, use in changes.engines.items()],
            changes.changed_nontransactional,
            changes.changed_nontransactional_temporary,
            changes.changed_temporary_tables,
            None if state.safety is None else state.safety.transaction.known,
            *[
                (
                    *(binlog.name, binlog.is_registered, binlog.has_unsafe_content),
                    *(binlog.keeps_transaction, binlog.transaction_cache.is_empty),
                )
                for binlog in state.binlogs.values()
            ],
        )


class Attempt:
    """A statement that is carried out for the first time in some state."""

    def __init__(
        self,
        kept: dict[tuple[object, ...], _Kept],
        key: tuple[object, ...],
        state: SessionState,
        text: str,
    ) -> None:
        self._kept = kept
        self._key = key
        self._text = text
        self._state = state
        self._sizes = [len(one.transaction_cache.events) for one in state.binlogs.values()]
        self._before = [_flags(one) for one in state.binlogs.values()]
        self._transaction = state.transaction.copy()

    def was(self, result: StatementResult) -> None:
        """Keep what the statement did, if that does not hang on its text."""
        if result != StatementResult(binlogs=result.binlogs):
            return
        state = self._state
        transaction = state.transaction
        binlogs = []
        for (name, binlog), size, before in zip(
            state.binlogs.items(), self._sizes, self._before, strict=True
        ):
            waiting = binlog.transaction_cache.events[size:]
            told = result.binlogs[name]
            if binlog.statement_cache.events:
                return
            appended = self._made(waiting)
            written = self._made(told.bodies)
            if appended is None or written is None:
                return
            is_cleared = size > 0 and not binlog.transaction_cache.events
            flags = _flags(binlog)
            binlogs.append(
                _KeptBinlog(
                    name=name,
                    told=told,
                    is_untouched=not (appended or written or is_cleared) and flags == before,
                    appended=appended,
                    written=written,
                    flags=flags,
                    is_cleared=is_cleared,
                )
            )
        self._kept[self._key] = _Kept(
            binlogs=tuple(binlogs),
            transaction=None if transaction == self._transaction else transaction.copy(),
            writes=None if state.safety is None else state.safety.transaction,
        )

    def _made(self, bodies: Sequence[Body]) -> tuple[Body | _Maker, ...] | None:
        """Events, with makers for those that hold the statement's text; None if they hold more."""
        made: list[Body | _Maker] = []
        query = self._state.query(self._text, self._state.database)
        for body in bodies:
            if isinstance(body, AnnotateRowsEvent):
                if body != log_events.annotation(self._text):
                    return None
                made.append(_annotation)
            elif isinstance(body, QueryEvent) and body == query:
                made.append(_query)
            elif isinstance(body, QueryEvent) and body.query not in _ENDS:
                return None
            else:
                made.append(body)
        return tuple(made)


def _flags(binlog: Binlog) -> tuple[bool, bool, bool]:
    return binlog.is_registered, binlog.has_unsafe_content, binlog.keeps_transaction


class _KeptBinlog(NamedTuple):
    """What a statement does to one binlog.

    Attributes:
        name: Of the binlog.
        told: The result, whose events are those of the first statement.
        is_untouched: Nothing of it changes.
        appended: To the transaction cache.
        written: To the log.
        flags: As the binlog has them afterwards.
        is_cleared: What waited in the transaction cache is gone afterwards.
    """

    name: str
    told: BinlogResult
    is_untouched: bool
    appended: tuple[Body | _Maker, ...]
    written: tuple[Body | _Maker, ...]
    flags: tuple[bool, bool, bool]
    is_cleared: bool

    def again(self, binlog: Binlog, state: SessionState, text: str) -> BinlogResult:
        """Do it again."""
        if self.is_untouched:
            return self.told
        binlog.is_registered, binlog.has_unsafe_content, binlog.keeps_transaction = self.flags
        if self.is_cleared:
            binlog.transaction_cache.clear()
        elif self.appended:
            binlog.transaction_cache.events.extend(_bodies(self.appended, state, text))
        if not self.written:
            return self.told
        return BinlogResult(
            logged_as=self.told.logged_as,
            bodies=_bodies(self.written, state, text),
            server=self.told.server,
            steps=self.told.steps,
            unsafe=self.told.unsafe,
        )


class _Kept(NamedTuple):
    """What a statement does.

    Attributes:
        binlogs: To each of them.
        transaction: As it is afterwards; None if it is as before.
        writes: What `ScopeSafety` knows of the transaction afterwards.
    """

    binlogs: tuple[_KeptBinlog, ...]
    transaction: Transaction | None
    writes: TransactionWrites | None

    def again(self, state: SessionState, text: str) -> StatementResult:
        """Do it again."""
        own, after = state.transaction, self.transaction
        if after is not None:
            own.is_active = after.is_active
            own.isolation, own.next_isolation = after.isolation, after.next_isolation
            own.changes = after.changes.copy()
        if state.safety is not None and self.writes is not None:
            state.safety.transaction = self.writes
        return StatementResult(
            binlogs={
                one.name: one.again(state.binlogs[one.name], state, text) for one in self.binlogs
            }
        )


_Maker = Callable[[SessionState, str], Body]


def _annotation(_: SessionState, text: str) -> Body:
    return log_events.annotation(text)


def _query(state: SessionState, text: str) -> Body:
    return state.query(text, state.database)


def _bodies(made: Sequence[Body | _Maker], state: SessionState, text: str) -> tuple[Body, ...]:
    return tuple([one(state, text) if callable(one) else one for one in made])


# What no literal can change -----------------------------------------------------------------------


def _may_recur(plan: Plan) -> bool:
    """Whether statements of a plan that differ in literals alone do the same."""
    facts, resolved = plan.facts, plan.resolved
    return not (
        facts.effects.kind not in _KINDS
        or plan.may_branch
        or resolved.errors
        or resolved.notes
        or resolved.functions
        or resolved.is_delayed
        or facts.user_variables
        or facts.has_into
        or facts.is_delayed
        or facts.statement_assignments
        or any(
            access.table.is_sequence or access.table.is_temporary for access in resolved.accesses
        )
        or _may_be_given_ids(plan)
        or _may_be_proven_empty(facts)
    )


def _may_be_given_ids(plan: Plan) -> bool:
    """Whether a literal can be the value of an AUTO_INCREMENT column, which the server then keeps."""
    facts = plan.facts
    for access in plan.resolved.accesses:
        column = access.table.auto_increment
        if column is None or not access.changes:
            continue
        if access.is_prelocked:
            return True
        is_insert = facts.effects.kind in _INSERTS
        is_left_out = (
            facts.columns is not None
            and not facts.has_query
            and not access.via
            and column.lower() not in map(str.lower, facts.columns)
        )
        if is_insert and not is_left_out:
            return True
    return False


def _may_be_proven_empty(facts: StatementFacts) -> bool:
    """Whether it hangs on literals alone if WHERE holds."""
    statement = facts.tree
    if not isinstance(statement, Update | Delete) or statement.where is None:
        return False
    waiting: list[Node] = [statement.where]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Literal):
            return True
        if not isinstance(node, Operation):
            continue
        if all(isinstance(operand, Literal) for operand in node.operands):
            return True
        if node.operator in ("AND", "OR", "XOR", "NOT"):
            waiting.extend(node.operands)
        else:
            waiting.extend(one for one in children(node) if isinstance(one, Operation))
    return False
