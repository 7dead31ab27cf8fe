"""Fit the groups that binlogs' own logs get into the groups of the source: the plans of a statement's groups.

Beside its binlogs a session keeps the log of the source that it runs on. The events that statements append to
that log, group by group, are those that the source is about to write; the events that statements append to
the binlogs at the same time are the content of these groups there. This module puts the two together: each
statement's rows in a group, and the rows that a binlog has as text.

Each event waits, and is written, under the number of its statement. A group of a binlog belongs to the
source's group with which it shares statements. Where that leaves a doubt of any kind the statement is in the
binlog as its rows, which are never wrong:

- the statement failed, or data decides its effect;
- its rows are in more than one group of the source, or wait still as its text is written;
- the source writes its rows at once, and the binlog lets its text wait for the end of the
  transaction: the binlog then has it now, and not later; as text only if nothing but its place
  makes that unsafe;
- the binlog's group ends in another way than the source's;
- the statement uses a temporary table that the binlog does not have in the same state.

Statements without rows at the source have groups in a binlog that have none there. Of these groups only those
that change temporary tables are kept, for a mark in the source's log: later texts may need the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from binlane.statements.policy.reasons import Reason, symbol
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, Body
from binlane.statements.session.log_groups import (
    DROP_TEMPORARY,
    SAVEPOINTS,
    End,
    LogGroup,
    SourceGroup,
    are_rows,
    begins,
    groups_of,
)
from binlane.statements.session.plan_ledger import Ledger, Waiting
from binlane.statements.session.report import StatementPlan, StatementResult
from binlane.statements.session.state import SessionState
from binlane.statements.sql.servers import LoggingFormat, RowImage, larger

_UNSAFE_LATER: Final = frozenset((symbol(Reason.NONTRANS_AFTER_TRANS),))
"""Reasons that make a statement unsafe as a text only where it waits for the end of its transaction."""


class GroupFitting:
    """The fitting of one statement's groups.

    Args:
        result: Effects of the statement on each log.
        numbers: The statement's number, and those of the statements that it ran.
        ledger: The session's memory, which is changed.
        waiting: By log, the numbers of the statements that wait there after the statement.
    """

    def __init__(
        self,
        result: StatementResult,
        numbers: range,
        ledger: Ledger,
        waiting: Mapping[str, Waiting],
    ) -> None:
        self._result, self._numbers = result, numbers
        self._ledger, self._waiting = ledger, waiting
        self._names = [name for name in result.binlogs if name != SOURCE_LOG]
        self._all_names = self._names
        self._groups: list[SourceGroup] = []
        self._places: dict[int, list[int]] = {}
        self._parts: dict[tuple[str, int], list[Part]] = {}
        self._matched: set[tuple[str, int]] = set()
        self._ends: dict[tuple[str, int], list[Body | None]] = {}
        self._marked: dict[str, list[tuple[list[TextPart], Body | None]]] = {}

    def note(self, state: SessionState) -> None:
        """Note the doubts about a statement that was followed, and its temporary tables.

        Args:
            state: The session's state behind the statement.
        """
        execution, result, ledger = state.execution, self._result, self._ledger
        if execution.temporary or state.temporary.names:
            ledger.temporary.note(execution.temporary, state.temporary.names)
        doubtful = set(execution.failed)
        error = result.error
        # With a stated error its text says that a replica is to fail as it did.
        is_alone = len(self._numbers) == 1
        is_certain = error is None or (error.is_stated and not error.on_some_ways and is_alone)
        is_certain &= result.ways == 1
        # MySQL leaves rows open there, and those of the next statement join them.
        has_locks = state.locked_tables is not None and not state.server.is_mariadb
        if not is_certain or result.depends_on or (has_locks and state.is_in_transaction):
            doubtful.update(self._numbers)
        if doubtful:
            for name in self._names:
                ledger.remove(name, doubtful)

    def run(self, *, is_unlogged: bool = False) -> StatementPlan:
        """Put the groups together.

        Args:
            is_unlogged: The binlogs were not to have some of it (sql_log_bin=0).
        """
        result, numbers = self._result, self._numbers
        number, last = numbers[0], numbers[-1]
        if is_unlogged:
            self._ledger.unlogged.update(numbers)
        if result.unanalysed is not None:
            self._give_up()
            return StatementPlan(result=result, number=number, last=last)
        at_source = result.binlogs[SOURCE_LOG]
        if not any([told.bodies for told in result.binlogs.values()]):  # noqa: C419 - it is faster
            waits = self._waits_as_text()
            return StatementPlan(result=result, number=number, last=last, has_texts=waits)
        self._groups = [SourceGroup.of(group) for group in groups_of(at_source, number)]
        for place, source in enumerate(self._groups):
            for writer in dict(source.group.runs):
                self._places.setdefault(writer, []).append(place)
        # A binlog with the very same events as the source needs no fitting.
        self._names = [name for name in self._names if result.binlogs[name] is not at_source]
        for name in self._names:
            self._fit(name, groups_of(result.binlogs[name], number))
        plan = StatementPlan(
            result=result,
            number=number,
            last=last,
            groups=tuple([self._plan(place) for place in range(len(self._groups))]),
            mark=self._mark(),
        )
        has_texts = any(True for _ in plan.own_texts()) or self._waits_as_text()
        return plan._replace(has_texts=has_texts)

    def _waits_as_text(self) -> bool:
        """True if something of the statement will be in a binlog as text."""
        return any(
            self._result.binlogs[name].logged_as is not LoggingFormat.ROW
            and self._waiting[name].has_from(self._numbers[0])
            for name in self._names
        )

    def _mark(self) -> GroupPlan | None:
        """Return the plan of the changes that have no group at the source."""
        if not self._marked:
            return None
        binlogs: dict[str, tuple[Part, ...]] = {}
        ends: dict[str, TextPart | None] = {}
        for name, groups in self._marked.items():
            binlogs[name] = parts = tuple([part for texts, _ in groups for part in texts])
            if len(groups) == 1:
                ends[name] = _end_behind(parts, groups[0][1])
        return GroupPlan(binlogs=binlogs, ends=ends)

    def _give_up(self) -> None:
        """Give up the texts of a statement whose effects are not known: all that waits goes as rows."""
        self._ledger.removed_until = self._numbers[-1]
        for name in self._names:
            runs = self._result.binlogs[name].runs
            for number in {*self._numbers, *(number for _, _, number in runs)}:
                self._ledger.temporary.drop(name, number)

    # A binlog's groups -----------------------------------------------------------------------------

    def _fit(self, name: str, groups: Sequence[LogGroup]) -> None:
        """Find the parts of the source's groups that a binlog has as text.

        Groups that the source has, too, come first and in its order, as the binlog gets them.

        Args:
            name: Name of the binlog in question.
            groups: Groups that the binlog's own log gets.
        """
        written: set[int] = set()
        several: set[int] = set()
        for group in groups:
            own = {number for number, _ in group.runs}
            several |= written & own
            written |= own
        without_source: list[LogGroup] = []
        fitting: list[tuple[int, LogGroup]] = []
        for group in groups:
            place = self._place(name, group, groups)
            if place is None:
                without_source.append(group)
            else:
                fitting.append((place, group))
        for place, group in sorted(fitting, key=itemgetter(0)):
            if group.end is End.NONE:
                self._fit_alone(name, place, group)
            else:
                self._fit_transaction(name, place, group, several)
        for group in without_source:
            self._keep_temporary(name, group, several if group.end is not End.NONE else ())

    def _place(self, name: str, group: LogGroup, groups: Sequence[LogGroup]) -> int | None:
        """Return the source's group to which a binlog's group belongs; None if there is not one alone."""
        if group.end is not End.NONE:
            places = {
                place
                for number, _ in group.runs
                for place in self._places.get(number, ())
                if number in self._groups[place].sections
            }
            return places.pop() if len(places) == 1 else None
        number = group.number
        places_alone = [
            place for place in self._places.get(number, ()) if (name, place) not in self._matched
        ]
        for place in places_alone:
            if self._groups[place].group == group:
                self._matched.add((name, place))
                return place
        taken = [one.group for one in self._groups]
        left = [
            one
            for one in groups
            if one.end is End.NONE and one.number == number and one not in taken
        ]
        return places_alone[0] if len(places_alone) == len(left) == 1 else None

    def _can_be_text(self, name: str, part: TextPart, several: Iterable[int] = ()) -> bool:
        """True if a statement whose text a binlog is given now can be there as text.

        Args:
            name: Name of the binlog in question.
            part: The statement with its text.
            several: Numbers of statements that the binlog is not given as a whole now.
        """
        number = part.number
        is_whole = begins(part.bodies, DROP_TEMPORARY) or (
            number not in several
            and number not in self._waiting[name]
            and number not in self._waiting[SOURCE_LOG]
            and len(self._places.get(number, ())) <= 1
            and not self._ledger.is_removed(name, number)
        )
        return is_whole and self._ledger.temporary.can_be_used(name, number)

    def _fit_transaction(self, name: str, place: int, group: LogGroup, several: set[int]) -> None:
        """Fit a transaction of a binlog into a group of the source."""
        source = self._groups[place]
        ends_alike = source.is_split and source.group.end is group.end
        self._ends.setdefault((name, place), []).append(group.closing)
        parts = self._parts.setdefault((name, place), [])
        given = {part.number for part in parts}
        temporary = self._ledger.temporary
        for number, bodies in group.runs:
            section = source.places.get(number)
            part = self._text(number, bodies, section)
            is_filled = source.sections.get(number) != ()
            if are_rows(bodies) or (not is_filled and (number, bodies) in source.group.runs):
                if section is not None and number not in given:
                    parts.append(RowsPart(section, number))
            elif self._can_be_text(name, part, several) and (
                ends_alike or (section is None and temporary.survive_rollback(number))
            ):
                self._give(name, place, part)
            else:
                temporary.drop(name, number)
                if section is not None and number not in given:
                    parts.append(RowsPart(section, number))
            given.add(number)

    def _fit_alone(self, name: str, place: int, group: LogGroup) -> None:
        """Fit a statement that stands alone in a binlog into a group of the source."""
        number = group.number
        part = self._text(number, group.runs[0][1], self._groups[place].places.get(number))
        if (name, place) in self._matched and self._groups[place].group == group:
            self._note_given(name, part)
        elif self._can_be_text(name, part):
            self._give(name, place, part)
            self._ends.setdefault((name, place), []).append(None)
        else:
            self._ledger.temporary.drop(name, number)

    def _text(self, number: int, bodies: tuple[Body, ...], section: int | None) -> TextPart:
        return TextPart(
            section=section,
            uses_temporary=self._ledger.temporary.are_used(number),
            number=number,
            bodies=bodies,
        )

    def _give(self, name: str, place: int, part: TextPart) -> None:
        """Put a statement into a binlog as text."""
        self._parts.setdefault((name, place), []).append(part)
        self._note_given(name, part)

    def _note_given(self, name: str, part: TextPart) -> None:
        is_drop = begins(part.bodies, DROP_TEMPORARY)
        self._ledger.temporary.give(name, part.number, is_drop=is_drop)

    def _keep_temporary(self, name: str, group: LogGroup, several: Iterable[int]) -> None:
        """Keep the changes of temporary tables in a group that the source does not have."""
        temporary = self._ledger.temporary
        kept: list[TextPart] = []
        has_change = False
        for number, bodies in group.runs:
            if are_rows(bodies):
                continue
            part = self._text(number, bodies, None)
            if _is_savepoint(part):
                kept.append(part)
            elif (
                temporary.are_changed(number)
                and (number not in self._places or begins(bodies, DROP_TEMPORARY))
                and self._can_be_text(name, part, several)
            ):
                kept.append(part)
                self._note_given(name, part)
                has_change = True
            else:
                temporary.drop(name, number)
        if has_change:
            self._marked.setdefault(name, []).append((kept, group.closing))

    def _at_once(self, name: str, place: int, numbers: Sequence[int]) -> TextPart | None:
        """The text of a statement that waits in a binlog, and whose rows the source writes at once.

        Left for the end of the transaction it would stand behind what others did meanwhile. Only if
        that alone makes it unsafe: so it reads nothing that its transaction has changed.
        """
        source = self._groups[place]
        if len(numbers) != 1 or source.group.end is not End.COMMIT:
            return None
        (number,) = numbers
        told, waiting = self._result.binlogs[name], self._waiting[name]
        if not (
            number in self._numbers and number in waiting and _UNSAFE_LATER.issuperset(told.unsafe)
        ):
            return None
        bodies = waiting.bodies(number)
        part = self._text(number, bodies, source.places.get(number))
        if (
            not bodies
            or are_rows(bodies)
            or number in self._waiting[SOURCE_LOG]
            or len(self._places.get(number, ())) > 1
            or self._ledger.is_removed(name, number)
            or not self._ledger.temporary.can_be_used(name, number)
        ):
            return None
        self._note_given(name, part)
        return part

    # A group of the source -------------------------------------------------------------------------

    def _plan(self, place: int) -> GroupPlan:
        """Return a group of the source with its content in all binlogs."""
        source = self._groups[place]
        numbers = tuple(source.sections)
        binlogs: dict[str, tuple[Part, ...]] = {}
        for name in self._names:
            parts = self._of_binlog(name, place, source)
            if parts is not None:
                binlogs[name] = tuple(parts)
        image = self._image(source)
        if image is not RowImage.FULL:
            rows = tuple([RowsPart(section, number) for section, number in enumerate(numbers)])
            binlogs = {name: binlogs.get(name, rows) for name in self._all_names}
        return GroupPlan(
            sections=tuple(source.sections.values()),
            numbers=numbers,
            binlogs=binlogs,
            ends={
                name: end
                for name, parts in binlogs.items()
                for end in self._own_end(name, place, parts)
            },
            image=image,
        )

    def _image(self, source: SourceGroup) -> RowImage:
        """The row image of a group of the source."""
        images = self._ledger.images
        if not (images and source.sections):
            return RowImage.FULL
        return larger(*(images.get(number, RowImage.FULL) for number in source.sections))

    def _own_end(self, name: str, place: int, parts: Sequence[Part]) -> Iterator[TextPart | None]:
        """The end that a binlog's group has of its own."""
        ends = self._ends.get((name, place), ())
        if len(ends) != 1 or not parts:
            return
        end, at_source = ends[0], self._groups[place].group.closing
        is_text = all(isinstance(part, TextPart) for part in parts)
        if is_text and end is not at_source and end != at_source:
            yield _end_behind(parts, end)

    def _of_binlog(self, name: str, place: int, source: SourceGroup) -> Sequence[Part] | None:
        """Return a group's content in a binlog; None: the same as at the source."""
        unlogged = self._ledger.unlogged
        numbers = {number for number, _ in source.group.runs}
        parts = self._parts.get((name, place), [])
        if not source.is_undone:
            # Some rows stand in the binlog's own log at another time, or no longer.
            logged = [number for number in source.sections if number not in unlogged]
            at_once = self._at_once(name, place, logged) if not parts else None
            parts = _with_rows(parts, logged, source) if at_once is None else [at_once]
        waiting = self._waiting[name]
        self._ledger.remove(name, [number for number in source.sections if number in waiting])
        if any(isinstance(part, TextPart) and not _is_savepoint(part) for part in parts):
            return parts
        is_kept_from = not numbers.isdisjoint(unlogged) and (name, place) not in self._matched
        if is_kept_from or (source.ends_prepared and (name, place) not in self._matched):
            return parts
        return None


def _end_behind(parts: Sequence[Part], closing: Body | None) -> TextPart | None:
    """Return the end of a group, which has the context of the last statement; None without an end."""
    if closing is None:
        return None
    last = parts[-1]
    uses_temporary = isinstance(last, TextPart) and last.uses_temporary
    return TextPart(uses_temporary=uses_temporary, number=last.number, bodies=(closing,))


def _is_savepoint(part: TextPart) -> bool:
    """True if a part is a text of a savepoint, which the source has in its group, too."""
    return begins(part.bodies, SAVEPOINTS)


def _with_rows(parts: list[Part], numbers: Sequence[int], source: SourceGroup) -> list[Part]:
    """Add the rows of statements that are not among the parts, in their places.

    Args:
        parts: Parts of a binlog's group.
        numbers: Statement numbers of the sections that the binlog is to have, in order.
        source: The group as the source has it.
    """
    given = {part.number for part in parts}
    lacking = [number for number in numbers if number not in given]
    if not lacking:
        return parts
    order = {number: at for at, number in enumerate(numbers)}
    found = parts.copy()
    for number in lacking:
        later = (
            at
            for at, part in enumerate(found)
            if part.number in order and order[part.number] > order[number]
        )
        found.insert(next(later, len(found)), RowsPart(source.places[number], number))
    return found
