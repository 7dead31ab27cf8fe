"""Statements of a log that may change objects, each read once: by its bytes, or by those of others like it.

The context of DDL has the number of its transaction, which differs each time and bears on nothing:
it is no part of a statement's key. Statements on one table each, which differ in its name alone, are
one template: what the first one says of its table, the others say of theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from binlane.binlogs.routing.query_events import PLAIN, THREAD_AND_TIME
from binlane.binlogs.routing.session_format import is_logged_as_statement, may_be_change
from binlane.log.codec.buffer import Reader
from binlane.log.codec.query import QueryCompressedEvent, QueryEvent
from binlane.log.codec.status_vars import (
    DDL_LOGGED_WITH_XID,
    GTID_FLAGS,
    decode_status_vars,
    encode_status_vars,
)
from binlane.names import TableName
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.logged_statements import (
    is_about_rows_only,
    logged_statement,
    may_hold_password,
)
from binlane.statements.sql.parser.reserved_words import reserved_words
from binlane.statements.sql.servers import Dialect

KEPT_MAX: Final = 2048
"""Statements and contexts that are kept; of more all are forgotten."""
_LONGEST: Final = 8 << 10
"""Bytes of a statement's event that is kept; longer ones are for the reference."""
_POST_HEADER: Final = 13
_NUMBER: Final = 8
_NO_NUMBER: Final = bytes(_NUMBER)
_XID: Final = 129
_WORD: Final = rb"[A-Za-z][0-9A-Za-z]*[0-9_][0-9A-Za-z_]*|`[0-9A-Za-z_$]+`"
_ON_ONE_TABLE: Final = re.compile(
    rb"((?:CREATE(?: OR REPLACE)? TABLE(?: IF NOT EXISTS)?|DROP TABLE(?: IF EXISTS)?"
    rb"|ALTER TABLE|TRUNCATE(?: TABLE)?|(?:ANALYZE|OPTIMIZE|REPAIR) TABLE"
    rb"|(?:CREATE(?: UNIQUE)?|DROP) INDEX (?:\w+|`[^`]+`) ON) )(?:(%b)\.)?(%b)(?![0-9A-Za-z_$.`@\x80-\xff])"
    % (_WORD, _WORD),
    re.IGNORECASE,
)
# Beside what may name other tables: a name with a dot, and what comes with links between tables.
_MAY_NAME_OTHERS: Final = re.compile(
    rb"\.|REFERENCES|UNION|CONSTRAINT|IDENTIFIED|/\*M?!", re.IGNORECASE
)
_MAY_LINK: Final = re.compile(rb"REFERENCES|UNION", re.IGNORECASE)
_RESERVED: Final = reserved_words(Dialect())
_OF_SERVERS: Final = frozenset(
    ("mysql", "sys", "information_schema", "performance_schema", "binlane")
)
_OWN_PREFIX: Final = "binlane"


class OneTable(NamedTuple):
    """The one table of a statement.

    Attributes:
        table: The table's name, with its database.
        written: The name as the text has it, its database included.
        at: Offset of it in the text.
    """

    table: TableName
    written: bytes
    at: int

    @property
    def end(self) -> int:
        """Offset behind the name."""
        return self.at + len(self.written)


@dataclass(slots=True, eq=False, kw_only=True)
class DdlText:
    """A statement that may change objects.

    Attributes:
        body: Event of the statement, without thread, time, and number of its transaction.
        number_at: Place of the transaction's number in the context; -1 without one.
        is_told: True if a log of rows would not hold the statement as such.
        may_link: True if it may make links between tables.
        name: The statement's one table; None if it is no template's.
        template: The first statement that differs from it in its table's name alone; None for one
            that is alone.
    """

    body: QueryEvent
    number_at: int
    is_told: bool
    may_link: bool
    name: OneTable | None = None
    template: DdlText | None = None


_Key = tuple[bytes, bytes, bool]


_UNREAD: Final = DdlText(
    body=QueryEvent(
        thread_id=0, execution_time=0, error_code=0, status_vars=b"", database=b"", query=b""
    ),
    number_at=-1,
    is_told=False,
    may_link=False,
)
"""A statement of which nobody asks for more than that it is none on rows."""


class DdlReader:
    """Reads the statements of runs that may change objects, as far as it knows what they are.

    Args:
        reads_all: False if nobody asks for more than statements that are logged as such.
    """

    def __init__(self, *, reads_all: bool) -> None:
        self._reads_all = reads_all
        self._texts: dict[_Key, DdlText | None] = {}
        self._templates: dict[tuple[bytes, ...], DdlText] = {}
        self._contexts: dict[bytes, int] = {}
        self._places: dict[int, tuple[int, ...]] = {}

    def text(self, data: bytes, *, is_compressed: bool) -> DdlText | None:
        """The statement of a QUERY event, by the event's body; None if it is for the reference.

        Raises:
            CodecError: If the event's context or its text is damaged.
        """
        if len(data) > _LONGEST:
            return None
        end = behind_context(data)
        if not (self._reads_all or is_compressed):
            text = data[end + data[8] + 1 :]
            if not may_be_change(text):
                return None if may_hold_password(text) else _UNREAD
        context, at = self._without_number(data[_POST_HEADER:end])
        key = context, data[8:11] + data[end:], is_compressed
        if key in self._texts:
            return self._texts[key]
        head = bytes(THREAD_AND_TIME) + data[8:13] + context
        found = self._read(head + data[end:], end, at, is_compressed=is_compressed)
        if len(self._texts) >= KEPT_MAX:
            self._texts.clear()
        self._texts[key] = found
        return found

    def _without_number(self, context: bytes) -> tuple[bytes, int]:
        """A context without the number of its transaction, and the number's place; -1 without one.

        Raises:
            CodecError: If the context is damaged.
        """
        for at in self._places.get(len(context), ()):
            cut = context if at < 0 else context[:at] + _NO_NUMBER + context[at + _NUMBER :]
            if self._contexts.get(cut) == at:
                return cut, at
        variables = decode_status_vars(context)
        at, place = -1, 0
        for each in variables:
            if each.code in (_XID, DDL_LOGGED_WITH_XID):
                at = place + 1
            place += len(encode_status_vars((each,)))
        cut = context if at < 0 else context[:at] + _NO_NUMBER + context[at + _NUMBER :]
        if len(self._contexts) >= KEPT_MAX:
            self._contexts.clear()
            self._places.clear()
        self._contexts[cut] = at
        self._places[len(context)] = tuple({*self._places.get(len(context), ()), at})
        return cut, at

    def _read(
        self, data: bytes, end: int, number_at: int, *, is_compressed: bool
    ) -> DdlText | None:
        parts = None if is_compressed else _one_table(data, end)
        template = None if parts is None else self._templates.get(parts[1])
        if template is not None and parts is not None:
            return _like(template, data, end, parts[0])
        kind = QueryCompressedEvent if is_compressed else QueryEvent
        body = kind.decode(Reader(data), PLAIN)
        query = body.query
        if len(query) > _LONGEST or is_about_rows_only(query) or may_hold_password(query):
            return None
        if any(each.code == GTID_FLAGS for each in decode_status_vars(body.status_vars)):
            return None
        may_be_told = may_be_change(query)
        is_read = self._reads_all or may_be_told
        facts = logged_statement(body).facts() if is_read else None
        found = DdlText(
            body=body,
            number_at=number_at,
            is_told=may_be_told and facts is not None and is_logged_as_statement(facts),
            may_link=_MAY_LINK.search(query) is not None,
        )
        if parts is not None and facts is not None and _is_about(facts, parts[0]):
            if len(self._templates) >= KEPT_MAX:
                self._templates.clear()
            found.name, found.template = parts[0], found
            self._templates[parts[1]] = found
        return found


def context_of(data: bytes) -> bytes:
    """The context in the body of a QUERY."""
    return data[_POST_HEADER : behind_context(data)]


def behind_context(data: bytes) -> int:
    """The place behind the context in the body of a QUERY."""
    return _POST_HEADER + (data[11] | data[12] << 8)


def _one_table(data: bytes, end: int) -> tuple[OneTable, tuple[bytes, ...]] | None:
    """The table that a text seems to be about, and the rest of the event; None if more may be named.

    Args:
        data: Body of a plain QUERY event, without its number.
        end: Place behind the context in it.
    """
    length = data[8]
    database, query = data[end : end + length], data[end + length + 1 :]
    found = _ON_ONE_TABLE.match(query)
    if found is None or not (query.isascii() and database.isascii()):
        return None
    tail = query[found.end() :]
    if _MAY_NAME_OTHERS.search(tail):
        return None
    head, of, table = found.groups()
    name = _plain(table)
    given = _plain(of or database) if of else database.decode()
    if not name or not given or given.lower() in _OF_SERVERS or _is_own(name):
        return None
    at, behind = found.span(2 if of else 3)[0], found.end()
    key = (head, of or b"", (query[behind - 1 : behind] == b"`" and b"`") or b"", tail)
    name_ = OneTable(TableName(given, name), query[at:behind], at)
    return name_, (*key, database, data[8:end])


def _is_own(name: str) -> bool:
    """True if a table may be one of binlane's own."""
    return name.lower().startswith(_OWN_PREFIX)


def _plain(word: bytes) -> str:
    """The name that a word stands for; empty if it may be another word than a name."""
    text = word.decode()
    if text[0] == "`":
        return text[1:-1]
    return "" if text.upper() in _RESERVED else text


def _is_about(facts: StatementFacts, name: OneTable) -> bool:
    """True if a statement is about one table alone, whose name stands where it seems to."""
    effects, tables = facts.effects, facts.tables
    if effects.stopped_at is not None or effects.writes != (name.table,) or len(tables) != 1:
        return False
    beside = (effects.reads, effects.databases, effects.objects, effects.calls, effects.renames)
    if any(beside) or effects.drops not in ((), effects.writes):
        return False
    if facts.functions or facts.body_functions or effects.is_temporary:
        return False
    (use,) = tables
    return use.name == name.table and (use.offset, use.length) == (name.at, len(name.written))


def _like(template: DdlText, data: bytes, end: int, name: OneTable) -> DdlText:
    """A statement that differs from a template's first one in its table's name alone."""
    before = template.body
    body = QueryEvent(
        thread_id=0,
        execution_time=0,
        error_code=before.error_code,
        status_vars=before.status_vars,
        database=before.database,
        query=data[end + data[8] + 1 :],
    )
    return DdlText(
        body=body,
        number_at=template.number_at,
        is_told=template.is_told,
        may_link=template.may_link,
        name=name,
        template=template,
    )
