"""Statements with passwords as binlogs have them: with the hashes that servers keep.

A reader of a binlog that has accounts in its scope would otherwise own the accounts that are made
while it is written. The same event gets the same hashes whenever it is read: its salts come of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha512
from typing import Final

from binlane.binlogs.routing.query_events import with_text
from binlane.binlogs.routing.session_format import groups_of
from binlane.log.codec.event import Event
from binlane.log.codec.format import Format
from binlane.log.codec.password_hashes import SALT_LENGTH
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.statement_text import encoded
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.raw import RawRun
from binlane.statements.sql.logged_statements import logged_statement, may_hold_password

_CONTEXT: Final = "a salt of binlane's"


def with_hashes(group: EventGroup, format_: Format) -> EventGroup:
    """A group without passwords; itself if it has none.

    Args:
        group: A group of the source.
        format_: Format of the FORMAT_DESCRIPTION before it.

    Raises:
        CodecError: If the context of such a statement is damaged.
    """
    if not any(map(_may_hold_password, group.events)):
        return group
    return replace(
        group, events=tuple(with_hashes_in(event, format_.flavor) for event in group.events)
    )


def with_hashes_in(event: Event, flavor: Flavor) -> Event:
    """An event without passwords; itself if it has none.

    Raises:
        CodecError: If the context of such a statement is damaged.
    """
    if not _may_hold_password(event):
        return event
    body = event.body
    assert isinstance(body, QueryEvent), "none else may"
    kept = statement_with_hashes(body, flavor, _salts(event, body))
    return event if kept is body else replace(event, body=kept)


def statement_with_hashes(
    body: QueryEvent, flavor: Flavor, salt: Callable[[str], bytes]
) -> QueryEvent:
    """A statement without passwords; itself if it has none.

    Args:
        body: QUERY event of the statement.
        flavor: Flavor of the statement's server.
        salt: Function that gives a salt for the password behind a text.
    """
    from binlane.statements.sql.passwords import PasswordReader  # noqa: PLC0415  # parses SQL

    statement = logged_statement(body)
    reader = PasswordReader(
        flavor=flavor,
        dialect=statement.dialect,
        encode=partial(encoded, body),
        salt=salt,
    )
    hashed = reader.with_hashes(statement.text)
    if hashed == statement.text:
        return body
    return with_text(body, hashed).in_form(body.tables_info)


def password_groups(run: RawRun, queries: Sequence[tuple[int, bytes]]) -> list[int]:
    """The groups of a run that may hold passwords.

    Args:
        run: A run of the source.
        queries: The run's statements, as `odd_queries` tells them.
    """
    return groups_of(run, {event for event, text in queries if may_hold_password(text)})


def _may_hold_password(event: Event) -> bool:
    return isinstance(event.body, QueryEvent) and may_hold_password(event.body.query)


def _salts(event: Event, body: QueryEvent) -> Callable[[str], bytes]:
    """Salts of an event's own, of which nothing of a password can be told."""
    header = event.header
    place = (header.timestamp, header.server_id, body.thread_id)

    def salt(owner: str) -> bytes:
        return sha512(repr((_CONTEXT, *place, owner)).encode()).digest()[:SALT_LENGTH]

    return salt
