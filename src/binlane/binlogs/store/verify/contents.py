"""Changes of event groups, in a form in which a full log and scoped ones can be compared.

Each change has a digest of the parts that routing leaves as they are. Left out are parts that
rightly differ in a scoped binlog: positions, checksums, the end of a statement, table ids, the GTID
event beyond its GTID, texts that only tell people of rows (ANNOTATE_ROWS, ROWS_QUERY), table maps
of tables without rows, a statement's default database and MySQL's list of changed databases, the
tables that a statement tells of, and how row images and transactions are compressed. Smaller row
images have a digest of their own, which the full log's rows tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple

from binlane.binlogs.routing.judging import text_in_scope
from binlane.binlogs.routing.password_hashing import with_hashes_in
from binlane.binlogs.routing.query_events import UPDATED_DATABASES, statement_of
from binlane.binlogs.routing.row_images import cut_rows
from binlane.binlogs.store.chunks import open_chunks
from binlane.errors import CodecError, TruncatedError
from binlane.log.codec.control import FormatDescriptionEvent, IncidentEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event
from binlane.log.codec.load_data import DeleteFileEvent, ExecuteLoadQueryEvent, FileBlockEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent, WriteRowsEvent, uncompressed
from binlane.log.codec.status_vars import decode_status_vars, is_undone
from binlane.log.codec.types import EventType, Flavor, RowsFlag
from binlane.log.grouping.event_group import END_QUERIES, GTID_TYPES, GroupTracker
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.table_maps import TableMaps
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import AnyGtid
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.servers import RowImage

_SMALLER: Final = tuple(image for image in RowImage if image is not RowImage.FULL)
_TEXT_MAX: Final = 80
_KEPT_BYTES_MAX: Final = 16 << 20
"""Bytes of a group's rows; mostly nobody asks for their smaller images, which take long to make."""
_CONTEXT: Final = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_WITHOUT_EFFECT: Final = GTID_TYPES | {
    EventType.XID,
    EventType.ANNOTATE_ROWS,
    EventType.ROWS_QUERY,
    EventType.TABLE_MAP,
    EventType.PARTIAL_ROW_DATA,
    EventType.TRANSACTION_PAYLOAD,
    EventType.IGNORABLE,
    EventType.LARGE_TRANSACTION_HEADER,
    EventType.TRANSACTION_CONTEXT,
    EventType.VIEW_CHANGE,
}
_FRAME: Final = END_QUERIES | {b"BEGIN"}
_SHARED: Final = (b"XA ", b"SAVEPOINT ", b"ROLLBACK TO ", b"RELEASE SAVEPOINT ")


class ChangeKind(Enum):
    """Kind of a change, as far as scopes ask."""

    ROWS = "rows"
    STATEMENT = "statement"
    SHARED = "shared"
    """The change belongs to whatever part of the transaction a binlog has: savepoints, XA."""
    INCIDENT = "incident"
    OTHER = "other"


class MappedRows(NamedTuple):
    """A rows event with its table map and flavor.

    Attributes:
        body: The rows, which are not compressed.
        table_map: Map of the table that has the rows.
        flavor: Flavor of the log that has the rows.
    """

    body: RowsEvent
    table_map: TableMapEvent
    flavor: Flavor

    def cut_digests(self) -> frozenset[bytes]:
        """The digests of its rows with smaller images."""
        body, table_map, flavor = self
        # The reference cuts: kernels may have cut what it is held against.
        return frozenset(
            _rows_digest(cut_rows(body, table_map, image, flavor, uses_kernels=False), table_map)
            for image in _SMALLER
        )


@dataclass(frozen=True, kw_only=True)
class LoggedChange:
    """One change of an event group.

    Attributes:
        digest: Digest of all that must be the same in the full log and in a scoped one.
        text: Description of the change, for people.
        file: Path of the change's file.
        position: Position of the change's event in its file.
        table: Table whose rows change; None for anything else.
        query: Event of the statement; None for anything else.
        rows: Rows of which smaller images may stand in a binlog; None for anything else, and where
            there are too many.
        known_cuts: The `cut_digests` of rows that are too many to be kept.
    """

    kind: ChangeKind
    digest: bytes
    text: str
    file: str = field(compare=False)
    position: int = field(compare=False)
    table: TableName | None = None
    query: QueryEvent | None = field(default=None, compare=False)
    rows: MappedRows | None = field(default=None, compare=False)
    known_cuts: frozenset[bytes] = field(default=frozenset(), compare=False)

    @cached_property
    def effects(self) -> StatementEffects | None:
        """Effects of the statement; None for anything else."""
        return None if self.query is None else logged_statement(self.query).effects()

    @cached_property
    def cut_digests(self) -> frozenset[bytes]:
        """The digests of its rows with smaller row images, one for each kind of them."""
        return self.known_cuts if self.rows is None else self.rows.cut_digests()

    def may_be(self, whole: LoggedChange) -> bool:
        """True if this is a change of the full log, or that change with smaller row images."""
        if self == whole:
            return True
        is_of_table = self.kind is ChangeKind.ROWS and (self.text, self.table) == (
            whole.text,
            whole.table,
        )
        return is_of_table and self.digest in whole.cut_digests

    @property
    def is_undone(self) -> bool:
        """True if it is a phase of an ALTER that does nothing; a binlog where it stands for less lacks it."""
        return self.query is not None and is_undone(self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChanges:
    """The changes of a complete event group.

    Attributes:
        gtid: The group's GTID; None if it has none.
        file: Path of the group's file.
        position: Position of the group's first byte.
        changes: Changes in the order of the log.
    """

    gtid: AnyGtid | None
    file: str
    position: int
    changes: tuple[LoggedChange, ...]


def contents(
    paths: Sequence[str],
    *,
    keys: KeyRing | None = None,
    is_live: bool = False,
    is_full: bool = False,
) -> Iterator[GroupChanges]:
    """The complete event groups of a log.

    Args:
        paths: Files of the log, oldest first.
        is_full: True if changes are to tell the smaller images of their rows.
        keys: Keys of files that are encrypted.
        is_live: True if the last file may end inside of an event.

    Raises:
        CodecError: At damage.
        StoreError: If a file cannot be read.
    """
    for number, path in enumerate(paths, start=1):
        try:
            yield from _file_contents(path, keys, is_full=is_full)
        except TruncatedError:
            if not is_live or number < len(paths):
                raise


def _file_contents(path: str, keys: KeyRing | None, *, is_full: bool) -> Iterator[GroupChanges]:
    tracker, reader = GroupTracker(), _Reader(path, is_full=is_full)
    start, gtid, is_whole = 0, None, False
    for event in expanded_all(walk(open_chunks(path), file=path, keys=keys), file=path):
        if not event.inner:
            if is_whole:
                yield reader.group(gtid, start)
                is_whole = False
            place = tracker.feed(event)
            if place.begins:
                start = event.position
                reader.begin()
            gtid, is_whole = place.gtid, place.ends and not place.is_control
        if isinstance(event.body, FormatDescriptionEvent):
            reader.flavor = event.body.format.flavor
        reader.feed(event)
    if is_whole:
        yield reader.group(gtid, start)


class _Reader:
    """Takes the changes out of a file's events."""

    def __init__(self, path: str, *, is_full: bool) -> None:
        self._path = path
        self._is_full = is_full
        self.flavor = Flavor.MARIADB
        self.begin()

    def begin(self) -> None:
        """Begin a group."""
        self._maps = TableMaps()
        self._context = blake2b(digest_size=16)
        self._changes: list[LoggedChange] = []
        self._savepoints: dict[str, int] = {}
        self._kept_bytes = 0

    def group(self, gtid: AnyGtid | None, start: int) -> GroupChanges:
        """The group that has ended."""
        changes = tuple(self._changes)
        self.begin()
        return GroupChanges(gtid=gtid, file=self._path, position=start, changes=changes)

    def feed(self, event: Event) -> None:
        """Take the next event of the group."""
        body, code = event.body, event.header.type_code
        table_map = self._maps.feed(event, file=self._path)
        if isinstance(body, RowsEvent):
            if table_map is not None:
                self._add_rows(event, body, table_map)
        elif isinstance(body, QueryEvent):
            self._add_query(event, body)
        elif isinstance(body, ExecuteLoadQueryEvent):
            self._context.update(
                repr((body.name_start, body.name_end, body.duplicate_handling)).encode()
            )
            self._add_query(event, body.statement)
        elif isinstance(body, DeleteFileEvent):
            self._context = blake2b(digest_size=16)
        elif code in _CONTEXT or isinstance(body, FileBlockEvent):
            self._context.update(repr(body).encode())
        elif isinstance(body, IncidentEvent):
            message = body.message.decode("utf-8", "replace")
            self._add(event, ChangeKind.INCIDENT, repr(body).encode(), f"INCIDENT: {message}")
        elif code == EventType.XA_PREPARE_LOG:
            self._add(event, ChangeKind.SHARED, repr(body).encode(), event.header.type_name)
        elif code not in _WITHOUT_EFFECT and not event.header.is_ignorable:
            text = f"{event.header.type_name} (type {code})"
            self._add(event, ChangeKind.OTHER, repr(body).encode(), text)

    def _add_rows(self, event: Event, body: RowsEvent, table_map: TableMapEvent) -> None:
        try:
            plain = uncompressed(body)
        except CodecError as error:
            raise error.at(self._path, event.position) from None
        rows: MappedRows | None = None
        known = frozenset[bytes]()
        if self._is_full and not isinstance(plain, WriteRowsEvent):
            mapped = MappedRows(plain, table_map, self.flavor)
            self._kept_bytes += len(plain.images)
            if self._kept_bytes > _KEPT_BYTES_MAX:
                known = mapped.cut_digests()
            else:
                rows = mapped
        table = table_map.name
        change = LoggedChange(
            kind=ChangeKind.ROWS,
            digest=_rows_digest(plain, table_map),
            text=f"{plain.event_type.name} of {table}",
            file=self._path,
            position=event.position,
            table=table,
            rows=rows,
            known_cuts=known,
        )
        self._changes.append(change)

    def _add_query(self, event: Event, body: QueryEvent) -> None:
        if body.query in _FRAME:
            return
        upper = body.query[:20].upper()
        if upper.startswith(_SHARED):
            shared = self._shared(body)
            self._add(event, ChangeKind.SHARED, shared, _short(shared))
            return
        digest, self._context = self._context, blake2b(digest_size=16)
        # Routing takes passwords and comments out, and makes a DROP of an object one that may be
        # missing.
        hashed = statement_of(with_hashes_in(event, self.flavor).body)
        text = text_in_scope(logged_statement(hashed or body))
        told = (body.thread_id, body.error_code, _variables(body), text)
        digest.update(repr(told).encode())
        self._add(
            event,
            ChangeKind.STATEMENT,
            digest.digest(),
            _short(text.encode("utf-8", "surrogateescape")),
            query=body,
        )

    def _shared(self, body: QueryEvent) -> bytes:
        """A statement on a savepoint, by its number: scoped binlogs do not tell its name."""
        if body.query[:2].upper() == b"XA":
            return body.query
        facts = logged_statement(body).facts()
        name = facts.name.lower()
        if name not in self._savepoints:
            self._savepoints[name] = len(self._savepoints) + 1
        return f"{facts.verb} {self._savepoints[name]}".encode()

    def _add(
        self,
        event: Event,
        kind: ChangeKind,
        digest: bytes,
        text: str,
        *,
        query: QueryEvent | None = None,
    ) -> None:
        change = LoggedChange(
            kind=kind,
            digest=digest,
            text=text,
            file=self._path,
            position=event.position,
            query=query,
        )
        self._changes.append(change)


def _rows_digest(plain: RowsEvent, table_map: TableMapEvent) -> bytes:
    """Give the digest of rows that are not compressed."""
    digest = blake2b(digest_size=16)
    for part in (
        type(plain).__name__,
        plain.flags & ~RowsFlag.STMT_END,
        plain.extra,
        plain.columns_present,
        plain.columns_present_after,
        table_map.flags,
        table_map.database,
        table_map.table,
        table_map.column_types,
        table_map.metadata,
        table_map.null_bits,
        table_map.optional_metadata,
    ):
        digest.update(repr(part).encode() + b"\0")
    digest.update(plain.images)
    return digest.digest()


def _variables(body: QueryEvent) -> object:
    """The statement's context without the databases that it changes."""
    if UPDATED_DATABASES not in body.status_vars:
        return body.status_vars
    try:
        variables = decode_status_vars(body.status_vars)
    except CodecError:
        return body.status_vars
    return [variable for variable in variables if variable.code != UPDATED_DATABASES]


def _short(query: bytes) -> str:
    text = " ".join(query.decode("utf-8", "replace").split())
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
