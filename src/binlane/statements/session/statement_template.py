"""A statement's effects with holes for its text: those of all statements that are alike, in one state of a session.

`recurring` finds the template of a statement. From it come the events that the statement writes and appends,
the state of the session behind it, and its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from binlane.log.codec.query import AnnotateRowsEvent, QueryEvent, RowsQueryEvent
from binlane.log.codec.variables import IntvarEvent, RandEvent
from binlane.statements.policy.refusals import Refusal
from binlane.statements.programs.host import LoggedVariable
from binlane.statements.scope.transaction import NO_WRITES, TransactionWrites
from binlane.statements.session import log_events
from binlane.statements.session.caches import BinlogCaches, Cache
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, Body
from binlane.statements.session.report import BinlogResult, StatementPlan, StatementResult
from binlane.statements.session.state import SessionState
from binlane.statements.session.transaction import Runs, Transaction
from binlane.statements.session.variables import Variables
from binlane.statements.sql.reading import Key
from binlane.statements.sql.servers import Dialect, LoggingFormat

CacheFlags = tuple[bool, bool, bool]
"""`is_registered`, `has_unsafe_content` and `keeps_transaction` of a binlog's caches."""
_Maker = Callable[[str], Body]
TemplateKey = Key | tuple[int | None, int | None, Key]
"""Key of a statement: with the number of rows and the error where these are stated."""


class EventsTemplate(NamedTuple):
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


class EventTemplates:
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

    def made(self, bodies: Sequence[Body], waiting: Sequence[Body] = ()) -> EventsTemplate | None:
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
            if not isinstance(body, _OF_ONE_STATEMENT) or _is_frame(body):
                continue
            if body not in self._made:
                return None
            makers.append((place, self._makers[self._made.index(body)]))
            constant[place] = log_events.BEGIN
        return EventsTemplate(tuple(constant), tuple(makers), begin)


_NOTHING: Final = BinlogResult()
_FRAMES: Final = frozenset((b"BEGIN", b"COMMIT", b"ROLLBACK"))
_VALUES: Final = (IntvarEvent, RandEvent)
_OF_ONE_STATEMENT: Final = (AnnotateRowsEvent, RowsQueryEvent, QueryEvent, LoggedVariable)
"""Events that hold a text or values."""


def _is_frame(body: Body) -> bool:
    """True if an event begins or ends a transaction."""
    return isinstance(body, QueryEvent) and body.query in _FRAMES


class PlanTemplate(NamedTuple):
    """The plan that all statements with a template share.

    Attributes:
        plan: Plan of the first statement.
        texts: For each group, by binlog the positions of the parts' events among those that the binlog is
            given; None for rows.
    """

    plan: StatementPlan
    texts: tuple[Mapping[str, tuple[slice | None, ...]], ...]

    @classmethod
    def of(cls, plan: StatementPlan) -> PlanTemplate:
        """Return the template of the plan of a statement for which nothing waits."""
        binlogs = plan.result.binlogs
        texts = tuple(
            {
                name: tuple([_position(part, binlogs[name].bodies) for part in parts])
                for name, parts in group.binlogs.items()
            }
            for group in plan.groups
        )
        return cls(plan, texts)

    def planned(self, result: StatementResult, number: int) -> StatementPlan:
        """Return the plan of another statement.

        Args:
            result: Effects of the statement on each log.
            number: Number of the statement, from 1.
        """
        groups = [
            GroupPlan(
                sections=group.sections,
                numbers=(number,) if group.numbers else (),
                binlogs={
                    name: tuple(
                        _parts(group.binlogs[name], number, result.binlogs[name].bodies, at)
                    )
                    for name, at in texts.items()
                },
                ends={
                    name: None if end is None else end._replace(number=number)
                    for name, end in group.ends.items()
                },
            )
            for group, texts in zip(self.plan.groups, self.texts, strict=True)
        ]
        return self.plan._replace(result=result, number=number, last=number, groups=tuple(groups))


def _position(part: Part, bodies: Sequence[Body]) -> slice | None:
    if isinstance(part, RowsPart):
        return None
    size = len(part.bodies)
    begin = next(at for at in range(len(bodies)) if bodies[at : at + size] == part.bodies)
    return slice(begin, begin + size)


def _parts(
    parts: Iterable[Part], number: int, bodies: tuple[Body, ...], positions: Iterable[slice | None]
) -> list[Part]:
    return [
        RowsPart(0, number)
        if position is None
        else TextPart(section=part.section, number=number, bodies=bodies[position])
        for part, position in zip(parts, positions, strict=True)
    ]


@dataclass(slots=True, eq=False, kw_only=True)
class StatementTemplate:
    """The effects of a statement; binlogs are identified by their numbers.

    Attributes:
        waits: Names of binlogs in whose transaction cache some event of the statement waits.
        clears: Names of binlogs whose transaction cache the statement empties before that.
        waits_as_text: The statement is a text in some binlog where it waits.
        values: Events of values that wait before that text.
        is_quiet: The statement writes nothing, and empties no cache.
        is_waiting: All that the statement logs waits for the end of its transaction.
        is_end: The statement ends a transaction, of which nothing waits behind it, and adds nothing itself.
        is_foreseen: The statement may be told of by `PlanningSession.plain`.
        plan: The plan of the statements, where nothing waits; None: not made yet.
        sent: The plan's bytes as its sender keeps them, by the context in which statements are sent.
        names: Names of the binlogs, by number.
        error: Error that the script stated.
        result: The statement's result, if nothing is written; None: the result is made of `written`.
        written: Events written to the logs, each with the other parts of the binlogs' results.
        appended: Events appended to the transaction caches.
        cleared: Binlogs whose transaction cache is empty afterwards.
        flags: New flags of the binlogs whose flags change.
        transaction: The transaction's state afterwards; None: as before.
        writes: Writes as part of an open transaction; None if an open transaction has none afterwards.
        before: The state of the session before the statement.
        after: The state of the session behind the statement.
        settings: Variables and default database afterwards, of a statement that changes them; None: as
            before.
        is_unchanging: `after` is the state before the statement: nothing waits before or behind the
            statement, and it has no error.
        is_silent: The statement writes and appends nothing, and has no error; something may wait before it.
    """

    names: Sequence[str]
    error: Refusal | None
    result: StatementResult | None
    written: Sequence[tuple[tuple[BinlogResult, EventsTemplate], Sequence[int]]]
    appended: Sequence[tuple[EventsTemplate, Sequence[int]]]
    cleared: Sequence[int]
    flags: Sequence[tuple[int, CacheFlags]]
    transaction: Transaction | None
    writes: TransactionWrites | None
    before: StartState
    after: StartState
    is_unchanging: bool
    is_silent: bool
    settings: tuple[Variables, str] | None = None
    waits: frozenset[str] = field(init=False)
    clears: frozenset[str] = field(init=False)
    waits_as_text: bool = field(init=False)
    values: tuple[Body, ...] = field(init=False)
    is_quiet: bool = field(init=False)
    is_waiting: bool = field(init=False)
    is_end: bool = field(init=False)
    is_foreseen: bool = field(init=False)
    plan: PlanTemplate | None = None
    sent: dict[object, Any] = field(default_factory=dict)

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
        self.is_waiting = self.is_quiet and bool(self.appended) and self.error is None
        is_over = self.transaction is not None and not self.transaction.is_active
        self.is_end = bool(self.cleared) and is_over and not self.appended and self.error is None
        is_aside = self.is_unchanging or self.is_silent
        self.is_foreseen = is_aside or self.is_waiting or self.is_end

    def stays_at(self, place: StartState) -> bool:
        """True if the statement changes nothing of a session that is in some state."""
        is_aside = self.writes is None or not (self.writes.writes or self.writes.known)
        return self.is_silent and self.after is place and self.transaction is None and is_aside

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
        if self.settings is not None:
            state.variables.become(self.settings[0])
            state.database = self.settings[1]
        safety = state.safety
        if safety is not None:
            writes = self.writes
            safety.transaction = NO_WRITES if writes is None else safety.transaction.joined(writes)

    def appends(self, name: str, text: str) -> tuple[Body, ...]:
        """Return the events that the statement appends to the transaction cache of a binlog."""
        found: list[Body] = []
        for made, numbers in self.appended:
            if any(self.names[number] == name for number in numbers):
                found += made.bodies(text)
        return tuple(found)

    def waiting_texts(self, text: str) -> list[tuple[Body, ...]]:
        """Return what the statement appends as a text to transaction caches; what several have, once."""
        as_text = {
            number
            for (told, _), numbers in self.written
            for number in numbers
            if told.logged_as is not LoggingFormat.ROW and self.names[number] != SOURCE_LOG
        }
        return [
            made.bodies(text) for made, numbers in self.appended if as_text.intersection(numbers)
        ]

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


@dataclass(slots=True, eq=False, kw_only=True)
class StartState:
    """A state of a session, as far as statements depend on it.

    Attributes:
        version: Version of the objects in this state.
        dialect: Dialect in which statements are read.
        split: Gives the pieces of a statement's `key_of`.
        is_logging: Something of the session is logged.
        has_savepoints: The open transaction has some savepoints.
        is_active: A transaction is open that has begun to work.
        templates: Effects of statements that were carried out in this state, by what such statements share.
        texts: Effects of other statements, by their texts.
    """

    version: object
    dialect: Dialect
    split: Callable[[str], list[str]]
    is_logging: bool
    has_savepoints: bool
    is_active: bool
    templates: dict[TemplateKey, StatementTemplate] = field(default_factory=dict)
    texts: dict[TemplateKey, StatementTemplate] = field(default_factory=dict)


class ExpectedResult(NamedTuple):
    """The effects that a statement will have.

    Attributes:
        text: The text of the statement.
        result: The result that the statement will have.
        template: Effects that all statements of its kind have in the same state.
    """

    text: str
    result: StatementResult
    template: StatementTemplate
