"""The history of one table, from a log's groups: what made it, changed it and filled it.

A table that comes into a scope is made from its history: the statements and rows of the source's
log from its CREATE TABLE on, under another name. Only what is certainly the whole history counts; at
anything else `HistoryError` says why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlogs.routing.cut_group import plain_events
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.judging import judge_statement
from binlane.binlogs.routing.query_events import confined, with_text
from binlane.binlogs.routing.routed_group import OmissionKind
from binlane.binlogs.routing.routing_memory import NOTHING
from binlane.binlogs.routing.statement_verdicts import Keep
from binlane.binlogs.routing.table_births import ComingTable
from binlane.binlogs.routing.table_links import NO_LINKS, TableLinks
from binlane.errors import BinlaneError, CodecError
from binlane.log.codec.client_text import text_of_name
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import RowsEvent, TableMapEvent
from binlane.log.codec.status_vars import StatusVar, decode_status_vars, encode_status_vars
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import ALTER_PHASES, EventType, Flavor, RowsFlag
from binlane.log.grouping.event_group import END_QUERIES, EventGroup, is_begin
from binlane.names import TableName, quote
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.logged_statements import logged_statement
from binlane.statements.sql.servers import Dialect, LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_changes import created
from binlane.statements.sql.tokens import NAME_KINDS, tokenise
from binlane.statements.sql.tree.definitions import CreateTable

_FLAGS2: Final = "FLAGS2"
_NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_MAKING: Final = frozenset({StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE})
_CHANGING: Final = frozenset(
    {
        *(StatementKind.ALTER_TABLE, StatementKind.TRUNCATE_TABLE),
        *(StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX),
    }
)
_QUIET: Final = frozenset({StatementKind.MAINTENANCE, StatementKind.SAVEPOINT})
# What stands before the name of a constraint.
_CONSTRAINED: Final = re.compile(r"(?:CONSTRAINT|FOREIGN KEY|CHECK)(?: IF EXISTS)?$")
# Status variables of a context that belong to the event and its group.
_OF_THE_EVENT: Final = frozenset(
    {
        *("UPDATED_DB_NAMES", "MICROSECONDS", "COMMIT_TS", "COMMIT_TS2", "DDL_LOGGED_WITH_XID"),
        *("HRNOW", "XID", "GTID_FLAGS3", "GTID_FLAGS"),
    }
)


class HistoryError(BinlaneError):
    """The history of a table is not certain: the table comes in by an INCIDENT.

    Attributes:
        reason: The cause, naming no object.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvents:
    """The part of a group that belongs to a table's history.

    Attributes:
        statement: A statement about the table under the name that it is filled under; None if there
            is none.
        rows: TABLE_MAPs and rows under that name.
        begins: True if the table is made anew: everything before is void.
        empties: True if all rows before are void.
    """

    statement: Event | None = None
    rows: tuple[Event, ...] = ()
    begins: bool = False
    empties: bool = False


class TableHistory:
    """Reads the history of one table, group by group, from the one on that made it.

    Args:
        coming: The table that comes in.
        scope: Scope of the binlog that it comes into.
        links: Links between tables, as they are when it comes in.

    Attributes:
        is_there: True if the table is there behind the groups that were read.
        has_rows: True if it may have rows.
    """

    def __init__(self, coming: ComingTable, scope: Scope, links: TableLinks = NO_LINKS) -> None:
        self.is_there = self.has_rows = False
        self._coming = coming
        self._flavor = Flavor.MARIADB
        self._old = coming.birth.name
        self._scope = scope
        self._own = Scope.nothing(ignores_case=scope.ignores_case).with_tables([self._old])
        self._inside = scope.with_tables([coming.new, coming.filling])
        self._definition = Definition(
            name="history", scope=self._own, logging_mode=LoggingMode.ROW, log_id=1
        )
        # Keys of its own come with its statements.
        self._memory = replace(NOTHING, links=links.without([coming.birth.name]))
        self._ancestors: frozenset[TableName] = frozenset()
        self._models: set[TableName] = set()

    def concerns(self, table: TableName) -> bool:
        """True if rows of a table belong to the history, or may have changed some that do."""
        return self._own.includes(table) or self._own.key(table) in self._ancestors

    def read(self, group: EventGroup, format_: Format) -> HistoryEvents:
        """Read a group that may bear on the table.

        Args:
            group: A complete group with a GTID.
            format_: Format of the FORMAT_DESCRIPTION before it.

        Raises:
            HistoryError: If the group leaves it open what the table is behind it.
        """
        self._flavor = format_.flavor
        try:
            events = plain_events(group, format_)
            whole = replace(group, events=events)
            statements = [body for one in events if (body := _statement_in(one)) is not None]
            # All of them are asked: they check what the table was made like, too.
            about = [self._is_about(body) for body in statements]
            found = self._read_statement(whole) if any(about) else self._read_rows(whole, format_)
            for body in statements:
                self._follow(body)
        except CodecError as error:
            raise HistoryError(f"a group of its history cannot be read: {error}") from error
        return found

    def _is_about(self, body: QueryEvent) -> bool:
        """True if a statement makes, changes or drops the table; checks what it was made like.

        Raises:
            HistoryError: If that is not known, or if the table that it was made like may differ.
        """
        effects = logged_statement(body).effects()
        if effects.stopped_at is not None or effects.kind is StatementKind.UNKNOWN:
            if self._may_be_about(body.query):
                raise HistoryError("a statement of its history could not be analysed")
            return False
        if effects.is_temporary:
            return False
        touched = {self._own.key(one) for one in (*effects.changed_tables, *effects.drops)}
        if any(self._own.is_same(self._old.database, one) for one in effects.dropped_databases):
            raise HistoryError("its database was dropped meanwhile")
        if self._models & touched or any(
            self._own.is_same(model.database, one)
            for model in self._models
            for one in effects.dropped_databases
        ):
            raise HistoryError("the table that it was made like was altered meanwhile")
        others = self._ancestors - {self._own.key(self._old)}
        if others & {*touched, *(self._own.key(one) for one in effects.writes)}:
            raise HistoryError("a table that its foreign keys refer to was altered meanwhile")
        if effects.kind is StatementKind.ALTER_DATABASE and self._old.database in effects.databases:
            raise HistoryError("its database was altered meanwhile")
        return self._own.key(self._old) in touched

    def _follow(self, body: QueryEvent) -> None:
        """Remember the links by which the table's rows change with those of others."""
        facts = logged_statement(body).facts()
        links = self._memory.links.after(facts, facts.effects)
        links = links.folded if self._own.ignores_case else links
        known = frozenset(filter(self._own.includes, links.known))
        self._memory = replace(self._memory, links=replace(links, known=known))
        if links.is_merged(self._own.key(self._old)):
            raise HistoryError("a MERGE table may have changed its rows")
        self._ancestors = links.ancestors(self._own.key(self._old))

    def _may_be_about(self, query: bytes) -> bool:
        """True if a statement that nobody understands names the table, or a whole database."""
        name, text = self._old.table, query.lower()
        return (
            not name.isascii()
            or name.lower().encode() in text
            or b"database" in text
            or b"schema" in text
        )

    def _read_statement(self, group: EventGroup) -> HistoryEvents:
        """A group of one statement about the table."""
        event, body = _alone_in(group)
        effects = logged_statement(body).effects()
        kind = effects.kind
        if kind in _QUIET:
            return HistoryEvents()
        if kind is StatementKind.DROP_TABLE:
            self.is_there, self.has_rows, self._models = False, False, set()
            return HistoryEvents(begins=True)
        is_made = kind in _MAKING
        if is_made and effects.if_exists and self.is_there:
            return HistoryEvents()
        if len(effects.writes) != 1 or effects.renames or effects.drops or effects.objects:
            raise HistoryError("a statement of its history is about other tables, too")
        if not (is_made or (kind in _CHANGING and self.is_there)):
            raise HistoryError(f"its history has a statement that it cannot have: {kind.value}")
        return self._changed(event, body, effects)

    def _changed(self, event: Event, body: QueryEvent, effects: StatementEffects) -> HistoryEvents:
        """A statement that makes, alters or empties the table alone."""
        kind = effects.kind
        is_made = kind in _MAKING
        if kind is StatementKind.TRUNCATE_TABLE:
            self.has_rows = False
            return HistoryEvents(empties=True)
        if self.has_rows and not is_made:
            raise HistoryError("it was altered when it had rows already")
        is_like = kind is StatementKind.CREATE_TABLE_LIKE
        models = set(map(self._own.key, effects.reads)) if is_like else set()
        made = self._renamed(body, effects)
        if is_made:
            self.is_there, self.has_rows, self._models = True, False, models
        return HistoryEvents(statement=replace(event, body=made), begins=is_made)

    def _renamed(self, body: QueryEvent, effects: StatementEffects) -> QueryEvent:
        """A statement about the table, under the name that the table is filled under."""
        coming = self._coming
        if any(not self._scope.includes(one) for one in effects.reads):
            raise HistoryError("a statement of its history needs tables outside of the scope")
        if coming.new.database != self._old.database and not _names_its_charset(body, self._old):
            raise HistoryError("its character set comes from its database, which is another one")
        statement = logged_statement(body)
        first = statement.facts().tables[0]
        names = [
            text_of_name(name, statement.charset)
            for name in (coming.filling.database, coming.filling.table)
        ]
        if None in names:
            raise HistoryError("its name cannot be written in the character set of a client")
        name = ".".join(map(str, names))
        text = statement.text
        text = f"{text[: first.offset]}{name}{text[first.offset + first.length :]}"
        made = with_text(body, self._with_constraints(text, statement.dialect))
        found = judge_statement(logged_statement(made), self._inside, NOTHING)
        after = found.facts.effects
        is_renamed = set(map(self._own.key, after.writes)) == {self._own.key(coming.filling)}
        if not isinstance(found.verdict, Keep) or not is_renamed or self._old in after.reads:
            raise HistoryError("a statement of its history cannot stand under another name")
        inside = confined(with_text(made, found.text), self._inside, after)
        return replace(inside, status_vars=without_checks(inside.status_vars))

    def _with_constraints(self, text: str, dialect: Dialect) -> str:
        """A statement with the names that the server makes of the filled table's, for constraints.

        It makes them anew of each name that the table gets, and they are unique in their database.
        """
        kinds = "ibfk" if self._flavor is Flavor.MARIADB else "ibfk|chk"
        made = re.compile(rf"{re.escape(self._old.table)}(_(?:{kinds})_\d+)", re.IGNORECASE)
        words, end = [""], 0
        pieces: list[str] = []
        for token in tokenise(text, dialect):
            found = made.fullmatch(token.value) if token.kind in NAME_KINDS else None
            if found is not None and _CONSTRAINED.search(" ".join(words[-4:])):
                pieces += text[end : token.offset], quote(self._coming.filling.table + found[1])
                end = token.end
            words.append(token.word)
        return "".join((*pieces, text[end:]))

    def _read_rows(self, group: EventGroup, format_: Format) -> HistoryEvents:
        """The table's rows of a group."""
        routing = route(group, self._definition, format_, memory=self._memory)
        self._memory = routing.memory or self._memory
        if routing.incident is not None:
            raise HistoryError(f"its history is not known: {routing.incident}")
        if any(one.kind is OmissionKind.STATEMENT for one in routing.omissions):
            raise HistoryError("changes of its history were logged as statements")
        if routing.group is None:
            return HistoryEvents()
        if not self.is_there:
            raise HistoryError("it has rows before it was made")
        rows = tuple(self._rows_of(routing.group.events))
        self.has_rows = self.has_rows or bool(rows)
        return HistoryEvents(rows=rows)

    def _rows_of(self, events: Sequence[Event]) -> Iterator[Event]:
        name, last = self._coming.filling, events[-1]
        is_committed = last.header.type_code == EventType.XID or (
            isinstance(last.body, QueryEvent) and last.body.query == b"COMMIT"
        )
        if not is_committed:
            raise HistoryError("a transaction of its history was not committed by itself")
        for event in events[1:-1]:
            body = event.body
            if isinstance(body, TableMapEvent):
                renamed = replace(body, database=name.database, table=name.table)
                yield replace(event, body=renamed)
            elif isinstance(body, RowsEvent):
                # Its parents may be gone by now.
                flags = body.flags | RowsFlag.NO_FOREIGN_KEY_CHECKS
                yield replace(event, body=replace(body, flags=flags))
            elif isinstance(body, QueryEvent) and not is_begin(event):
                if logged_statement(body).effects().kind not in _QUIET:
                    raise HistoryError("a transaction of its history was rolled back in part")
            elif event.header.type_code not in _TEXTS and not is_begin(event):
                raise HistoryError(f"its history has a {event.header.type_name}")


_TEXTS: Final = frozenset({EventType.ANNOTATE_ROWS, EventType.ROWS_QUERY})


def without_checks(status_vars: bytes) -> bytes:
    """A statement's context with foreign_key_checks=0, and without what belongs to its event alone."""
    kept = []
    for one in decode_status_vars(status_vars):
        if one.name == _FLAGS2 and isinstance(one.value, int):
            kept.append(replace(one, value=one.value | _NO_FOREIGN_KEY_CHECKS))
        elif one.name not in _OF_THE_EVENT:
            kept.append(one)
    if not any(one.name == _FLAGS2 for one in kept):
        kept.insert(0, StatusVar(0, _FLAGS2, _NO_FOREIGN_KEY_CHECKS))
    return encode_status_vars(kept)


def _alone_in(group: EventGroup) -> tuple[Event, QueryEvent]:
    """The one statement of a group.

    Raises:
        HistoryError: If the group has others or rows, or if the statement may have failed.
    """
    first = group.events[0].body
    if isinstance(first, GtidEvent) and (first.flags_extra or 0) & ALTER_PHASES:
        raise HistoryError("its ALTER TABLE was logged in two phases")
    found = [(one, body) for one in group.events if (body := _statement_in(one)) is not None]
    others = [one for one in group.events[1:] if not isinstance(one.body, QueryEvent)]
    if len(found) != 1 or any(one.header.type_code != EventType.XID for one in others):
        raise HistoryError("it was made and filled by one statement")
    event, body = found[0]
    if body.error_code or body.is_compressed:
        raise HistoryError("a statement of its history failed, or is compressed")
    return event, body


def _statement_in(event: Event) -> QueryEvent | None:
    """The statement that an event is; None for the brackets of a transaction and other events."""
    body = event.body
    if not isinstance(body, QueryEvent) or is_begin(event):
        return None
    return None if body.query in END_QUERIES else body


def _names_its_charset(body: QueryEvent, name: TableName) -> bool:
    """True if a table is the same in a database of any character set."""
    facts = logged_statement(body).facts()
    if not isinstance(facts.tree, CreateTable):
        return facts.effects.kind is not StatementKind.CREATE_TABLE
    table = created(name, facts, engine="INNODB", charset=None)
    return any(option in ("CHARSET", "COLLATE") for option, _ in table.options)
