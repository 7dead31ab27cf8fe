"""Query events of real logs → statements."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.statements.sql.logged_statements import LoggedStatement, logged_statement
from tests.fixture_sets import fixture_set


def logged(name: str) -> Iterator[LoggedStatement]:
    for file, data in fixture_set(name).binlogs:
        for event in walk([data], file=file):
            if isinstance(event.body, QueryEvent):
                yield logged_statement(event.body)


def test_a_statement_is_read_as_its_session_wrote_it() -> None:
    (quoted,) = [each for each in logged("md1011_ddl") if each.text.startswith('CREATE TABLE "')]
    assert quoted.database == "shop"
    assert quoted.dialect.ansi_quotes
    assert not quoted.dialect.no_backslash_escapes
    assert quoted.effects().writes == (TableName("shop", 'ansi "q"x'),)


def test_of_a_two_phase_alter_only_the_commit_is_done() -> None:
    ((file, data), *_) = fixture_set("md1011_alter_two_phase").binlogs
    is_done, alters = True, []
    for event in walk([data], file=file):
        if isinstance(event.body, GtidEvent):
            is_done = not event.body.is_undone
        elif isinstance(event.body, QueryEvent) and event.body.query.startswith(b"ALTER"):
            alters.append(is_done)
    assert True in alters
    assert False in alters
