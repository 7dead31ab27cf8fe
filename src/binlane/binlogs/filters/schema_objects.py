"""The objects of a log's server, as a schema tells them and the log's own DDL changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.event import Event
from binlane.names import TableName
from binlane.statements.policy.resolution import Opening, resolve
from binlane.statements.policy.server import Server
from binlane.statements.policy.used_objects import body_use
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.statement_kinds import (
    DDL_KINDS,
    READING_KINDS,
    WRITING_KINDS,
    StatementKind,
)

Load = Callable[[LoggedObjects], None]
"""Fills a catalog with what a schema says."""

_RESOLVED: Final = WRITING_KINDS | READING_KINDS | {StatementKind.CREATE_TABLE_SELECT}
_WITHOUT_TABLES: Final = frozenset(
    {
        *(StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK),
        *(StatementKind.SAVEPOINT, StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT),
        *(StatementKind.SIGNAL, StatementKind.EMPTY, StatementKind.DEALLOCATE),
    }
)
"""Statements that may stand in a program beside those that name tables."""
_ENGINE: Final = "InnoDB"


class SchemaObjects:
    """Views, routines and triggers of the server that wrote a log.

    Args:
        load: Fills a catalog; called when the log's server is known, since schemas are read as
            their server reads them.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._catalog: LoggedObjects | None = None
        self._server = Server("mariadb", (10, 11, 0))

    def feed(self, event: Event) -> None:
        """Follow a log, event by event.

        Raises:
            CodecError: If the status variables of a statement are damaged.
        """
        if isinstance(event.body, FormatDescriptionEvent):
            self.begin(event.body)
        elif self._catalog is not None:
            self._catalog.feed(event)

    def begin(self, description: FormatDescriptionEvent) -> None:
        """Take a file's FORMAT_DESCRIPTION: the first one says whose schema it is."""
        if self._catalog is not None:
            return
        flavor = description.format.flavor
        self._server = Server.of(flavor.value, description.format.server_version)
        catalog = LoggedObjects(flavor, server_version=self._server.version)
        self._load(catalog)
        self._catalog = catalog

    def behind_views(self, names: Iterable[TableName]) -> Iterator[TableName]:
        """The tables that tables and views are made of; a name that is not known is its own."""
        catalog = self._catalog
        waiting, seen = [*names][::-1], set[TableName]()
        while waiting:
            name = waiting.pop()
            view = None if catalog is None or name in seen else catalog.view(name)
            if view is None:
                yield name
            else:
                seen.add(name)
                waiting += [use.name for use in view.facts.tables][::-1]

    def used_by(self, facts: StatementFacts, database: str) -> tuple[TableName, ...] | None:
        """The tables of a statement through views, stored functions, triggers and procedures.

        Foreign keys are left out: a replay repeats their effects.

        Args:
            facts: Facts of the statement's text.
            database: Default database of the statement's session.

        Returns:
            The tables without repetition; None if something that the statement runs is not known or
            not understood.
        """
        if self._catalog is None:
            return None
        found: dict[TableName, None] = {}
        return tuple(found) if self._use(facts, database, found, set()) else None

    def _use(
        self,
        facts: StatementFacts,
        database: str,
        found: dict[TableName, None],
        called: set[TableName],
    ) -> bool:
        """Add what a statement uses; whether all of it is known."""
        kind, catalog = facts.effects.kind, self._catalog
        assert catalog is not None, "who asks has looked"
        if kind is StatementKind.CALL:
            return self._call(facts, found, called)
        if kind in DDL_KINDS and kind is not StatementKind.CREATE_TABLE_SELECT:
            found.update(dict.fromkeys(self.behind_views(_named(facts))))
            return True
        if kind not in _RESOLVED:
            return kind in _WITHOUT_TABLES
        opening = Opening(catalog, self._server, database, assume_engine=_ENGINE)
        used = resolve(facts, opening)
        found.update((access.name, None) for access in used.accesses if not access.is_foreign_key)
        return not (used.notes or used.errors)

    def _call(
        self,
        facts: StatementFacts,
        found: dict[TableName, None],
        called: set[TableName],
    ) -> bool:
        """Add what a procedure's statements use, those of procedures that it calls among them."""
        assert self._catalog is not None, "who asks has looked"
        for name in facts.effects.calls:
            procedure = self._catalog.procedure(name)
            if procedure is None:
                return False
            if procedure.name in called:
                continue
            called.add(procedure.name)
            inside = procedure.name.database
            body = body_use(procedure.body, inside, procedure.dialect)
            if not body.is_understood:
                return False
            if not all(self._use(part, inside, found, called) for part in body.facts):
                return False
        return True


def _named(facts: StatementFacts) -> tuple[TableName, ...]:
    return (*facts.effects.writes, *facts.effects.reads)
