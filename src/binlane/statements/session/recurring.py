"""Statements that come again: the effects of one are those of another of its shape in the same state.

Most statements of an application differ from earlier ones in their literals alone, and run in the same state
of the session. Such a statement is carried out once; its events, and the transaction's state behind it, are
kept and repeated with the text of the next one. Kept are only effects that no literal can change, and none
that have a place in the text: notes, ways, errors that nobody stated.

A state of the session is found by all values that statements depend on, as long as the session goes on by
itself; a kept statement leads from one state to the next without looking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.variables import IntvarEvent, RandEvent
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome, Refusal
from binlane.statements.policy.used_objects import body_use
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.scope.transaction import TransactionWrites
from binlane.statements.session import log_events
from binlane.statements.session.decision import Plan, plan_of
from binlane.statements.session.log_events import SOURCE_LOG, Body
from binlane.statements.session.report import BinlogResult, StatementResult
from binlane.statements.session.state import SessionState
from binlane.statements.session.transaction import BinlogCaches, Cache, Runs, Transaction
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import Key, key_of, pattern
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import Dialect, LoggingFormat
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import LONG
from binlane.statements.sql.tree.expressions import (
    Default,
    Literal,
    LiteralKind,
    Name,
    Node,
    Operation,
    children,
)
from binlane.statements.sql.tree.statements import Delete, Insert, Update

KEPT_MAX: Final = 4_096
"""Statements that are kept, and states; then all begins anew."""

_INSERTS: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
_ENDS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
"""Statements that end the transaction before them."""
_KINDS: Final = (
    _INSERTS | _ENDS | {StatementKind.UPDATE, StatementKind.DELETE, StatementKind.SELECT}
)


_Key = Key | tuple[int | None, int | None, Key]
"""Key of a statement: with the number of rows and the error where these are stated."""


class Foreseen(NamedTuple):
    """The effects that a statement will have.

    Attributes:
        text: The text of the statement.
        result: The result that the statement will have.
        effect: Effects that all statements of its kind have in the same state.
    """

    text: str
    result: StatementResult
    effect: KnownEffect


class Recurring:
    """The statements of one session that come again; their kept effects serve all sessions."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._at: _Place | None = None
        self._binlogs: tuple[BinlogCaches, ...] = ()
        self._is_ahead = False
        self._split: tuple[str, Dialect, Key] | None = None
        self._foreseen: Foreseen | None = None

    def plan(self, facts: StatementFacts) -> Plan:
        """The plan of a statement of the client."""
        state = self._state
        return plan_of(facts, state.opening(state.database))

    def foresee(self, text: str, outcome: Outcome) -> Foreseen | None:
        """Return the effects that a statement will have, if they are known; see `again`."""
        is_kept = len(text) <= LONG and self._may_come_again(outcome)
        place = (self._at or self.find()) if is_kept else None
        if place is None or place.version is not self._state.objects.version:
            return None
        kept = place.kept.get(self._key(text, place.dialect, outcome))
        if kept is None:
            return None
        found = self._foreseen = Foreseen(text, kept.told(self._binlogs, text), kept)
        return found

    def _may_come_again(self, outcome: Outcome) -> bool:
        """True if an outcome leads to the same, whatever tables have got or lost rows."""
        is_told = outcome.rows == 0 and self._state.objects.filled is not None
        return not (is_told or outcome.is_proven_empty)

    def _key(self, text: str, dialect: Dialect, outcome: Outcome) -> _Key:
        """Return the parts that are equal in all statements with the same effects in one state."""
        last = self._split
        if last is not None and last[0] == text and last[1] is dialect:
            # The statement was foreseen, and is run now.
            key = last[2]
        else:
            key = key_of(text, dialect)
            self._split = (text, dialect, key)
        if outcome is NO_OUTCOME or (outcome.rows is None and outcome.error is None):
            return key
        return outcome.rows, outcome.error, key

    def again(self, text: str, outcome: Outcome) -> StatementResult | Attempt | None:
        """Repeat the known effects of a statement.

        Args:
            text: Text as the client sends it, without white space and semicolons around it.
            outcome: The stated outcome of the statement.

        Returns:
            The statement's result. If its effects are not known, an attempt that is to be told of its
            execution; None in states in which little comes again. Then the session goes on by itself.
        """
        is_kept = len(text) <= LONG and self._may_come_again(outcome)
        place = (self._at or self.find()) if is_kept else None
        if place is None:
            self.leave()
            return None
        if place.version is not self._state.objects.version:
            self.leave()
            return self.again(text, outcome)
        key = self._key(text, place.dialect, outcome)
        kept = place.kept.get(key)
        if kept is None:
            self.leave()
            return Attempt(self, place, key, text)
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is None or foreseen.effect is not kept or foreseen.text != text:
            result = kept.told(self._binlogs, text)
        else:
            result = foreseen.result
        self._is_ahead = True
        self._at = kept.after
        kept.again(self._state, self._binlogs, text)
        return result

    def unchanging(self, text: str) -> KnownEffect | None:
        """Return the known effect of a statement that leaves the session as it is; None for others.

        Args:
            text: The statement's text, as for `again`.

        Returns:
            None also where nothing of the session is logged.
        """
        place = self._at
        if place is None or place.version is not self._state.objects.version or len(text) > LONG:
            return None
        key = tuple(place.split(text))
        kept = place.kept.get(key)
        if kept is None or not (kept.is_unchanging and place.is_logging):
            self._split = (text, place.dialect, key)  # what it does is asked next
            return None
        return kept

    def stay(self) -> None:
        """Count a statement that `unchanging` gave and that has run: nothing else is new."""
        self._state.number += 1
        self._is_ahead, self._foreseen = True, None

    def leave(self) -> None:
        """Let the session go on by itself, or as another one from here on."""
        self._at = self._foreseen = None
        if not self._is_ahead:
            return
        self._is_ahead = False
        state = self._state
        # The changes so far are shared between statements, so they are copied.
        state.transaction.changes = state.transaction.changes.copy()
        status = state.variables.status_vars()
        for binlog in self._binlogs:
            binlog.status_vars = status

    def find(self) -> _Place | None:
        """Return the state of the session; None if it is a state in which little comes again."""
        state = self._state
        transaction = state.transaction
        variables = state.variables
        safety = state.safety
        self._binlogs = tuple(state.binlogs.values())
        if (
            transaction.xid is not None
            or transaction.created is not None
            or transaction.unknown
            or state.compresses
            or state.locked_tables is not None
            or state.is_read_locked
            or state.unknown_programs
            or state.temporary.names
            or state.empty_tables
            or variables.is_on("sql_auto_is_null", default=False)
            or any(binlog.statement_cache.events for binlog in self._binlogs)
        ):
            return None
        changes = transaction.changes
        key = (
            *(state.server, state.assume_engine, state.knows_accounts),
            *(state.database, state.objects.version, variables.is_format_set, variables.connection),
            *(frozenset(variables.values.items()), frozenset(variables.global_values.items())),
            None if safety is None else safety.definitions,
            state.identity,
            *(transaction.is_begun, transaction.is_active, bool(transaction.savepoints)),
            *(transaction.own, transaction.coming),
            *[(name, use.has_two_phases, use.is_changed) for name, use in changes.engines.items()],
            changes.changed_nontransactional,
            changes.changed_nontransactional_temporary,
            changes.changed_temporary_tables,
            # A refusal depends on the sets of binlogs that recorded some write, and not another.
            None
            if safety is None
            else frozenset([one.binlogs for one in safety.transaction.writes]),
            *[
                (
                    *(binlog.name, binlog.is_registered, binlog.has_unsafe_content),
                    *(binlog.keeps_transaction, not binlog.transaction_cache.events),
                )
                for binlog in self._binlogs
            ],
        )
        place = _known.places.get(key)
        if place is None:
            _known.grow()
            place = _known.places[key] = _Place(
                version=state.objects.version,
                dialect=variables.settings.dialect,
                split=pattern(variables.settings.dialect).split,
                is_logging=state.is_logging,
                has_savepoints=bool(transaction.savepoints),
            )
        self._at = place
        return place


@dataclass(slots=True, eq=False, kw_only=True)
class _Place:
    """A state of a session, as far as statements depend on it.

    Attributes:
        version: Version of the objects in this state.
        dialect: Dialect in which statements are read.
        split: Gives the pieces of a statement's `key_of`.
        is_logging: Something of the session is logged.
        has_savepoints: The open transaction has some savepoints.
        kept: Effects of statements that were carried out in this state.
    """

    version: object
    dialect: Dialect
    split: Callable[[str], list[str]]
    is_logging: bool
    has_savepoints: bool
    kept: dict[_Key, KnownEffect] = field(default_factory=dict)


class _Known:
    """The known states of all sessions.

    Attributes:
        places: States of sessions, by all values that statements depend on.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[object, ...], _Place] = {}
        self._size = 0

    def grow(self) -> None:
        """Count one more effect; forget all others if these are too many."""
        if self._size >= KEPT_MAX:
            places, self.places, self._size = self.places, {}, 0
            # A session may be in one of them.
            for place in places.values():
                place.kept.clear()
        self._size += 1


_known: Final = _Known()


class Attempt:
    """A statement that is carried out for the first time in some state."""

    def __init__(self, recurring: Recurring, place: _Place, key: _Key, text: str) -> None:
        self._recurring = recurring
        self._place = place
        self._key = key
        self._text = text
        self._transaction = Transaction()
        self._binlogs: list[tuple[list[Body], _Flags]] = []

    def begins(self, state: SessionState, facts: StatementFacts) -> bool:
        """True if the effects of a statement can be kept.

        Args:
            state: The session, before the statement is carried out.
            facts: Facts of the statement's text.
        """
        if facts.shape is None:
            return False
        if facts.effects.kind in _ENDS and self._place.has_savepoints:
            return False
        plan = self._recurring.plan(facts)
        if plan.may_recur is None:
            plan.may_recur = _may_recur(plan, state.objects)
        if plan.may_recur:
            if state.safety is not None:
                state.safety.added = TransactionWrites()
            self._transaction = state.transaction.copy()
            self._binlogs = [
                (one.transaction_cache.events.copy(), _flags(one)) for one in state.binlogs.values()
            ]
        return plan.may_recur

    def was(self, state: SessionState, result: StatementResult) -> None:
        """Keep the statement's effects, if they do not depend on its text."""
        error = result.error
        if result != StatementResult(error=error, binlogs=result.binlogs):
            return
        if error is not None and (not error.is_stated or error.why or error.others):
            return
        makers = _Makers(self._text, state)
        written: list[tuple[BinlogResult, _Made]] = []
        appended: list[_Made] = []
        cleared: list[int] = []
        flags: list[tuple[int, _Flags]] = []
        for number, (name, binlog) in enumerate(state.binlogs.items()):
            events = binlog.transaction_cache.events
            waiting, flags_before = self._binlogs[number]
            told = result.binlogs[name]
            if waiting and not events:
                cleared.append(number)
            elif events[: len(waiting)] != waiting:
                return
            now = makers.made(told.bodies, waiting)
            later = makers.made(events[len(waiting) :])
            if now is None or later is None:
                return
            written.append((replace(told, bodies=(), runs=()), now))
            appended.append(later)
            if _flags(binlog) != flags_before:
                flags.append((number, _flags(binlog)))
        after = self._recurring.find()
        if after is None:
            return
        appended_groups = [group for group in _groups(appended) if group[0].constant]
        transaction = state.transaction
        writes = _added(state)
        is_same = transaction == self._transaction
        has_waiting = any(waiting for waiting, _ in self._binlogs)
        has_more = bool(appended_groups or cleared or flags or has_waiting or writes is not None)
        _known.grow()
        self._place.kept[self._key] = KnownEffect(
            is_unchanging=after is self._place and is_same and not has_more and error is None,
            names=tuple(state.binlogs),
            error=error,
            result=None if any(now.constant for _, now in written) else result,
            written=_groups(written),
            appended=appended_groups,
            cleared=cleared,
            flags=flags,
            transaction=None if is_same else transaction.copy(),
            writes=writes,
            after=after,
        )


def _added(state: SessionState) -> TransactionWrites | None:
    """Return a statement's addition to the writes of its transaction; None if that has no writes now."""
    safety = state.safety
    return None if safety is None or not safety.transaction.writes else safety.added


_NO_WRITES: Final = TransactionWrites()
_Flags = tuple[bool, bool, bool]
_Maker = Callable[[str], Body]
_Alike = TypeVar("_Alike")


def _flags(binlog: BinlogCaches) -> _Flags:
    return binlog.is_registered, binlog.has_unsafe_content, binlog.keeps_transaction


def _groups(each: Sequence[_Alike]) -> list[tuple[_Alike, list[int]]]:
    """Group binlogs with equal values: each value with the numbers of its binlogs."""
    groups: list[tuple[_Alike, list[int]]] = []
    for number, one in enumerate(each):
        numbers = next((numbers for other, numbers in groups if other == one), None)
        if numbers is None:
            groups.append((one, [number]))
        else:
            numbers.append(number)
    return groups


class _Made(NamedTuple):
    """Events of all statements of a shape.

    Attributes:
        constant: All events; BEGIN stands for those that `makers` and `waiting` give.
        makers: Positions of the events with the statement's text, each with its maker.
        waiting: Position of all events that waited in the transaction cache; None: these are not written.
    """

    constant: tuple[Body, ...]
    makers: tuple[tuple[int, _Maker], ...]
    waiting: int | None

    def bodies(self, text: str, waiting: Sequence[Body] = ()) -> tuple[Body, ...]:
        """Return the events of one statement."""
        if not self.makers and self.waiting is None:
            return self.constant
        found = [*self.constant]
        for place, maker in self.makers:
            found[place] = maker(text)
        if self.waiting is not None:
            found[self.waiting : self.waiting + 1] = waiting
        return tuple(found)

    def runs(self, cache: Cache) -> Runs:
        """Return the ranges of the events that waited, with the numbers of their statements."""
        if self.waiting is None or not cache.marks:
            return ()
        at, begin, found = self.waiting, 0, []
        for end, number in cache.marks:
            found.append((at + begin, at + end, number))
            begin = end
        return tuple(found)


class _Makers:
    """The makers of the events that hold a statement's text.

    Args:
        text: The text of the statement.
        state: The state of the session.
    """

    def __init__(self, text: str, state: SessionState) -> None:
        database, status = state.database, state.variables.status_vars()

        def query(text: str) -> Body:
            return log_events.query(text, database, status)

        def annotation(text: str) -> Body:
            return log_events.annotation(text, state.server)

        self._makers: tuple[_Maker, ...] = (annotation, query)
        self._made = [maker(text) for maker in self._makers]

    def made(self, bodies: Sequence[Body], waiting: Sequence[Body] = ()) -> _Made | None:
        """Return the makers of events; None if events differ between statements of the shape.

        Args:
            bodies: The events of the statement.
            waiting: Events that waited in the transaction cache, and may be among `bodies`.
        """
        constant = [*bodies]
        begin = constant.index(waiting[0]) if waiting and waiting[0] in constant else None
        if begin is not None:
            if constant[begin : begin + len(waiting)] != waiting:
                return None
            constant[begin : begin + len(waiting)] = [log_events.BEGIN]
        makers: list[tuple[int, _Maker]] = []
        for place, body in enumerate(constant):
            if place == begin:
                continue
            if body in self._made:
                makers.append((place, self._makers[self._made.index(body)]))
                constant[place] = log_events.BEGIN
            elif isinstance(body, _OF_ONE_STATEMENT) and not _is_frame(body):
                return None
        return _Made(tuple(constant), tuple(makers), begin)


_NOTHING: Final = BinlogResult()
_FRAMES: Final = frozenset((b"BEGIN", b"COMMIT", b"ROLLBACK"))
_VALUES: Final = (IntvarEvent, RandEvent)
_OF_ONE_STATEMENT: Final = (AnnotateRowsEvent, RowsQueryEvent, QueryEvent, LoggedVariable)
"""Events that hold a text or values."""


def _is_frame(body: Body) -> bool:
    """True if an event begins or ends a transaction."""
    return isinstance(body, QueryEvent) and body.query in _FRAMES


@dataclass(slots=True, eq=False, kw_only=True)
class KnownEffect:
    """The effects of a statement; binlogs are identified by their numbers.

    Attributes:
        waits: Names of binlogs in whose transaction cache some event of the statement waits.
        clears: Names of binlogs whose transaction cache the statement empties before that.
        waits_as_text: The statement is a text in some binlog where it waits.
        values: Events of values that wait before that text.
        is_quiet: The statement writes nothing, and empties no cache.
        notes: Facts that other modules keep with the effect.
        names: Names of the binlogs, by number.
        error: Error that the script stated.
        result: The statement's result, if nothing is written; None: the result is made of `written`.
        written: Events written to the logs, each with the other parts of the binlogs' results.
        appended: Events appended to the transaction caches.
        cleared: Binlogs whose transaction cache is empty afterwards.
        flags: New flags of the binlogs whose flags change.
        transaction: The transaction's state afterwards; None: as before.
        writes: Writes as part of an open transaction; None if an open transaction has none afterwards.
        after: The state of the session behind the statement.
        is_unchanging: `after` is the state before the statement: nothing waits before or behind the
            statement, and it has no error.
    """

    names: Sequence[str]
    error: Refusal | None
    result: StatementResult | None
    written: Sequence[tuple[tuple[BinlogResult, _Made], Sequence[int]]]
    appended: Sequence[tuple[_Made, Sequence[int]]]
    cleared: Sequence[int]
    flags: Sequence[tuple[int, _Flags]]
    transaction: Transaction | None
    writes: TransactionWrites | None
    after: _Place
    is_unchanging: bool
    waits: frozenset[str] = field(init=False)
    clears: frozenset[str] = field(init=False)
    waits_as_text: bool = field(init=False)
    values: tuple[Body, ...] = field(init=False)
    is_quiet: bool = field(init=False)
    notes: dict[object, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the binlogs."""
        self.waits = frozenset(
            self.names[number] for _, numbers in self.appended for number in numbers
        )
        self.clears = frozenset(self.names[number] for number in self.cleared)
        formats = {
            self.names[number]: told.logged_as
            for (told, _), numbers in self.written
            for number in numbers
        }
        self.waits_as_text = any(
            formats[name] is not LoggingFormat.ROW for name in self.waits if name != SOURCE_LOG
        )
        found: list[Body] = []
        for made, _ in self.appended:
            found += [one for one in made.constant if isinstance(one, _VALUES) and one not in found]
        self.values = tuple(found)
        self.is_quiet = self.result is not None and not self.cleared

    def told(self, binlogs: Sequence[BinlogCaches], text: str) -> StatementResult:
        """Return the result that the statement will have."""
        return self.result or self._told(binlogs, text)

    def again(self, state: SessionState, binlogs: Sequence[BinlogCaches], text: str) -> None:
        """Repeat the statement's effects, on everything but the logs."""
        for number in self.cleared:
            binlogs[number].transaction_cache.clear()
        for made, numbers in self.appended:
            bodies = made.bodies(text)
            for number in numbers:
                binlogs[number].transaction_cache.events += bodies
        for number, flags in self.flags:
            one = binlogs[number]
            one.is_registered, one.has_unsafe_content, one.keeps_transaction = flags
        after = self.transaction
        if after is not None:
            own = state.transaction
            own.is_begun, own.is_active = after.is_begun, after.is_active
            own.own, own.coming = after.own, after.coming
            own.changes = after.changes
        safety = state.safety
        if safety is not None:
            writes = self.writes
            safety.transaction = _NO_WRITES if writes is None else safety.transaction.joined(writes)

    def appends(self, name: str, text: str) -> tuple[Body, ...]:
        """Return the events that the statement appends to the transaction cache of a binlog."""
        found: list[Body] = []
        for made, numbers in self.appended:
            if any(self.names[number] == name for number in numbers):
                found += made.bodies(text)
        return tuple(found)

    def _told(self, binlogs: Sequence[BinlogCaches], text: str) -> StatementResult:
        told: dict[str, BinlogResult] = dict.fromkeys(self.names, _NOTHING)
        for (known, made), numbers in self.written:
            found, waited = known, None
            for number in numbers:
                cache = binlogs[number].transaction_cache
                is_other = made.waiting is not None and (cache.events, cache.marks) != waited
                if made.constant and (found is known or is_other):
                    waited = cache.events, cache.marks
                    found = BinlogResult(
                        logged_as=known.logged_as,
                        bodies=made.bodies(text, cache.events),
                        server=known.server,
                        steps=known.steps,
                        unsafe=known.unsafe,
                        runs=made.runs(cache),
                    )
                told[self.names[number]] = found
        return StatementResult(error=self.error, binlogs=told)


# Effects that no literal can change ---------------------------------------------------------------


def _may_recur(plan: Plan, objects: SchemaCatalog) -> bool:
    """True if statements of a plan that differ in literals alone do the same."""
    facts, resolved = plan.facts, plan.resolved
    return not (
        facts.effects.kind not in _KINDS
        or plan.may_branch
        or resolved.errors
        or resolved.notes
        or resolved.functions
        or plan.random_tables
        or resolved.is_delayed
        or facts.user_variables
        or facts.has_into
        or facts.is_delayed
        or facts.statement_assignments
        or any(
            access.table.is_sequence or access.table.is_temporary for access in resolved.accesses
        )
        or _has_variables_in_triggers(plan, objects)
        or _may_be_given_ids(plan)
        or _may_be_proven_empty(facts)
    )


def _has_variables_in_triggers(plan: Plan, objects: SchemaCatalog) -> bool:
    """True if a trigger reads user variables, which are no part of the session's state here."""
    return any(
        facts.user_variables
        for access in plan.resolved.accesses
        if access.changes
        for trigger in objects.triggers(access.name)
        for facts in body_use(trigger.body, trigger.name.database, trigger.dialect).facts
    )


def _may_be_given_ids(plan: Plan) -> bool:
    """True if a literal can be the value of an AUTO_INCREMENT column, or let the server choose it."""
    facts = plan.facts
    for access in plan.resolved.accesses:
        column = access.table.auto_increment
        if column is None or not access.changes:
            continue
        if access.is_prelocked:
            return True
        if facts.effects.kind in _INSERTS and (
            access.via or not _are_given_alike(facts, access.table, column.lower())
        ):
            return True
    return False


def _are_given_alike(facts: StatementFacts, table: Table, column: str) -> bool:
    """True if all statements of an INSERT's shape give a column a value, or none does."""
    statement = facts.tree
    if not isinstance(statement, Insert) or facts.has_query:
        return False
    names = facts.columns
    if names is None:
        names = tuple(each.name for each in table.definition.columns)
    places = [place for place, name in enumerate(names) if name.lower() == column]
    if not places:
        return facts.columns is not None
    return all(
        len(row.items) == len(names) and _is_alike(row.items[places[0]], facts)
        for row in statement.rows or ()
    )


def _is_alike(value: Node, facts: StatementFacts) -> bool:
    """True if a value is NULL, 0, DEFAULT or another integer in all statements of a shape."""
    if isinstance(value, Default):
        return value.column is None
    if not isinstance(value, Literal):
        return False
    is_integer = value.kind is LiteralKind.NUMBER and facts.text_of(value).isdecimal()
    return is_integer or value.kind is LiteralKind.NULL


def _may_be_proven_empty(facts: StatementFacts) -> bool:
    """True if only literals decide whether WHERE holds, or whether two of its conditions can meet."""
    statement = facts.tree
    if not isinstance(statement, Update | Delete) or statement.where is None:
        return False
    compared: set[str] = set()
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
            names = {one.parts[-1].lower() for one in node.operands if isinstance(one, Name)}
            if node.operator == "BETWEEN" or not compared.isdisjoint(names):
                return True
            compared |= names
            waiting.extend(one for one in children(node) if isinstance(one, Operation))
    return False
