"""A record, run through a session of ours, and what differs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.servers import LoggingFormat
from tests.logged_events import Event, comparable, is_rows
from tests.yardsticks.outcomes import outcome
from tests.yardsticks.records import Record, objects_script

_ISOLATION: Final = {"mariadb": "tx_isolation", "mysql": "transaction_isolation"}
_VERSIONS: Final = {"mariadb": "mariadb:10.11.19", "mysql": "mysql:9.7.4"}
_FORMATS: Final = {LoggingFormat.ROW: "row", LoggingFormat.STATEMENT: "stmt", None: "none"}
_NO_STATEMENTS: Final = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which we and the server differ.

    Attributes:
        aspect: `error`, `notes`, `events`, `events at end`, `logged_as` or `crash`.
        expected: What the server did.
        actual: What we say.
    """

    aspect: str
    expected: object
    actual: object


def differences(record: Record) -> list[Difference]:
    """Run a record; everything in which the result is not the server's."""
    session = _session(record.flavor)
    for statement in settings_of(record):
        session.execute(statement)
    if record.name == "create_db" and record.number not in _first_of_each(record.flavor):
        session.execute("create database d2")  # the recording's first such statement made it
    if record.name == "fun:setval(sq,50)":
        session.execute("do setval(sq,5000)")  # the recording had gone past 50 before
    for statement in record.before:
        session.execute(statement)
    result = session.execute(record.sql, outcome(record))
    at_end = [event for sql in record.end for event in _events(session.execute(sql))]
    return list(_compare(record, result, at_end))


def _session(flavor: str) -> Session:
    server = Server.parse(_VERSIONS[flavor])
    return Session(server=server, objects=recorded_objects(flavor).copy(), database="d")


@cache
def recorded_objects(flavor: str) -> SchemaCatalog:
    """The objects of the recording, which a session is to have a copy of."""
    catalog = SchemaCatalog(Flavor(flavor))
    catalog.load(objects_script(flavor))
    return catalog


@cache
def _first_of_each(flavor: str) -> frozenset[int]:
    from tests.yardsticks.records import records  # noqa: PLC0415

    first: dict[str, int] = {}
    for record in records(flavor):
        first.setdefault(record.name, record.number)
    return frozenset(first.values())


def settings_of(record: Record) -> Iterable[str]:
    """The statements that bring a session into the record's settings."""
    settings = record.settings
    yield f"set session binlog_format={settings['binlog_format']}"
    yield f"set session {_ISOLATION[record.flavor]}='{settings['tx_isolation']}'"
    yield f"set binlog_direct_non_transactional_updates={settings['binlog_direct']}"
    yield f"set autocommit={settings['autocommit']}"
    yield "set @uv='u'"


def _events(result: StatementResult) -> tuple[tuple[str, str], ...]:
    return result.binlogs["binlog"].events


def _compare(
    record: Record, result: StatementResult, at_end: list[tuple[str, str]]
) -> Iterable[Difference]:
    errno = result.error.errno if result.error else None
    if result.unanalysed is not None:
        yield Difference("unanalysed", None, result.unanalysed.reason)
    if errno != record.error:
        yield Difference("error", record.error, errno)
    reasons = tuple(note.reason for note in result.notes if note.is_told)
    if reasons != record.reasons:
        yield Difference("notes", record.reasons, reasons)
    words = record.sql.lower()
    upserts = words.startswith("replace") or "on duplicate key" in words
    pairs = (
        ("events", record.events, _events(result)),
        ("events at end", record.events_at_end, tuple(at_end)),
    )
    for aspect, expected, actual in pairs:
        theirs, ours = comparable(expected, upserts=upserts), comparable(actual, upserts=upserts)
        if theirs != ours:
            yield Difference(aspect, theirs, ours)
    if record.context in {"auto", "trx"}:
        logged_as = _FORMATS[result.binlogs["binlog"].logged_as]
        expected_kind = _kind(comparable(record.events + record.events_at_end))
        if logged_as != expected_kind:
            yield Difference("logged_as", expected_kind, logged_as)


def _kind(events: list[Event]) -> str:
    """How a statement alone in its transaction was logged."""
    if any(is_rows(event) for event in events):
        return "row"
    texts = {"Query", "Execute_load_query"}
    said = [event for event in events if event.type in texts and event.info not in _NO_STATEMENTS]
    return "stmt" if any(not event.info.startswith("SAVEPOINT") for event in said) else "none"
