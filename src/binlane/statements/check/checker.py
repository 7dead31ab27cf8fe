"""Running scripts without a server: the schema is read once, each script starts from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from mmap import mmap
from traceback import extract_tb
from typing import Final

from binlane.errors import ConfigError, DefinitionError, NotLoggableError, StatementError
from binlane.log.codec.types import Flavor
from binlane.statements.check.binlog_forms import forms_of
from binlane.statements.check.definitions import read_definitions
from binlane.statements.check.findings import SYNTAX_ERROR, CheckedStatement
from binlane.statements.check.schema import Schema
from binlane.statements.check.script import ScriptStatement, read_script
from binlane.statements.policy.engines import engine_traits
from binlane.statements.policy.refusals import Refusal
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.scope.definition import Definition
from binlane.statements.session.report import StatementResult, Unanalysed
from binlane.statements.session.safety import refuse_views
from binlane.statements.session.session import Session
from binlane.statements.sql.accounts import OWN, ROOT, AccountName, Accounts
from binlane.statements.sql.catalog import CatalogProblem, SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.script import Script, ScriptReader
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import TokenKind

_IN_PROGRAM: Final = "expected ;"
"""End of the error of a text that ends between the statements of a program."""


class Checker:
    """A check of scripts: the effects that they would have on binlogs.

    Args:
        server: Server whose rules are followed.
        schema: Script of all existing objects, or several sources of them, one after the other.
        definitions: Script of CREATE BINLOG; None for one binlog that logs everything in the
            session's binlog_format.
        assume_engine: Engine of tables that the schema does not have; None: such tables are unknown.
        definitions_name: Name of `definitions` in messages.
        user: Account of the schema that runs the scripts, as `NAME` or `NAME@HOST`; None: one that
            may do everything.

    Attributes:
        problems: Parts of the schema that were not understood, behind the name of their source.

    Raises:
        ConfigError: If the definitions are wrong, or there is no such engine or account.
    """

    def __init__(
        self,
        server: Server,
        schema: str | Script | Sequence[Schema] = "",
        definitions: str | Script | None = None,
        *,
        assume_engine: str | None = None,
        definitions_name: str = "--binlogs",
        user: str | None = None,
    ) -> None:
        self._server = server
        if assume_engine is not None:
            _check_engine(assume_engine, server)
        self._assume_engine = assume_engine
        self._objects = SchemaCatalog(Flavor(server.flavor))
        if isinstance(schema, str | bytes | mmap):
            schema = (Schema(name="--schema", script=schema),)
        self.problems: Sequence[tuple[str, CatalogProblem]] = [
            (source.name, problem)
            for source in schema
            for problem in source.load(self._objects, server)
        ]
        self._account = ROOT if user is None else _account(user, self._objects.accounts)
        self._definitions = (
            None
            if definitions is None
            else read_definitions(
                definitions, name=definitions_name, ignores_case=self._objects.ignores_case
            )
        )
        for definition in self._definitions or ():
            try:
                refuse_views(definition, self._objects)
            except DefinitionError as error:
                raise ConfigError(f"{error}", key=definitions_name, hint=error.hint) from error

    def check(
        self,
        script: str | Script,
        *,
        path: str = "",
        source: Callable[[str], Script] | None = None,
    ) -> Iterator[CheckedStatement]:
        """Run one script, statement by statement, in a session that starts from the schema.

        Args:
            script: Text or bytes of the script.
            path: Path of the script, by which messages and relative paths go.
            source: Gives the bytes of scripts that the script reads; raises StoreError.

        Events that the end of a session appends stand in the events of the statement after the end, or, where
        there is none, of the one before it.
        """
        objects = self._objects.copy()
        session = self._session(objects, self._definitions)
        waiting: CheckedStatement | None = None
        statements = read_script(
            script,
            dialect=lambda: session.dialect,
            path=path,
            source=source,
            first_end=lambda sql: _first_end(sql, session),
        )
        failed: Refusal | None = None
        for statement in statements:
            ended = None
            if statement.is_disconnect:
                ended = session.disconnect()
                before, session = session, self._session(objects, session.definitions)
                session.follow(before)
            if not statement.sql:
                if waiting is not None and ended is not None:
                    whole = _joined(waiting.result, ended, waiting.result)
                    waiting = waiting._replace(result=whole)
                break
            if waiting is not None:
                yield waiting
            forms = forms_of(session)
            if statement.follows and failed is not None:
                result = _not_run(failed)
            else:
                result = _result(session, statement)
                if result.error is not None or result.unanalysed is not None:
                    result = _explained(result, statement, session)
                failed = result.error
            if ended is not None:
                result = _joined(ended, result, result)
            waiting = CheckedStatement(statement, result, forms)
        if waiting is not None:
            yield waiting

    def _session(self, objects: SchemaCatalog, definitions: Sequence[Definition] | None) -> Session:
        return Session(
            server=self._server,
            objects=objects,
            definitions=definitions,
            database=self._objects.default_database,
            assume_engine=self._assume_engine,
            account=self._account,
            errors=PredictedErrors(),
        )


def _account(text: str, accounts: Accounts) -> AccountName:
    """The account that a user names; without a host that of any, else the only one of its name."""
    user, at, host = text.rpartition("@") if "@" in text else (text, "", "%")
    found = AccountName(user, host)
    named = [one for one in accounts if one.user == user and not one.is_role]
    if found in accounts or found in OWN:
        return found
    if not at and len(named) == 1:
        return named[0]
    known = ", ".join(f"{one.user}@{one.host}" for one in named or accounts if not one.is_role)
    raise ConfigError(
        f"the schema has no account {text}",
        key="--user",
        hint=f"it has {known}" if known else "give a schema with CREATE USER and GRANT",
    )


def _check_engine(name: str, server: Server) -> None:
    try:
        engine_traits(name.upper(), server.flavor)
    except NotLoggableError as error:
        raise ConfigError(f"{error}", key="--assume-engine", hint=error.hint) from error


def _result(session: Session, statement: ScriptStatement) -> StatementResult:
    if statement.problem is not None:
        return StatementResult(unanalysed=statement.problem)
    try:
        return session.execute(statement.sql, statement.outcome)
    except StatementError as error:
        return _not_followed(str(error))
    except Exception as error:  # noqa: BLE001  # one statement must not keep the others from being told
        return _not_followed(
            f"binlane has a fault here, please report it: {error!r} ({_at(error)})"
        )


def _first_end(sql: str, session: Session) -> int | None:
    """Return the position of the `;` that ends the first of several statements in one text."""
    stopped = read(sql, database="", dialect=session.dialect).effects.stopped_at
    if stopped is None:
        return None
    end = stopped.offset
    # Several `;` may stand at the end: the first one ends the statement.
    while (before := sql.rfind(";", 0, end)) >= 0 and _is_blank(sql[before + 1 : end]):
        end = before
    # Before the first token it ends nothing, which is an error.
    return None if end == stopped.offset or _is_blank(sql[:end]) else end


def _is_blank(text: str) -> bool:
    """True if a text has nothing but white space and comments."""
    data = text.encode("utf-8", "surrogateescape")
    return not ScriptReader(data, Dialect, delimiter=b"\0").rest().text


def _explained(
    result: StatementResult, statement: ScriptStatement, session: Session
) -> StatementResult:
    """Return the result of a statement that was not understood, with the part that its script may lack."""
    unanalysed, error = result.unanalysed, result.error
    is_syntax = error is not None and error.errno == SYNTAX_ERROR and not error.is_stated
    if statement.problem is not None or not (unanalysed is not None or is_syntax):
        return result
    reason = _cut_off(statement, session)
    if not reason:
        return result
    if unanalysed is not None:
        return replace(
            result, unanalysed=replace(unanalysed, reason=f"{unanalysed.reason}; {reason}")
        )
    assert error is not None, "one of the two, as above"
    message = error.message.removesuffix(f": {_IN_PROGRAM}").removesuffix(_IN_PROGRAM)
    return replace(result, error=replace(error, message=f"{message}; {reason}"))


def _cut_off(statement: ScriptStatement, session: Session) -> str:
    """Return what a script lacks where `;` cut a program into pieces; empty if nothing was cut."""
    facts = read(statement.sql, database="", dialect=session.dialect)
    stopped = facts.effects.stopped_at
    if stopped is None or statement.is_chunk:
        return ""
    if stopped.kind is TokenKind.END and str(facts.error).endswith(_IN_PROGRAM):
        return (
            "the client ends the statement at the first ';' inside of its program: write"
            " DELIMITER // on a line before it, and // behind its END"
        )
    if stopped.text.upper() == "END" and not statement.sql[: stopped.offset].strip():
        return (
            "the client cut off the program that this ends, at a ';' before: write DELIMITER // on"
            " a line before that program, and // here"
        )
    if statement.sql.startswith("--", stopped.offset):
        return "only `--` with a blank behind it begins a comment"
    return ""


def _not_run(failed: Refusal) -> StatementResult:
    """Return the result of a statement behind a failed one in the same text."""
    message = f"Not run: a statement before it in the same text failed: {failed.message}"
    return StatementResult(error=replace(failed, message=message, why=()))


def _not_followed(reason: str) -> StatementResult:
    return StatementResult(unanalysed=Unanalysed(reason=reason, offset=0, length=0))


def _at(error: Exception) -> str:
    """Return the function and line of binlane that failed."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{last.name}:{last.lineno}"


def _joined(
    first: StatementResult, second: StatementResult, main: StatementResult
) -> StatementResult:
    """A result with the events of two, one after the other."""
    binlogs = {}
    for name in {**first.binlogs, **second.binlogs}:
        bodies = tuple(
            body
            for result in (first, second)
            if (binlog := result.binlogs.get(name)) is not None
            for body in binlog.bodies
        )
        own = main.binlogs.get(name)
        if own is None:
            own = first.binlogs.get(name) or second.binlogs[name]
        binlogs[name] = own._replace(bodies=bodies)
    return replace(main, binlogs=binlogs)
