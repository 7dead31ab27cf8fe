"""Planned groups as bytes → a binlog's groups: `planned_route` for the usual case.

A group of rows and their brackets, all of whose statements are there as texts, in a
binlog that takes all that they name. The texts are made once for all binlogs, and a kernel puts them
between the head and the last event of the group, in runs of groups. Rows are looked into only where
they tell AUTO_INCREMENT values. Whatever else a group, a plan or a binlog is, is for the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

from binlane.binlogs.routing.cascades import dangers
from binlane.binlogs.routing.cut_group import is_same_group
from binlane.binlogs.routing.generated import Chosen, first_chosen, plainly_chosen
from binlane.binlogs.routing.query_events import confined
from binlane.binlogs.routing.routed_group import BinlogPart
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.run_groups import RawPiece, RunGroups
from binlane.binlogs.routing.texts import UNKNOWN_NAMES, TextNames, names_in_statement
from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import decode_event
from binlane.log.codec.format import HEADER_LENGTH, Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import DDL_LOGGED_WITH_XID
from binlane.log.codec.types import ROWS_TYPES, EventType, Flavor
from binlane.log.codec.variables import IntvarKind
from binlane.log.grouping.native import crc32_address
from binlane.log.grouping.scanner import Numbers, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels
from binlane.names import TableName
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart, basis_of
from binlane.statements.sql.logged_statements import is_about_rows_only
from binlane.statements.sql.servers import RowImage

if TYPE_CHECKING:
    from binlane.binlogs.routing.routed_group import RoutedBinlog

_INTVAR: Final = Struct("<BQ")
_ROWS_CODES: Final = frozenset(map(int, ROWS_TYPES))
_QUERY: Final = int(EventType.QUERY)
_THREAD_AND_TIME: Final = bytes(8)
_BEGINS_KEPT: Final = 256
_INTVAR_CODE: Final = int(EventType.INTVAR)
_INSERT_ID: Final = bytes((IntvarKind.INSERT_ID,))
_DATABASE_LENGTH: Final = 8
_STATUS_AT: Final = 13
_NO_FORMS: Final = np.zeros((lay.FORM_SIZE, 0), np.int32)

Planned = tuple[Small, Numbers, Bytes]
"""The form of each group in one binlog, the events of texts and their bodies, as kernels take them."""
_NO_ROLES: Final = np.zeros(256, np.int32)
_NO_VIEW: Final = (
    np.zeros(1, np.uint8),
    np.zeros((lay.VERDICT_SIZE, 1), np.int64),
    np.zeros((lay.XA_SIZE, 0), np.int64),
    np.zeros((lay.MADE_SIZE, 0), np.int64),
    np.zeros(PADDING, np.uint8),
)
_NO_TEXTS: Final = (
    np.zeros(1, np.int64),
    np.zeros((lay.TEXT_SIZE, 1), np.int64),
    np.zeros(PADDING, np.uint8),
    np.zeros(1, np.int32),
    np.zeros(1, np.int32),
)
NO_PLANS: Final[Planned] = (
    _NO_FORMS,
    np.zeros((lay.BODY_SIZE, 0), np.int64),
    np.zeros(PADDING, np.uint8),
)


class Form:
    """The texts of a group.

    Args:
        first: Number of the first of their events.
        count: Number of these events, from that one on.
        bodies: The bodies of the statements among them.

    Attributes:
        place: Number of the first of their events, and how many there are.
    """

    def __init__(self, first: int, count: int, bodies: Sequence[bytes]) -> None:
        self.place = first, count
        self._bodies = bodies
        self._statements: tuple[tuple[QueryEvent, TextNames], ...] | None = None

    def statements(self, format_: Format) -> tuple[tuple[QueryEvent, TextNames], ...]:
        """The statements, with the names of what they change; they change rows only.

        Args:
            format_: Format of the FORMAT_DESCRIPTION before the group.
        """
        if self._statements is None:
            found = [QueryEvent.decode(Reader(body), format_) for body in self._bodies]
            self._statements = tuple(
                (one, names_in_statement(one) if is_about_rows_only(one.query) else UNKNOWN_NAMES)
                for one in found
            )
        return self._statements


class RunTexts:
    """The planned texts of a run's groups, each made once for all binlogs.

    Args:
        groups: The groups; the run's bytes behind them may be changed.
    """

    def __init__(self, groups: RunGroups) -> None:
        self.groups = groups
        self._forms: dict[int, list[tuple[tuple[Part, ...], Form | None]]] = {}
        self._bodies: list[tuple[int, int, int, int]] = []
        self._arena = bytearray()
        self._arrays: tuple[Numbers, Bytes] | None = None

    def arrays(self, forms: Small) -> Planned:
        """The form of each group in one binlog, and the texts, as kernels take them."""
        if self._arrays is None:
            bodies = np.array(self._bodies, np.int64).reshape(-1, lay.BODY_SIZE)
            arena = np.frombuffer(self._arena + bytes(PADDING), np.uint8)
            self._arrays = np.ascontiguousarray(bodies.T), arena
        return forms, *self._arrays

    def form(self, number: int, plan: GroupPlan, parts: tuple[Part, ...]) -> Form | None:
        """The texts of a group; None if the group is for the reference.

        Args:
            number: The group's number in the run.
            plan: The plan made for the group.
            parts: The parts of the plan for a binlog.
        """
        known = self._forms.setdefault(number, [])
        for others, form in known:
            if others is parts or others == parts:
                return form
        made = self._made(number, plan, parts)
        known.append((parts, made))
        return made

    def placed(self, number: int, form: tuple[int, int], binlog: RoutedBinlog) -> BinlogPart:
        """A group with its planned texts, as the next of a binlog.

        Args:
            number: The group's number in the run.
            form: The group's form, as `form_in` gives it.
            binlog: The binlog, which has everything before the group.
        """
        run, forms = self.groups.run, np.zeros((lay.FORM_SIZE, number + 1), np.int32)
        forms[:, number] = form
        state = np.zeros(lay.STATE_SIZE, np.int64)
        state[lay.CRC32] = crc32_address()
        state[lay.NEXT_GROUP], state[lay.LAST_GROUP] = number, number + 1
        state[lay.POSITION] = binlog.size_bytes
        state[lay.LIMIT] = binlog.size_bytes + 1
        state[lay.CLOCK_BASE], state[lay.CLOCK] = binlog.clock_base, binlog.clock
        arrays = run.data, run.events, run.groups, _NO_ROLES
        out = np.zeros(1 << 10, np.uint8)
        planned, actions = self.arrays(forms), np.zeros(0, np.uint8)
        copy = kernels().copy_groups
        while copy(arrays, _NO_VIEW, _NO_TEXTS, planned, (out, actions), state) == lay.FULL:
            out = np.zeros(int(state[lay.NEEDED]) + 2 * PADDING, np.uint8)
        return BinlogPart(
            data=out.data[: int(state[lay.OUT_LENGTH])],
            groups=1,
            planned=1,
            events=int(state[lay.EVENTS_KEPT]),
            clock=int(state[lay.CLOCK]),
            clock_base=int(state[lay.CLOCK_BASE]),
        )

    def _made(self, number: int, plan: GroupPlan, parts: tuple[Part, ...]) -> Form | None:
        pieces = self.groups.pieces(number)
        sections = is_same_group([piece.mapped for piece in pieces], plan.sections)
        if not parts or sections is None:
            return None
        following, first, arena_end = 0, len(self._bodies), len(self._arena)
        for part in parts:
            is_next = isinstance(part, TextPart) and part.section is not None
            if not is_next or not following <= part.section < len(sections):  # type: ignore[operator]  # it is none of rows
                break
            assert isinstance(part, TextPart), "it was looked at"
            assert part.section is not None, "as above"
            following = part.section + 1
            if not self._add(part, [pieces[one] for one in sections[part.section]]):
                break
        else:
            self._arrays = None
            bodies = [part.events[-1].body for part in parts if isinstance(part, TextPart)]
            return Form(first, len(self._bodies) - first, bodies)
        del self._bodies[first:], self._arena[arena_end:]
        return None

    def _add(self, part: TextPart, pieces: Sequence[RawPiece]) -> bool:
        """Add the events of a text, each with its time; True if that could be done."""
        events, groups = part.events, self.groups
        if not events or any(event.flags for event in events):
            return False
        last = events[-1]
        if last.type_code != _QUERY:
            return False
        if part.is_as_sent and part.is_another(groups.annotated(pieces[0])):
            return False
        run = groups.run
        status_vars = _status_vars(last.body)
        if status_vars is None or run.format.has_tables_info:
            return False
        if DDL_LOGGED_WITH_XID in status_vars and run.format.flavor is Flavor.MYSQL:
            return False  # the number of the transaction may have to be put in
        at = run.events.item(layout.EVENT_OFFSET, pieces[0].first)
        timestamp = part.timestamp or int.from_bytes(run.data[at : at + 4].tobytes(), "little")
        for event in events:
            body = event.body
            if event.type_code == _INTVAR_CODE and body[:1] == _INSERT_ID:
                if part.generated is None or len(body) != _INTVAR.size:
                    return False
                known = Chosen(first=_INTVAR.unpack(body)[1], status_vars=status_vars)
                value = self._chosen(pieces, part, known)
                if value is None:
                    return False
                body = _INTVAR.pack(IntvarKind.INSERT_ID, value)
            self._bodies.append((event.type_code, timestamp, len(self._arena), len(body)))
            self._arena += body
        return True

    def _chosen(self, pieces: Sequence[RawPiece], part: TextPart, known: Chosen) -> int | None:
        """The first value that the server chose; None if only the reference tells why it is not known."""
        run, generated = self.groups.run, part.generated
        assert generated is not None, "the text has an INSERT_ID event"
        if len(pieces) == 1 and pieces[0].table >= 0 and pieces[0].mapped == {generated.table}:
            piece, table_map = pieces[0], run.tables[pieces[0].table].table_map
            value = plainly_chosen(
                (run.data, run.events),
                (piece.first, piece.end),
                table_map,
                generated,
                known,
                flavor=run.format.flavor,
            )
            if value is not None:
                return value
        rows = _rows(run_groups=self.groups, pieces=pieces, table=generated.table)
        found = first_chosen(rows, generated, known, flavor=run.format.flavor)
        return None if isinstance(found, str) else found


def _status_vars(body: bytes) -> bytes | None:
    """The status variables of a plain statement's body; None if its lengths are wrong."""
    if len(body) <= _STATUS_AT:
        return None
    end = _STATUS_AT + int.from_bytes(body[_STATUS_AT - 2 : _STATUS_AT], "little")
    text_at = end + body[_DATABASE_LENGTH] + 1
    return body[_STATUS_AT:end] if body[text_at - 1 : text_at] == b"\0" else None


def _rows(
    *, run_groups: RunGroups, pieces: Sequence[RawPiece], table: TableName
) -> Iterator[tuple[RowsEvent, TableMapEvent]]:
    """The rows events of a table with it.

    Raises:
        CodecError: If one cannot be decoded.
    """
    run = run_groups.run
    for piece in pieces:
        for place in range(piece.first, piece.end):
            if run.events.item(layout.EVENT_TYPE, place) not in _ROWS_CODES:
                continue
            number = run.events.item(layout.EVENT_MAP, place)
            if number < 0 or table_name(run.tables[number].table_map) != table:
                continue
            start = run.events.item(layout.EVENT_OFFSET, place)
            stop = run.events.item(layout.EVENT_END, place) + run.format.checksum_length
            body = decode_event(run.data[start:stop].tobytes(), run.format).body
            assert isinstance(body, RowsEvent), "its type says so"
            yield body, run.tables[number].table_map


def form_in(
    texts: RunTexts, number: int, plan: GroupPlan, binlog: RoutedBinlog
) -> tuple[int, int] | None:
    """The form of a group in a binlog, by its plan.

    Args:
        texts: The texts of the group's run.
        number: The group's number in the run.
        plan: The plan made for the group.
        binlog: The binlog, which has everything before the group.

    Returns:
        The first event of its texts and how many there are, or that it is there as its own bytes; None
        if it is for the reference.
    """
    definition, memory, groups = binlog.definition, binlog.memory, texts.groups
    name = definition.name
    if groups.has(number, lay.IS_MARK | lay.IS_PACKED):
        return None
    parts = plan.binlogs.get(name)
    if parts is None or is_all_rows(plan, name):
        is_full = plan.image is RowImage.FULL
        return (lay.OWN_BYTES, lay.PLANNED) if is_full else None
    if (
        memory.left_out
        # The reference finds the tables that statements concern.
        or binlog.may_have_tables_info
        or name in plan.ends
        or plan.bases.get(name) != basis_of(definition)
    ):
        return None
    form = texts.form(number, plan, parts)
    if form is None or not (
        definition.scope.is_unscoped or _is_inside(form, groups, number, binlog)
    ):
        return None
    return form.place


def is_all_rows(plan: GroupPlan, name: str) -> bool:
    """True if a binlog has the rows of all statements, as the source has them."""
    parts = plan.binlogs[name]
    if len(parts) != len(plan.sections) or name in plan.ends:
        return False
    for at, part in enumerate(parts):
        if not isinstance(part, RowsPart) or part != (at, 0):
            return False
    return True


def _is_inside(form: Form, groups: RunGroups, number: int, binlog: RoutedBinlog) -> bool:
    """True if texts may stand in a scoped binlog as they are, and nothing is to be remembered."""
    scope, memory = binlog.definition.scope, binlog.memory
    return (
        groups.has(number, lay.ENDS_WITH_XID)  # a COMMIT names a database
        and _begin_stays(groups, number, scope)
        and not scope.ignores_case
        and not memory.empty_tables
        and not dangers(memory.links, scope)
        and all(scope.includes(table) for piece in groups.pieces(number) for table in piece.mapped)
        and all(_may_stand(*one, scope) for one in form.statements(groups.run.format))
    )


def _begin_stays(groups: RunGroups, number: int, scope: Scope) -> bool:
    """True if MySQL's BEGIN at the head of a group stands in a scoped binlog as it is."""
    run = groups.run
    begin = run.groups.item(layout.GROUP_FIRST, number) + 1
    if run.events.item(layout.EVENT_TYPE, begin) != _QUERY:
        return True
    start = run.events.item(layout.EVENT_OFFSET, begin) + HEADER_LENGTH + len(_THREAD_AND_TIME)
    return _is_inside_as_it_is(
        run.data[start : run.events.item(layout.EVENT_END, begin)].tobytes(), run.format, scope
    )


@lru_cache(_BEGINS_KEPT)
def _is_inside_as_it_is(context: bytes, format_: Format, scope: Scope) -> bool:
    body = QueryEvent.decode(Reader(_THREAD_AND_TIME + context), format_)
    return confined(body, scope, None) == body


def _may_stand(statement: QueryEvent, names: TextNames, scope: Scope) -> bool:
    """True if a statement may stand in a scoped binlog as it is."""
    database = statement.database.decode("utf-8", "surrogateescape")
    return (
        names.is_known
        and scope.touches_database(database)
        and all(map(scope.includes, names.tables))
        and all(scope.includes(TableName(database, one)) for one in names.unqualified)
        and confined(statement, scope, None) == statement
    )
