"""Runs scripts without a server: the schema is read once, each script starts from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from traceback import extract_tb

from binlane.check.definitions import read_definitions
from binlane.check.findings import CheckedStatement
from binlane.check.script import Script, ScriptStatement, read_script
from binlane.codec.types import Flavor
from binlane.errors import ConfigError, DefinitionError, NotLoggableError, StatementError
from binlane.policy.engines import engine_traits
from binlane.policy.server import Server
from binlane.scope.definition import Definition
from binlane.session.report import StatementResult, Unanalysed
from binlane.session.safety import refuse_views
from binlane.session.session import Session
from binlane.sql.catalog import CatalogProblem, SchemaCatalog


class Checker:
    """Tells what scripts would do to binlogs.

    Args:
        server: Whose rules are followed.
        schema: Script of all objects that there are.
        definitions: Script of CREATE BINLOG; None for one binlog that logs everything in the
            session's binlog_format.
        assume_engine: Engine that tables have which the schema does not know; None: they are
            unknown tables.
        definitions_name: What messages call `definitions`.

    Raises:
        ConfigError: If the definitions are not what they should be, or there is no such engine.
    """

    def __init__(
        self,
        server: Server,
        schema: str | Script = "",
        definitions: str | Script | None = None,
        *,
        assume_engine: str | None = None,
        definitions_name: str = "--binlogs",
    ) -> None:
        self._server = server
        self._definitions = (
            None if definitions is None else read_definitions(definitions, name=definitions_name)
        )
        if assume_engine is not None:
            _check_engine(assume_engine, server)
        self._assume_engine = assume_engine
        self._objects = SchemaCatalog(Flavor(server.flavor))
        text = schema if isinstance(schema, str) else schema[:].decode("utf-8", "surrogateescape")
        self._objects.load(text.removeprefix("\ufeff"), version=server.version)
        for definition in self._definitions or ():
            try:
                refuse_views(definition, self._objects)
            except DefinitionError as error:
                raise ConfigError(f"{error}", key=definitions_name, hint=error.hint) from error

    @property
    def problems(self) -> Sequence[CatalogProblem]:
        """What of the schema was not understood."""
        return self._objects.problems

    def check(self, script: str | Script) -> Iterator[CheckedStatement]:
        """Run one script, statement by statement, in a session that starts from the schema.

        What the end of a session appends stands in the events of the statement after it, or, where
        there is none, of the one before it.
        """
        objects = self._objects.copy()
        session = self._session(objects, self._definitions)
        waiting: CheckedStatement | None = None
        statements = read_script(
            script, has_backslash_escapes=lambda: session.has_backslash_escapes
        )
        for statement in statements:
            ended = None
            if statement.is_disconnect:
                ended = session.disconnect()
                before, session = session, self._session(objects, session.definitions)
                session.follow(before)
            if not statement.sql:
                if waiting is not None and ended is not None:
                    waiting = replace(
                        waiting, result=_joined(waiting.result, ended, waiting.result)
                    )
                break
            if waiting is not None:
                yield waiting
            result = _result(session, statement)
            if ended is not None:
                result = _joined(ended, result, result)
            waiting = CheckedStatement(statement=statement, result=result)
        if waiting is not None:
            yield waiting

    def _session(self, objects: SchemaCatalog, definitions: Sequence[Definition] | None) -> Session:
        return Session(
            server=self._server,
            objects=objects,
            definitions=definitions,
            database=self._objects.default_database,
            assume_engine=self._assume_engine,
        )


def _check_engine(name: str, server: Server) -> None:
    try:
        engine_traits(name.upper(), server)
    except NotLoggableError as error:
        raise ConfigError(f"{error}", key="--assume-engine", hint=error.hint) from error


def _result(session: Session, statement: ScriptStatement) -> StatementResult:
    if statement.problem is not None:
        return StatementResult(unanalysed=statement.problem)
    try:
        return session.execute(statement.sql, statement.outcome)
    except RecursionError:
        return _not_followed("it is nested too deep")
    except StatementError as error:
        return _not_followed(str(error))
    except Exception as error:  # noqa: BLE001  # one statement must not keep the others from being told
        return _not_followed(
            f"binlane has a fault here, please report it: {error!r} ({_at(error)})"
        )


def _not_followed(reason: str) -> StatementResult:
    return StatementResult(unanalysed=Unanalysed(reason=reason, offset=0, length=0))


def _at(error: Exception) -> str:
    """The line of binlane that failed."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{last.name}:{last.lineno}"


def _joined(
    first: StatementResult, second: StatementResult, main: StatementResult
) -> StatementResult:
    """A result with the events of two, one after the other."""
    binlogs = {}
    for name in {**first.binlogs, **second.binlogs}:
        events = tuple(
            event
            for result in (first, second)
            if (binlog := result.binlogs.get(name)) is not None
            for event in binlog.events
        )
        own = main.binlogs.get(name)
        if own is None:
            own = first.binlogs.get(name) or second.binlogs[name]
        binlogs[name] = replace(own, events=events)
    return replace(main, binlogs=binlogs)
