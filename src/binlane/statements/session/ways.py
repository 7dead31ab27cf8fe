"""A statement followed on every way that data can make it take, and the result of all ways together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.statements.policy.reasons import Reason, symbol
from binlane.statements.policy.refusals import Outcome, Refusal
from binlane.statements.programs.host import Prepared, ProgramState, Remembered
from binlane.statements.programs.ways import AlreadyFollowed, Found, Paths, SinglePath
from binlane.statements.session.report import BinlogResult, Note, StatementResult, Unanalysed
from binlane.statements.session.state import SessionState
from binlane.statements.sql.evaluation.values import UNKNOWN, Value
from binlane.statements.sql.servers import LoggingFormat

_POSITIONS: Final = {symbol(reason): reason.position for reason in Reason}
_POSSIBLE_MAX: Final = 64
"""A variable of more values is as good as unknown."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of the statement, from its beginning to its end.

    Attributes:
        result: Result of the statement on this way.
        after: The session behind the statement; None where the way goes on like another one.
        fails_by_itself: The statement's own error ends the way, not a stated one.
    """

    result: StatementResult
    after: SessionState | None
    fails_by_itself: bool


def follow(
    state: SessionState,
    carry_out: Callable[[], None],
    result: Callable[[], StatementResult],
    outcome: Outcome,
    before: SessionState,
) -> StatementResult:
    """Carry out a statement on each of its ways.

    The session goes on from the first way in the text that agrees with the stated outcome; state that differs
    on other ways is unknown then.

    Args:
        state: The state of the session.
        carry_out: Carries out the statement once.
        result: Gives the result of that execution.
        outcome: The stated outcome of the statement.
        before: The session's state before the statement.
    """
    ways = Paths(lambda: _found(state), lambda: _digest(state))
    state.programs.ways = ways
    followed: list[_Way] = []
    effort = state.programs.effort
    for _ in ways.each():
        if followed:
            _begin(state, before, ways)
        is_ended = True
        try:
            carry_out()
            expected = state.programs.expected
            if expected is not None:
                _begin(state, before, ways)
                ways.again()
                state.programs.expected = expected
                carry_out()
            ways.end()
        except AlreadyFollowed:
            is_ended = False
        if not followed and ways.is_complete:
            told = result()
            state.programs.ways, state.programs.expected = SinglePath(), None
            return told
        expected = state.programs.expected
        followed.append(
            _Way(
                result(),
                state.snapshot() if is_ended else None,
                expected is not None and expected.fails,
            )
        )
        if effort.is_spent:
            break
    state.programs.ways, state.programs.expected = SinglePath(), None
    if len(followed) == 1:
        return followed[0].result
    followed = _agreeing(followed, outcome)
    chosen = _chosen(followed)
    if chosen.after is not None:
        state.restore(chosen.after)
    state.programs.ways, state.programs.expected = SinglePath(), None
    others = [way.after for way in followed if way.after is not None and way is not chosen]
    _forget_differences(state, others, before)
    found = _joined(chosen.result, [way.result for way in followed], ways)
    if ways.is_complete or found.unanalysed is not None:
        return found
    reason = f"it has more ways than are followed, by what {ways.waiting_for.text!r} may be"
    return replace(found, unanalysed=Unanalysed(reason=reason, offset=0, length=0))


def _begin(state: SessionState, before: SessionState, ways: Paths) -> None:
    effort = state.programs.effort
    state.restore(before)
    state.programs.effort, state.programs.ways = effort, ways
    effort.begin_way()


def _agreeing(followed: list[_Way], outcome: Outcome) -> list[_Way]:
    """The ways that a stated error leaves."""
    if outcome.error is None:
        return followed

    def agrees(way: _Way) -> bool:
        error = way.result.error
        return way.fails_by_itself and error is not None and error.errno == outcome.error

    if any(agrees(way) for way in followed):
        return [way for way in followed if way.after is None or agrees(way)]
    return [way for way in followed if not way.fails_by_itself] or followed


def _chosen(followed: Sequence[_Way]) -> _Way:
    """The first way in the text that runs to its end, without an error if there is one."""
    ended = [way for way in followed if way.after is not None]
    return next((way for way in ended if way.result.error is None), ended[0])


def _found(state: SessionState) -> Found:
    """Return the findings of the statement so far."""
    execution = state.execution
    found: Found = Counter(("note", note.reason) for note in execution.notes)
    for name, reasons in execution.unsafe.items():
        found.update(("unsafe", name, reason) for reason in reasons)
    if execution.error is not None:
        found["error", execution.error.errno] += 1
    return found


def _digest(state: SessionState) -> object:
    """Return all state that the rest of a way can depend on, programs and objects left out."""
    return (
        *(state.database, state.variables.values, state.variables.global_values),
        *(state.variables.connection, state.transaction, state.prepared_xa, state.temporary),
        *(
            state.locked_tables,
            state.is_read_locked,
            state.sequence_values,
            state.null_is_insert_id,
        ),
        state.empty_tables,
        *(sorted(state.execution.row_binlogs), state.execution.is_in_procedure),
        *(state.programs.prepared, state.programs.possible),
        None if state.safety is None else state.safety.state(),
        [
            (
                *(one.is_registered, one.has_unsafe_content, one.keeps_transaction),
                *(one.positions.keys(), one.held_temporary),
                *(one.statement_cache.is_empty, one.transaction_cache.is_empty),
            )
            for one in state.binlogs.values()
        ],
    )


# Knowledge behind all ways -----------------------------------------------------------------------


def _forget_differences(
    state: SessionState, others: Sequence[SessionState], before: SessionState
) -> None:
    """Take over the variables, prepared statements and objects that other ways leave."""
    programs = state.programs
    for other in others:
        _join_variables(programs, other.programs)
        _join_prepared(programs, other.programs)
        state.objects.add(other.objects, before.objects)


def _join_variables(own: ProgramState, other: ProgramState) -> None:
    own.variable_names = {**other.variable_names, **own.variable_names}
    for name in {**own.user_variables, **other.user_variables}:
        values = dict.fromkeys((*_values(own, name), *_values(other, name)))
        if len(values) == 1 and UNKNOWN not in values:
            continue
        own.user_variables[name] = UNKNOWN
        if UNKNOWN in values or len(values) > _POSSIBLE_MAX:
            own.possible.pop(name, None)
        else:
            own.possible[name] = tuple(values)


def _values(programs: ProgramState, name: str) -> tuple[Value, ...]:
    return programs.possible.get(name) or (programs.user_variables.get(name),)


def _join_prepared(own: ProgramState, other: ProgramState) -> None:
    for name in {**own.prepared, **other.prepared}:
        one, two = own.prepared.get(name), other.prepared.get(name)
        texts = [(None,) if each is None else each.statements for each in (one, two)]
        known = () if () in texts else tuple(dict.fromkeys(text for each in texts for text in each))
        own.prepared[name] = Prepared(
            known, *((Remembered(),) if one is None else (one.remembered, one.dialect))
        )


# Results of all ways -----------------------------------------------------------------------------


def _joined(
    chosen: StatementResult, results: Sequence[StatementResult], ways: Paths
) -> StatementResult:
    common = ways.common()
    conditions = ways.conditions()
    return StatementResult(
        error=_error(chosen, results, is_on_all=any(each[0] == "error" for each in common)),
        notes=_notes(results, {each[1] for each in common if each[0] == "note"}),
        binlogs={
            name: _binlog(
                [result.binlogs[name] for result in results if name in result.binlogs],
                binlog,
            )
            for name, binlog in chosen.binlogs.items()
        },
        unanalysed=next((each.unanalysed for each in results if each.unanalysed), None),
        ways=ways.followed if conditions else 1,
        depends_on=conditions,
    )


def _error(
    chosen: StatementResult, results: Sequence[StatementResult], *, is_on_all: bool
) -> Refusal | None:
    errors = [each.error for each in (chosen, *results) if each.error is not None]
    if not errors or is_on_all:
        return errors[0] if errors else None
    # A refusal of ours is worse than an error of the program's own.
    error = next((each for each in errors if not each.is_own), errors[0])
    return replace(error, on_some_ways=True, is_stated=error.is_stated or error.is_own)


def _notes(results: Sequence[StatementResult], common: set[Hashable]) -> tuple[Note, ...]:
    found: dict[str, list[Note]] = {}
    for result in results:
        for note in result.notes:
            found.setdefault(note.reason, []).append(note)
    return tuple(
        replace(
            notes[0],
            binlogs=tuple(dict.fromkeys(name for note in notes for name in note.binlogs)),
            on_some_ways=reason not in common,
        )
        for reason, notes in sorted(found.items(), key=lambda each: _POSITIONS[each[0]])
    )


def _binlog(results: Sequence[BinlogResult], chosen: BinlogResult) -> BinlogResult:
    formats = {result.logged_as for result in results}
    logged_as = next(
        (one for one in (LoggingFormat.ROW, LoggingFormat.STATEMENT) if one in formats), None
    )
    return chosen._replace(
        logged_as=logged_as,
        unsafe=tuple(dict.fromkeys(reason for result in results for reason in result.unsafe)),
        ways=len({(result.logged_as, result.events) for result in results}),
    )
