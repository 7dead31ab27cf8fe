"""What plans of groups must always be, whatever a session does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent, XaPrepareEvent, XidEvent
from binlane.log.codec.types import GtidFlag
from binlane.names import TableName
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, Body, ChangedRows
from binlane.statements.session.report import BinlogResult, StatementPlan
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import TemporaryChange, TemporaryUse

_ENDS = (b"COMMIT", b"ROLLBACK")


def groups_of(told: BinlogResult) -> list[tuple[Body, ...]]:
    """Split what a log gets into groups, found in another way than the plans do."""
    found: list[list[Body]] = []
    is_open = False
    for body in told.bodies:
        if isinstance(body, GtidEvent):
            found.append([body])
            is_open = True
            continue
        query = body.query if isinstance(body, QueryEvent) else b""
        if told.server.is_mariadb:
            found[-1].append(body)
            continue
        if query == b"BEGIN" or query.startswith(b"XA START "):
            found.append([body])
            is_open = True
            continue
        if not is_open and (
            not found or isinstance(found[-1][-1], QueryEvent | XidEvent | XaPrepareEvent)
        ):
            found.append([])
        found[-1].append(body)
        if (
            isinstance(body, XidEvent | XaPrepareEvent)
            or query in _ENDS
            or query.startswith(b"XA ROLLBACK ")
        ):
            is_open = False
    return [tuple(group) for group in found]


def is_alone(group: Sequence[Body], *, is_mariadb: bool) -> bool:
    """Whether a group is one statement that stands alone."""
    if is_mariadb:
        first = group[0]
        return isinstance(first, GtidEvent) and bool(first.flags & GtidFlag.STANDALONE)
    first = group[0]
    return not (
        isinstance(first, QueryEvent)
        and (first.query == b"BEGIN" or first.query.startswith(b"XA START "))
    )


def is_undone(group: Sequence[Body]) -> bool:
    """Whether some of a group is rolled back."""
    return any(
        isinstance(body, QueryEvent)
        and (body.query == b"ROLLBACK" or body.query.startswith((b"ROLLBACK TO ", b"XA ROLLBACK ")))
        for body in group
    )


@dataclass
class Follower:
    """Follows the plans of one session, and fails where they break a rule.

    Attributes:
        texts: By binlog, numbers of the statements that it has as text so far.
        rows: By binlog, places of the rows that it has: of which group, and the number.
        given_texts: By binlog, how many texts with rows at the source it has.
        given_rows: By binlog, how many statements it has as rows.
    """

    texts: dict[str, set[int]] = field(default_factory=dict)
    rows: dict[str, set[int]] = field(default_factory=dict)
    given_texts: dict[str, int] = field(default_factory=dict)
    given_rows: dict[str, int] = field(default_factory=dict)
    same: int = 0

    def check(self, planned: StatementPlan, *, is_unlogged: bool = False) -> None:
        """Check what a statement does to all binlogs."""
        result = planned.result
        if result.unanalysed is not None:
            assert not planned.groups
            assert planned.mark is None
            return
        source = groups_of(result.binlogs[SOURCE_LOG])
        names = [name for name in result.binlogs if name != SOURCE_LOG]
        assert len(planned.groups) in (0, len(source))
        for draft, group in zip(planned.groups, source, strict=False):
            self._check_sections(draft, group)
            for name in names:
                self._check_group(draft, group, name, is_unlogged=is_unlogged)
        if planned.mark is not None:
            for name, parts in planned.mark.binlogs.items():
                self._check_texts(name, parts)
                assert all(isinstance(part, TextPart) for part in parts)

    def lose(self, name: str, parts: Sequence[Part]) -> None:
        """Forget that a binlog has texts."""
        self.texts[name] -= {part.number for part in parts}

    def _check_sections(self, draft: GroupPlan, group: Sequence[Body]) -> None:
        numbers = draft.numbers
        assert len(set(numbers)) == len(numbers)
        changes = [
            change for section in draft.sections for piece in section for change in piece.changes
        ]
        assert _once(table for _, table in changes) == _once(
            body.table for body in group if isinstance(body, ChangedRows)
        )

    def _check_group(
        self, draft: GroupPlan, group: Sequence[Body], name: str, *, is_unlogged: bool
    ) -> None:
        numbers = draft.numbers
        rows, texts = self.rows.setdefault(name, set()), self.texts.setdefault(name, set())
        parts: Sequence[Part] = draft.binlogs.get(
            name, [RowsPart(section, number) for section, number in enumerate(numbers)]
        )
        given = [part.number for part in parts]
        assert len(given) == len(set(given)), "no statement twice"
        ordered = [number for number in given if number in numbers]
        assert ordered == [number for number in numbers if number in given], "in their order"
        if not is_undone(group) and not is_unlogged:
            assert set(numbers) <= set(given), "all rows, or their text"
        assert all(
            numbers[part.section] == part.number for part in parts if part.section is not None
        )
        assert all(part.number not in numbers for part in parts if part.section is None)
        for part in parts:
            if isinstance(part, RowsPart):
                assert part.number not in texts, "rows of what is there as text"
                rows.add(part.number)
        self._check_texts(name, parts)
        for number in numbers:
            is_text = any(isinstance(part, TextPart) and part.number == number for part in parts)
            counts = self.given_texts if is_text else self.given_rows
            counts[name] = counts.get(name, 0) + 1

    def _check_texts(self, name: str, parts: Sequence[Part]) -> None:
        rows, texts = self.rows.setdefault(name, set()), self.texts.setdefault(name, set())
        for part in parts:
            if isinstance(part, TextPart):
                assert part.bodies, "a text is something"
                assert part.number not in rows, "text of what is there as rows"
                assert part.number not in texts or _drops_temporary(part), "one text"
                texts.add(part.number)


def _drops_temporary(part: TextPart) -> bool:
    """Whether it is one of those of a statement that drops temporary tables of several kinds."""
    body = part.bodies[0]
    return isinstance(body, QueryEvent) and body.query.startswith((b"DROP TEMP", b"DROP /*!40005"))


def _once(tables: Iterator[TableName]) -> list[TableName]:
    """Tables as they follow each other, neighbours once."""
    found: list[TableName] = []
    for table in tables:
        if not found or found[-1] != table:
            found.append(table)
    return found


def own_groups(planned: StatementPlan, name: str) -> list[list[Body]]:
    """What stands in a binlog's own groups that belong to groups of the source.

    Frames are left out, and so are statements that the source has nothing of.
    """
    told = planned.result.binlogs
    owners = [_owners(told[log], planned.number) for log in (SOURCE_LOG, name)]
    at_source = {number for group in owners[0] for number, _ in group}
    return [
        [body for _, body in group]
        for group in owners[1]
        if not at_source.isdisjoint(number for number, _ in group)
    ]


def assembled(planned: StatementPlan, name: str) -> list[list[Body]]:
    """What a binlog's groups are by the plan, frames left out."""
    made = []
    source = _owners(planned.result.binlogs[SOURCE_LOG], planned.number)
    for draft, group in zip(planned.groups, source, strict=True):
        parts = draft.binlogs.get(name)
        if parts is None:
            made.append([body for _, body in group])
            continue
        bodies: list[Body] = []
        for part in parts:
            if isinstance(part, TextPart):
                bodies += part.bodies
            else:
                bodies += [body for number, body in group if number == part.number]
        if bodies:
            made.append(bodies)
    return made


def _owners(told: BinlogResult, number: int) -> list[list[tuple[int, Body]]]:
    """Each group's bodies without frames, with the numbers of their statements."""
    owners = [number] * len(told.bodies)
    for begin, end, owner in told.runs:
        owners[begin:end] = [owner] * (end - begin)
    found, at = [], 0
    for group in groups_of(told):
        inside = [(owners[at + place], body) for place, body in enumerate(group)]
        at += len(group)
        if is_alone(group, is_mariadb=told.server.is_mariadb):
            found.append([one for one in inside if not isinstance(one[1], GtidEvent)])
        else:
            end = -2 if isinstance(group[-1], XaPrepareEvent) else -1
            found.append(inside[1:end])
    return found


class TemporaryFollower:
    """Knows what was done to temporary tables at the source and in each binlog.

    A text of a binlog finds them as its statement found them at the source. Sessions that it
    follows roll nothing back.
    """

    def __init__(self) -> None:
        self._source: dict[TableName, tuple[int, ...]] = {}
        self._binlogs: dict[str, dict[TableName, tuple[int, ...]]] = {}
        self._uses: dict[int, dict[TableName, TemporaryUse]] = {}
        self._found: dict[int, dict[TableName, tuple[int, ...] | None]] = {}
        self.texts = 0

    def check(self, planned: StatementPlan, state: SessionState) -> None:
        """Follow one statement.

        Args:
            planned: What it is.
            state: Of the session behind it.
        """
        if planned.result.error is None and state.execution.number == planned.number:
            for number, uses in sorted(state.execution.temporary.items()):
                self._uses[number] = uses
                self._found[number] = {table: self._source.get(table) for table in uses}
                for table, use in uses.items():
                    _change(self._source, table, use.change, number)
        for draft in planned.groups:
            for name, parts in draft.binlogs.items():
                self._take(name, parts)
        if planned.mark is not None:
            for name, parts in planned.mark.binlogs.items():
                self._take(name, parts)

    def _take(self, name: str, parts: Sequence[Part]) -> None:
        own = self._binlogs.setdefault(name, {})
        for part in parts:
            if not isinstance(part, TextPart):
                continue
            for table, use in self._uses.get(part.number, {}).items():
                self.texts += 1
                if use.change is TemporaryChange.DROPPED:
                    assert table in own
                elif use.change >= TemporaryChange.MADE:
                    assert table not in own
                else:
                    assert own.get(table) == self._found[part.number][table]
                _change(own, table, use.change, part.number)


def _change(
    tables: dict[TableName, tuple[int, ...]],
    table: TableName,
    change: TemporaryChange,
    number: int,
) -> None:
    """Note what a statement does to a temporary table."""
    if change is TemporaryChange.DROPPED:
        tables.pop(table, None)
    elif change >= TemporaryChange.MADE:
        tables[table] = (number,)
    elif change and table in tables:
        tables[table] += (number,)
