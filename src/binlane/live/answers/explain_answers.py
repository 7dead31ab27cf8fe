"""EXPLAIN BINLOG: what a statement would do to each binlog, told of the source's own objects.

What the statement leads to is taken from the port's live catalog; if the client may not see all of
it, nothing is told. Where there is no such catalog the source is asked in the client's session. Then
the statement is run without the source, as `check` does, beside the event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from binlane.client.known_objects import KnownObjects
from binlane.client.needed_objects import Need, Question, questions_of
from binlane.client.source_objects import Source, SourceSession
from binlane.errors import StatementError
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.catalog_connections import lacking_privileges
from binlane.live.port.live_catalog import LiveCatalog
from binlane.log.codec.packets.results import Cell, ColumnDefinition
from binlane.log.codec.types import Flavor
from binlane.statements.check.binlog_forms import BinlogForm, forms_of
from binlane.statements.check.findings import (
    SYNTAX_ERROR,
    CheckedStatement,
    Finding,
    Kind,
    findings,
    hints,
)
from binlane.statements.check.script import ScriptStatement
from binlane.statements.policy.server import Server
from binlane.statements.scope.definition import Definition
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.report import BinlogResult, StatementResult
from binlane.statements.session.server_errors import SessionErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.tokens import SqlSyntaxError

COLUMNS: Final = (
    *("Binlog", "Logged_as", "Verdict"),
    ColumnDefinition.integer("Errno"),
    *("Reason", "Message", "Object", "Through", "Hint", "Events", "Row_image", "Compress"),
)
_GAP: Final = r"\s|\#[^\n]*\n|--[\s][^\n]*\n|/\*(?!M?!).*?\*/"
_EXPLAIN: Final = re.compile(
    rf"(?:{_GAP}|(?!))*+(?:EXPLAIN|DESCRIBE|DESC)(?:{_GAP}|(?!))++BINLOG\b",
    re.IGNORECASE | re.DOTALL,
)
_BARE: Final = re.compile(r"\w+", re.ASCII)
_SYNTAX: Final = "EXPLAIN BINLOG statement"
# With definitions each binlog has a mode of its own.
_MODE: Final = "binlog_format"
_SWITCH: Final = ("OFF", "ON")


def explained(statement: str) -> str | None:
    """The statement that an EXPLAIN BINLOG is about; None if it is no EXPLAIN BINLOG.

    Raises:
        SqlSyntaxError: If it is about nothing.
    """
    found = _EXPLAIN.match(statement)
    if found is None:
        return None
    rest = statement[found.end() :].strip()
    if not rest.rstrip("; \t\r\n"):
        raise SqlSyntaxError(statement, found.end(), "a statement", hint=_SYNTAX)
    return rest.rstrip().removesuffix(";").rstrip()


async def explain_binlog(
    session: HandlerSession,
    statement: str,
    definitions: Sequence[Definition],
    *,
    live: LiveCatalog | None = None,
    model: Session | None = None,
) -> RowsAnswer:
    """Tell a statement's effect on each binlog.

    Args:
        session: The session of the client.
        statement: The text of the statement to explain.
        definitions: All binlogs that are told of; without any, the source's own log is meant.
        live: The source's objects, also those that the client may not see.
        model: A model of the client's session. Without one of these, and where the objects cannot
            be read, the source is asked in the client's session.

    Raises:
        StatementError: If it was not understood, or the source refuses to tell what it needs.
        PeerError: If the source goes away.
    """
    source = Source(session)
    circumstances = await source.circumstances()
    objects: _Live | _Seen = _Seen(source, circumstances.server)
    if live is not None and model is not None and await _is_read(live):
        grants = (await session.query_source("SHOW GRANTS")).texts()
        sees_all = not lacking_privileges([row[0] or "" for row in grants])
        objects = _Live(live, source, sees_all=sees_all)
    own = _session(await objects.catalog(), circumstances, definitions, model)
    facts = read(statement, database=own.database, dialect=own.dialect)
    await objects.have(facts, own.database)
    while True:
        own = _session(await objects.catalog(), circumstances, definitions, model)
        forms = forms_of(own)
        result = await asyncio.to_thread(own.execute, statement)
        # A name that the source lacks as well is the statement's own error.
        if not await objects.have_missed(own.objects):
            break
    error = result.error
    if error is not None and error.errno == SYNTAX_ERROR:
        raise StatementError(error.message, errno=error.errno, sqlstate=error.sqlstate)
    if result.unanalysed is not None:
        raise SqlSyntaxError(statement, result.unanalysed.offset, result.unanalysed.reason)
    return RowsAnswer(COLUMNS, list(_rows(statement, result, forms)))


# The objects --------------------------------------------------------------------------------------


async def _is_read(live: LiveCatalog) -> bool:
    """True if the source tells binlane of its objects; the port's status has the reason if not."""
    try:
        await live.fetch_objects(())
    except StatementError:
        return False
    return True


class _Live:
    """The objects that the port knows, as far as the client may see what a statement leads to."""

    def __init__(self, live: LiveCatalog, source: Source, *, sees_all: bool) -> None:
        self._live = live
        self._source = source
        self._sees_all = sees_all

    async def catalog(self) -> SchemaCatalog:
        """All known objects; later ones do not come into it."""
        found = self._live.catalog()
        found.store.own()
        return found

    async def have(self, facts: StatementFacts, database: str) -> None:
        """Get to know all objects that a statement uses."""
        await self._live.fetch(facts, database)
        await self._see(questions_of(facts, database))

    async def have_missed(self, catalog: SchemaCatalog) -> bool:
        """Know what was looked for in vain; whether there was anything that nobody asked for."""
        missed = self._live.missed(catalog)
        if missed:
            await self._live.fetch_objects(missed)
            await self._see([Need(one) for one in missed])
        return bool(missed)

    async def _see(self, needs: Sequence[Need]) -> None:
        """Check that the client may see every object that the answer names.

        Raises:
            StatementError: If it may not; of what it did not name itself nothing is told.
        """
        if self._sees_all:
            return
        named = {need.question.name for need in needs}
        for question, told in self._live.reached(needs):
            try:
                await self._source.see(question, told)
            except StatementError as error:
                if question.name in named:
                    raise
                raise StatementError(
                    "the statement leads to objects that the account may not see",
                    errno=error.errno,
                    sqlstate=error.sqlstate,
                ) from None


class _Seen:
    """The objects that the client may see."""

    def __init__(self, source: Source, server: Server) -> None:
        self._source = source
        self._known = KnownObjects(Flavor(server.flavor), server.version)

    async def catalog(self) -> SchemaCatalog:
        """All objects that are known so far."""
        known = self._known
        await self._know(lambda: known.lacking_of(()))
        return SchemaCatalog(
            flavor=known.flavor, server_version=known.server_version, store=known.store.copy()
        )

    async def have(self, facts: StatementFacts, database: str) -> None:
        """Get to know all objects that a statement uses."""
        await self._know(lambda: self._known.lacking(facts, database))

    async def have_missed(self, catalog: SchemaCatalog) -> bool:
        """Know what was looked for in vain; whether there was anything that nobody asked for."""
        missed = self._known.missed(catalog.missed)
        await self._know(lambda: self._known.lacking_of(missed))
        return bool(missed)

    async def _know(self, lacking: Callable[[], Iterable[Question]]) -> None:
        while questions := list(dict.fromkeys(lacking())):
            for question in questions:
                answer = await self._source.answer(question, self._known.asked)
                if answer.objects.tables:
                    await self._source.see_triggers(question.name)
                self._known.take(question, answer)


# The session --------------------------------------------------------------------------------------


def _session(
    catalog: SchemaCatalog,
    circumstances: SourceSession,
    definitions: Sequence[Definition],
    model: Session | None,
) -> Session:
    """Return a session like the client's that goes on independently."""
    if model is not None:
        return _copied(model, catalog, definitions)
    session = Session(
        server=circumstances.server,
        objects=catalog,
        definitions=definitions or None,
        database=circumstances.database,
        errors=predicted_errors(),
    )
    for name, value in circumstances.variables.items():
        if not (definitions and name == _MODE):
            session.execute(f"SET SESSION {name} = {_literal(value)}")
    if circumstances.is_in_transaction:
        session.execute("BEGIN")
    return session


def _copied(model: Session, catalog: SchemaCatalog, definitions: Sequence[Definition]) -> Session:
    """A session as another one is, over other objects and its own temporary tables.

    It has those binlogs alone that its client may see.
    """
    found = Session(
        server=model.server,
        objects=catalog,
        definitions=model.definitions,
        errors=predicted_errors(),
    )
    catalog.store.temporary = model.objects.store.temporary.copy()
    store = catalog.store
    found.restore(model.snapshot())
    found.state.host = found
    catalog.version, catalog.store = object(), store
    if model.definitions is not None and len(definitions) < len(model.definitions):
        found.have(definitions)
    return found


@cache
def predicted_errors() -> SessionErrors:
    """Return the prediction of errors, which is loaded with the first EXPLAIN BINLOG or CALL."""
    from binlane.statements.predicted_errors.errors import (  # noqa: PLC0415  # few sessions need it
        PredictedErrors,
    )

    return PredictedErrors()


def _rows(
    statement: str, result: StatementResult, forms: Mapping[str, BinlogForm]
) -> Iterator[Sequence[Cell]]:
    """For each binlog, what becomes of the statement, and a row for each thing that is wrong."""
    whole = CheckedStatement(
        statement=ScriptStatement(number=1, line=1, column=1, sql=statement), result=result
    )
    found = [finding for finding in findings(whole) if finding.kind is not Kind.ALLOWED_UNSAFE]
    for name, binlog in result.binlogs.items():
        if name == SOURCE_LOG:
            continue
        own = [finding for finding in found if not finding.binlogs or name in finding.binlogs]
        events = "\n".join(f"{event.type}: {event.info}" for event in binlog.events)
        form = forms.get(name)
        told = (None, None) if form is None else (form.row_image.value, _SWITCH[form.is_compressed])
        if not own:
            yield (*_row(name, binlog, None, events or None), *told)
        for finding in own:
            yield (*_row(name, binlog, finding, events or None), *told)


def _row(
    name: str, binlog: BinlogResult, finding: Finding | None, events: str | None
) -> Sequence[Cell]:
    logged_as = "NONE" if binlog.logged_as is None else binlog.logged_as.name
    if finding is None:
        return name, logged_as, "SAFE", None, None, None, None, None, None, events
    verdict = "UNSAFE" if finding.kind is Kind.UNSAFE else "REFUSED"
    whys = finding.whys
    return (
        *(name, logged_as, verdict, finding.errno, finding.symbol, finding.message),
        "; ".join(dict.fromkeys(why.what for why in whys if why.what)) or None,
        "; ".join(dict.fromkeys(step for why in whys for step in why.through)) or None,
        "; ".join(hints(finding)) or None,
        events,
    )


def _literal(value: str) -> str:
    return value if _BARE.fullmatch(value) else "'" + value.replace("'", "''") + "'"
