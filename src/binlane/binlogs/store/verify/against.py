"""Scoped binlogs against the full log that they come from: together they are the full log.

Groups are found by their GTIDs, those without by what they do. Then, change by change:

- Rows are the same, or have the images that one of the kinds of ROW_IMAGE leaves of them, all of
  them by the rule: which kind holds for a group may be its session's choice.
- Every change of the full log is in some binlog, except statements that touch no object, and phases
  of an ALTER that do nothing.
- A binlog has nothing that the full log does not have, nothing twice, and all in the same order.
- A binlog that has changes of a table has all of them, whatever other binlogs have of it.

Where scopes are not given, the first changes of each table teach which binlog has the table. Where
they are, a binlog has all that its scope holds, and nothing else: a change in no scope may be
nowhere, and a change that a scope can hold only by halves may be a part, an INCIDENT, or nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from binlane.binlogs.routing.statement_verdicts import names_only
from binlane.binlogs.routing.table_births import COMING
from binlane.binlogs.store.verify.contents import ChangeKind, GroupChanges, LoggedChange, contents
from binlane.binlogs.store.verify.cursors import ScopedLog
from binlane.binlogs.store.verify.faults import Fault
from binlane.binlogs.store.verify.log import LogFiles, Options
from binlane.binlogs.store.verify.statement_parts import is_part, names_in
from binlane.errors import CodecError, StoreError
from binlane.names import TableName
from binlane.positions import AnyGtid, Gtid, MysqlGtid, Position, nothing_done
from binlane.statements.scope.changes import changes_in_text
from binlane.statements.scope.safety import coverage
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.statement_kinds import StatementKind

_WITHOUT_OBJECTS: Final = frozenset(
    {
        StatementKind.EMPTY,
        StatementKind.SESSION,
        StatementKind.SET,
        StatementKind.FLUSH,
        StatementKind.LOCK,
        StatementKind.SERVER,
        StatementKind.TABLESPACE,
        StatementKind.CREATE_REFERENCE_SYSTEM,
        StatementKind.DROP_REFERENCE_SYSTEM,
    }
)


ScopeChange = tuple[AnyGtid, Mapping[str, Scope]]
"""The last event group before others hold, and these."""
_KINDS: Final[Mapping[str, type[AnyGtid]]] = MappingProxyType({"mariadb": Gtid, "mysql": MysqlGtid})


def differences(
    binlogs: Sequence[LogFiles],
    full: LogFiles,
    *,
    span: tuple[Position | None, Position | None],
    scopes: Mapping[str, Scope] | None = None,
    changes: Sequence[ScopeChange] = (),
    options: Options,
) -> Iterator[Fault]:
    """Compare scoped binlogs with the full log.

    Args:
        binlogs: Files of each scoped binlog.
        full: Files of the full log.
        span: Positions done before the full log's first event group and behind its last one, where
            it has GTIDs.
        scopes: Scope of each binlog by its name; None where scopes are to be learned.
        changes: Scope changes that hold behind event groups, in the order of the log.
        options: Keys of files that are encrypted, and the tally that takes notes.

    Yields:
        Each difference, where it stands: something missing in the full log, something too many in
        the scoped one. A file that cannot be read ends the comparison.
    """
    try:
        cursors = [ScopedLog(log, span, options.keys) for log in binlogs]
        comparison = _Comparison([log.name for log in binlogs], scopes)
        done: Position | None = None if span[1] is None else nothing_done(span[1].flavor)
        before: Position | None = done if span[0] is None else span[0]
        left = list(changes)
        for group in contents(full.paths, keys=options.keys, is_live=full.is_live, is_full=True):
            while left and before is not None and before.covers(left[0][0]):
                comparison.scopes = left.pop(0)[1]
            done, before = _advanced(done, group.gtid), _advanced(before, group.gtid)
            found: dict[str, GroupChanges] = {}
            for cursor in cursors:
                yield from cursor.skip_strangers(group, done)
                part = cursor.part_of(group)
                if part is not None:
                    found[cursor.name] = part
            arrived = {name for name, part in found.items() if _brings_table_in(part)}
            absent = {each.name for each in cursors if not each.has_begun(group)} | arrived
            for cursor in cursors:
                if cursor.name in arrived:
                    cursor.note_arrival(found.pop(cursor.name))
            yield from comparison.compare(group, found, absent)
        for cursor in cursors:
            yield from cursor.rest()
            options.tally.notes.extend(cursor.notes())
    except CodecError as error:
        what = f"cannot be compared: {error.message}"
        yield Fault(error.file or full.name, error.position or 0, what)
    except StoreError as error:
        yield Fault(full.name, 0, f"cannot be compared: {error}")


def _advanced(position: Position | None, gtid: AnyGtid | None) -> Position | None:
    """A position behind a group; GTIDs of two kinds in one log were told of before."""
    if position is None or not isinstance(gtid, _KINDS[position.flavor]):
        return position
    return position.advance(gtid)


class _Comparison:
    """Compares the changes of groups, and learns whose changes each binlog has.

    Args:
        names: Names of the scoped binlogs.
        scopes: Scopes of the binlogs, by name; None where they are to be learned.

    Attributes:
        scopes: Scopes that hold for the next group.
    """

    def __init__(self, names: Sequence[str], scopes: Mapping[str, Scope] | None) -> None:
        self._names = names
        self.scopes = scopes
        self._members: dict[TableName, set[str]] = {}
        self._late: set[str] = set()

    def compare(
        self, full: GroupChanges, found: Mapping[str, GroupChanges], absent: set[str]
    ) -> Iterator[Fault]:
        """Compare an event group with the parts of it that binlogs have.

        Args:
            full: The group of the full log.
            found: The parts of it, by the binlog.
            absent: The binlogs that began behind the group, and need no part.
        """
        self._late |= absent
        owners: list[set[str]] = [set() for _ in full.changes]
        rewritten: dict[str, list[LoggedChange]] = defaultdict(list)
        stopped = set(absent)
        others = [
            (name, change)
            for name, part in found.items()
            for change in _match(name, full.changes, part.changes, owners)
        ]
        for name, change in others:
            if change.kind is ChangeKind.STATEMENT:
                rewritten[name].append(change)
                continue
            is_incident = change.kind is ChangeKind.INCIDENT
            stopped |= {name} if is_incident else set()
            # With scopes, an INCIDENT stands for a change that a scope cannot hold.
            if not is_incident or self.scopes is None:
                yield _fault(change, f"{change.text} is not in the full log, or not here")
        parts = [change for changes in rewritten.values() for change in changes]
        for part_of in parts:
            if not any(is_part(part_of, whole) for whole in full.changes):
                what = f"{part_of.text} is neither in the full log nor a part of what is there"
                yield _fault(part_of, what)
        for change, has in zip(full.changes, owners, strict=True):
            if self.scopes is None:
                yield from self._check_members(change, has, stopped | rewritten.keys())
                if not (has or stopped or change.is_undone):
                    yield from self._check_nowhere(change, parts)
            else:
                yield from _check_scopes(change, has, self.scopes, rewritten, stopped)
        yield from self._check_shared(full.changes, owners)

    def _check_members(
        self, change: LoggedChange, has: set[str], excused: set[str]
    ) -> Iterator[Fault]:
        """Check that all have a change whose table is theirs; learn whose it is."""
        tables = _tables_of(change)
        missing: set[str] = set().union(*(self._members.get(table, set()) for table in tables))
        # If no binlog has the change, that is said once.
        for name in sorted(missing - has - excused if has else ()):
            what = f"{change.text} is not in binlog {name}, which has those before it"
            yield _fault(change, what)
        if not has or len(tables) != 1:
            return
        (table,) = tables
        members = self._members.setdefault(table, set(has))
        for name in sorted(has - members):
            members.add(name)
            if name in self._late:
                continue
            what = f"{change.text} is in binlog {name}, which lacks those of {table} before it"
            yield _fault(change, what)

    def _check_nowhere(
        self, change: LoggedChange, parts: Sequence[LoggedChange]
    ) -> Iterator[Fault]:
        """Check that there is a reason why a change is in no binlog, or that its parts are."""
        effects = change.effects
        if change.kind is ChangeKind.SHARED or (effects and effects.kind in _WITHOUT_OBJECTS):
            return
        mine = [part for part in parts if is_part(part, change)]
        if effects is None or not mine:
            yield _fault(change, f"{change.text} is in no binlog")
            return
        there = {name for part in mine if part.effects for name in names_in(part.effects)}
        for table in (*effects.drops, *effects.renamed_tables):
            if table not in there:
                yield _fault(change, f"{change.text} is in no binlog as far as {table} goes")

    def _check_shared(
        self, changes: Sequence[LoggedChange], owners: Sequence[set[str]]
    ) -> Iterator[Fault]:
        """Check that whoever has a part of a transaction has its savepoints, too."""
        pairs = list(zip(changes, owners, strict=True))
        owning = set().union(
            *(has for change, has in pairs if change.kind is not ChangeKind.SHARED)
        )
        for change, has in pairs:
            if change.kind is ChangeKind.SHARED:
                for name in sorted(owning - has):
                    what = f"{change.text} is not in binlog {name}, which has its transaction"
                    yield _fault(change, what)


def _check_scopes(
    change: LoggedChange,
    has: set[str],
    scopes: Mapping[str, Scope],
    rewritten: Mapping[str, Sequence[LoggedChange]],
    stopped: set[str],
) -> Iterator[Fault]:
    """Check that a change is where scopes say it is, and nowhere else.

    Args:
        change: A change of the full log.
        has: The binlogs that have it.
        scopes: Scopes of the binlogs, by name.
        rewritten: By binlog, the statements of its group that are not in the full log so.
        stopped: The binlogs of which the group has an INCIDENT.
    """
    for name, scope in scopes.items():
        is_held = _is_held(change, scope)
        if is_held is False and name in has:
            yield _fault(change, f"{change.text} is in binlog {name}, out of its scope")
        if not is_held or name in has or name in stopped or change.is_undone:
            continue
        if not any(is_part(part, change) for part in rewritten.get(name, ())):
            yield _fault(change, f"{change.text} is not in binlog {name}, in whose scope it is")


def _is_held(change: LoggedChange, scope: Scope) -> bool | None:
    """True if a binlog of a scope must have a change as it is, False if not; None where either may be."""
    if change.table is not None:
        return scope.includes(change.table)
    effects = change.effects
    if effects is None or effects.stopped_at is not None or effects.is_temporary:
        return None
    covered = coverage(changes_in_text(effects), scope)
    if covered.is_empty:
        return False if covered.changes else None
    return True if covered.is_whole and names_only(effects, scope) else None


def _match(
    name: str, full: Sequence[LoggedChange], part: Sequence[LoggedChange], owners: list[set[str]]
) -> Iterator[LoggedChange]:
    """Find the changes of a binlog's group in the full one, in order.

    Yields:
        Those that are not there.
    """
    places: defaultdict[LoggedChange, list[int]] = defaultdict(list)
    for index, change in enumerate(full):
        places[change].append(index)
    start = 0
    for change in part:
        there = places.get(change, [])
        at = bisect_left(there, start)
        place = there[at] if at < len(there) else _place_of_cut(change, full, start)
        if place is None:
            yield change
        else:
            owners[place].add(name)
            start = place + 1


def _place_of_cut(change: LoggedChange, full: Sequence[LoggedChange], start: int) -> int | None:
    """The place in the full log of rows of which a binlog has smaller images; None for nowhere."""
    places = (at for at in range(start, len(full)) if change.may_be(full[at]))
    return next(places, None)


def _brings_table_in(part: GroupChanges) -> bool:
    """True for the group in which a table comes into the scope with its rows, which are its own."""
    effects = [change.effects for change in part.changes if change.effects]
    names = {name for each in effects for name in (*each.drops, *dict(each.net_renames))}
    return any(name.table.startswith(COMING) for name in names)


def _tables_of(change: LoggedChange) -> tuple[TableName, ...]:
    """The tables that a change writes."""
    if change.table is not None:
        return (change.table,)
    return () if change.effects is None else change.effects.writes


def _fault(change: LoggedChange, what: str) -> Fault:
    return Fault(change.file, change.position, what)
