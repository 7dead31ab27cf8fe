"""Follows a binlog's own files, so that the rows of its children are known where a parent changes.

`child_rows` keeps the rows. Whatever is not known for sure makes a table's rows unknown, with the
reason, which is told; then changes of its parents are an INCIDENT, as without FOLLOW CASCADES.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from binlane.binlogs.routing.cascade_replay import CascadeReplay, FollowedTable, UnknownRowsError
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.binlogs.store.child_catching_up import (
    ChildReading,
    ChildReadings,
    ChildrenBehindError,
    FilesThen,
)
from binlane.binlogs.store.child_reading import BinlogOfChildren, FileReading, check_of
from binlane.binlogs.store.child_rows import ChildRowsFile, FilePlace, KeptChildren, KeptState
from binlane.errors import BinlaneError, StoreError
from binlane.names import TableName
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope

_LOG: Final = logging.getLogger(__name__)
_BEHIND_BYTES_MAX: Final = 8 << 20
_UNKNOWN: Final = TableName("", "")


class ShadowedBinlog(BinlogOfChildren, Protocol):
    """A binlog that may have the rows of its children."""

    children: ChildShadow | None

    @property
    def memory(self) -> Memory:
        """Routing's memory of the groups before."""
        ...


@dataclass(frozen=True, slots=True)
class ShadowFacts:
    """Facts of the rows that are kept, for people; any thread may read it.

    Attributes:
        rows: Number of rows of all children.
        size_bytes: Bytes that they take on the disk.
        unknown: Reasons, by the names of children whose rows are not known.
    """

    rows: int = 0
    size_bytes: int = 0
    unknown: tuple[tuple[TableName, str], ...] = ()

    @property
    def reasons(self) -> Iterator[tuple[str, str]]:
        """The reasons with names as people write them."""
        for table, reason in self.unknown:
            yield table.plain if table.table else "all tables", reason


class ChildShadow:
    """The rows of one binlog's children, kept behind its last group.

    All calls are the writer's. An error of the file is told once, and the rows are read anew from
    the binlog the next time.

    Attributes:
        facts: What is told of it.
    """

    def __init__(self, log_id: int, binlog: BinlogOfChildren, readings: ChildReadings) -> None:
        self._path = readings.folder / f"{log_id}.sqlite"
        self._binlog, self._readings = binlog, readings
        self._reading: ChildReading | None = None
        self._kept: KeptChildren | None = None
        self._before: dict[TableName, FollowedTable] | None = None
        self.facts = ShadowFacts()

    def begin(self, links: TableLinks) -> CascadeReplay:
        """Give the rows behind the last group, to be changed by the next one and then given back.

        Raises:
            UnknownRowsError: If they are not known.
            ChildrenBehindError: If they are being read.
            StoreError: If the binlog's disk fails.
        """
        try:
            kept = self._caught_up(links)
            kept.rows.begin()
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error
        self._before = {name: replace(table) for name, table in kept.state.tables.items()}
        scope = self._binlog.definition.scope
        return kept.replay(_sure(links), scope, self._binlog.source_format.flavor)

    def end(self) -> None:
        """Have the rows as they were at `begin`; the group that follows is read from the binlog."""
        kept, before, self._before = self._kept, self._before, None
        if kept is not None and before is not None:
            kept.state.tables.clear()
            kept.state.tables.update(before)
            try:
                kept.rows.roll_back()
            except sqlite3.Error as error:
                self._failed(error)

    def catch_up(self, links: TableLinks, *, is_due: bool = True) -> None:
        """Read what the binlog has more; nothing is raised if that fails, but told.

        Args:
            links: Foreign keys as they are behind the binlog's last group.
            is_due: False: read only if much has come, so that a parent's change need not wait.

        Raises:
            ChildrenBehindError: If it is due and they are being read, from now on or already.
        """
        if self.is_reading and not is_due:
            return
        if not is_due and self._reading is None and not self._is_behind():
            return
        try:
            self._caught_up(links)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
        except UnknownRowsError as error:
            _LOG.info("binlog %s: rows of children: %s", self._binlog.definition.name, error.reason)
        except ChildrenBehindError:
            if is_due:
                raise

    @property
    def is_reading(self) -> bool:
        """True if they are being read beside the writer."""
        reading = self._reading
        return reading is not None and not reading.is_over

    @property
    def progress(self) -> str:
        """The progress of the reading beside the writer; empty where there is none. Any thread may ask."""
        reading = self._reading
        if reading is None or reading.is_over:
            return ""
        return f"reading rows of children, {reading.share * 100:.0f} %"

    def _is_behind(self) -> bool:
        """True if enough has come that it should be read now, not when a parent changes."""
        place = FilePlace() if self._kept is None else self._kept.state.place
        return FilesThen.of(self._binlog).bytes_behind(place) > _BEHIND_BYTES_MAX

    def prepare_scope(self, links: TableLinks, after: Scope) -> None:
        """Read what `change_scope` needs, beside the writer where that is much.

        Nothing is raised if that fails: `change_scope` meets it again.

        Args:
            links: Foreign keys as they are behind the binlog's last group.
            after: The scope that comes next.

        Raises:
            ChildrenBehindError: If they are being read, from now on or already.
        """
        try:
            self._finish_reading()
            self._follow_also(links, after)
            self._caught_up(links)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
        except UnknownRowsError as error:
            _LOG.info("binlog %s: rows of children: %s", self._binlog.definition.name, error.reason)

    def _follow_also(self, links: TableLinks, after: Scope) -> None:
        """Keep the tables of another scope, too."""
        kept = self._kept = self._kept or self._opened()
        needed = list(kept.needed(links, after))
        has_begun = bool(kept.state.place.file)
        kept.follow_from_here(needed) if has_begun else kept.follow(needed)

    def change_scope(self, links: TableLinks, after: Scope) -> None:
        """Know of another scope: what was not in scope before and after is not known any more.

        Rows of a table that comes in may stand in the binlog before this place, with its CREATE
        TABLE: those are read.

        Args:
            links: Foreign keys as they are behind the binlog's last group.
            after: The scope from here on.

        Raises:
            StoreError: If the disk fails.
        """
        try:
            self._end_reading()
            self._follow_also(links, after)
            kept = self._caught_up(links, is_here=True)
            self.begin_here()
            kept.rows.begin()
            for table in kept.state.tables:
                if not after.includes(table):
                    kept.lose(table, "it was not always in the scope")
            kept.rows.commit(kept.state.encode(self._binlog.source_format))
        except (sqlite3.Error, OSError, UnknownRowsError) as error:
            # Nothing is known then; what follows is read from here on.
            if not isinstance(error, UnknownRowsError):
                self._failed(error)
            self.close()
            self._path.unlink(missing_ok=True)
            self.begin_here()

    def begin_here(self) -> None:
        """Never read what stands before the binlog's end: its scope was another one.

        Raises:
            StoreError: If the disk fails.
        """
        self._binlog.write_appended()
        size, file = self._binlog.size_bytes, self._binlog.files()[-1]
        try:
            check = check_of(file.directory / file.name, size)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._begin_path.write_text(json.dumps([file.name, size, check]))
        except OSError as error:
            raise StoreError(
                f"rows of children cannot be kept: {error.strerror}", path=str(self._begin_path)
            ) from error

    @property
    def _begin_path(self) -> Path:
        return self._path.with_suffix(".begin")

    def _begin(self) -> FilePlace:
        """The place from which on the files may be read."""
        if not self._begin_path.exists():
            return FilePlace()
        place = FilePlace(*json.loads(self._begin_path.read_text()))
        names = [file.name for file in self._binlog.files()]
        # Files before it are purged in order, it first.
        return place if place.file in names else FilePlace()

    def close(self) -> None:
        """Let go of the file; what it has is good for the next start."""
        self._end_reading()
        if self._kept is not None:
            self._kept.rows.close()
            self._kept = None

    def remove(self) -> None:
        """Delete the file: the binlog follows its children no more."""
        self.close()
        self._begin_path.unlink(missing_ok=True)
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _end_reading(self) -> None:
        """Have no reading beside the writer; what it has kept so far is read again from the file."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.end()
            self._let_go()

    def _finish_reading(self) -> None:
        """Have what was read beside the writer, if that is over.

        Raises:
            UnknownRowsError: If it was not read.
            ChildrenBehindError: If it is being read.
        """
        if self.is_reading:
            raise _behind()
        if self._reading is not None:
            reading, self._reading = self._reading, None
            self._check(reading.result)

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.rows.roll_back()
            self._kept.rows.close()
            self._kept = None

    def _failed(self, error: Exception) -> UnknownRowsError:
        name = self._binlog.definition.name
        _LOG.warning("binlog %s: rows of children cannot be kept: %s", name, error)
        self._kept = None
        self.facts = replace(self.facts, unknown=((_UNKNOWN, f"they cannot be kept: {error}"),))
        return UnknownRowsError(_UNKNOWN, "rows of children cannot be kept on the disk")

    def _caught_up(self, links: TableLinks, *, is_here: bool = False) -> KeptChildren:
        """Rows behind the binlog's last group.

        Args:
            links: Foreign keys as they are behind that group.
            is_here: True if the writer reads itself, however much there is.

        Raises:
            UnknownRowsError: If the binlog's files cannot be read.
            ChildrenBehindError: If they are being read.
        """
        self._finish_reading()
        self._binlog.write_appended()
        scope = self._binlog.definition.scope
        kept = self._kept or self._opened()
        self._kept = kept
        needed = list(kept.needed(links, scope))
        if not kept.has(needed) and self._begin_path.exists():
            kept.follow_from_here(needed)
        elif not kept.has(needed):
            self._begin_anew(kept)
            kept.follow(needed)
        if not self._is_at_place(kept.state.place):
            _LOG.warning(
                "binlog %s: rows of children are read anew from its files: they are not those that "
                "were read before",
                self._binlog.definition.name,
            )
            self._begin_anew(kept)
        if kept.state.tables:
            then, wake = FilesThen.of(self._binlog), self._readings.wake
            if wake and not is_here and then.bytes_behind(kept.state.place) > _BEHIND_BYTES_MAX:
                self._reading = ChildReading(kept, then, wake)
                raise _behind()
            self._check(FileReading(kept, self._binlog).read)
            self._tell(kept)
        return kept

    def _check(self, read: Callable[[], bool]) -> None:
        """See that all was read; else have the rows as they were when they were last kept.

        Raises:
            UnknownRowsError: If it was not.
        """
        reason = "its last group is not there as a whole"
        try:
            is_read = read()
        except BinlaneError as error:
            is_read, reason = False, f"the binlog's own files cannot be read: {error}"
        if not is_read:
            self._let_go()
            raise UnknownRowsError(_UNKNOWN, reason)

    def _opened(self) -> KeptChildren:
        rows = ChildRowsFile(self._path)
        text = rows.saved()
        if text:
            try:
                return KeptChildren(rows, KeptState.decode(text, self._binlog.source_format))
            except (ValueError, KeyError, TypeError, BinlaneError):
                _LOG.warning(
                    "binlog %s: rows of children are read anew", self._binlog.definition.name
                )
        rows.clear()
        return KeptChildren(rows, KeptState(place=self._begin()))

    def _begin_anew(self, kept: KeptChildren) -> None:
        """Know nothing, and keep the same tables from the first file on."""
        state = kept.state
        followed = [
            (name, columns) for name, table in state.tables.items() for columns in table.indexes
        ]
        kept.rows.roll_back()
        kept.rows.clear()
        state.place, state.links, state.given = self._begin(), NO_LINKS, 0
        state.tables.clear()
        state.numbers.clear()
        kept.follow(followed)

    def _is_at_place(self, place: FilePlace) -> bool:
        """True if a place is in the files, with the bytes before it that were there."""
        if not place.file:
            return True
        files = self._binlog.files()
        known = next((each for each in files if each.name == place.file), None)
        if known is None:
            return False
        size = self._binlog.size_bytes if known is files[-1] else known.size_bytes
        path = known.directory / known.name
        return place.position <= size and check_of(path, place.position) == place.check

    def _tell(self, kept: KeptChildren) -> None:
        unknown = tuple(
            (name, table.reason) for name, table in kept.state.tables.items() if table.reason
        )
        if unknown != self.facts.unknown:
            for name, reason in unknown:
                _LOG.warning(
                    "binlog %s: changes of outside parents of %s stay INCIDENTs: %s",
                    self._binlog.definition.name,
                    name.plain,
                    reason,
                )
        self.facts = ShadowFacts(kept.rows.count(), kept.rows.size_bytes(), unknown)


def _behind() -> ChildrenBehindError:
    return ChildrenBehindError(
        "rows of children are being read from the binlog's files",
        hint="try again when SHOW BINLOGS tells no more of it",
    )


def prepare_children(binlog: ShadowedBinlog, links: TableLinks, after: Definition) -> None:
    """Read what the rows of a binlog's children need for its next definition.

    Args:
        binlog: The binlog as it is before.
        links: Foreign keys as they are behind its last group.
        after: The definition that it gets next.

    Raises:
        ChildrenBehindError: If that is much, and is read beside the writer: ask again behind it.
    """
    is_other = after.scope != binlog.definition.scope
    if binlog.children is not None and after.follows_cascades and is_other:
        binlog.children.prepare_scope(links, after.scope)


def foresee_children(
    binlog: ShadowedBinlog, readings: ChildReadings, after: Definition, *, had_others: bool
) -> None:
    """Know of the next definition of a binlog before it has it.

    Args:
        binlog: The binlog as it is before.
        readings: The readings of the store.
        after: The definition that it gets next.
        had_others: True if the binlog had another scope than now at some time.

    Raises:
        StoreError: If the disk fails.
    """
    is_other = after.scope != binlog.definition.scope
    if not after.follows_cascades:
        return
    if binlog.children is None and (is_other or had_others):
        ChildShadow(after.log_id, binlog, readings).begin_here()
    elif binlog.children is not None and is_other:
        binlog.children.change_scope(binlog.memory.links, after.scope)


def follow_children(binlog: ShadowedBinlog, readings: ChildReadings) -> None:
    """Keep the rows of a binlog's children, or keep them no more, as its definition says.

    Args:
        binlog: The binlog; its `children` are set.
        readings: The readings of the store.
    """
    shadow = ChildShadow(binlog.definition.log_id, binlog, readings)
    if not binlog.definition.follows_cascades:
        (binlog.children or shadow).remove()
        binlog.children = None
    elif binlog.children is None:
        binlog.children = shadow


def _sure(links: TableLinks) -> TableLinks:
    """The links, without actions where one key may have one of several parents."""
    parents: dict[tuple[TableName, str, tuple[str, ...]], set[TableName]] = {}
    for key in links.keys:
        parents.setdefault((key.table, key.own_name, key.columns), set()).add(key.parent)
    return replace(
        links,
        keys=frozenset(
            # SET DEFAULT, which InnoDB does not have, is what nobody follows.
            key
            if len(parents[key.table, key.own_name, key.columns]) == 1
            else replace(key, on_delete="SET DEFAULT", on_update="SET DEFAULT")
            for key in links.keys
        ),
    )
