"""A client's session: statements go in one by one, each binlog's new events come out.

Here each statement gets to the module that knows its kind. No server is asked: what a statement
does is told by its text, the objects and, where that is not enough, its stated outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from binlane.codec.types import Flavor
from binlane.errors import StatementError
from binlane.policy.reasons import Reason, symbol
from binlane.policy.resolution import resolve
from binlane.policy.server import Server
from binlane.scope.definition import Definition
from binlane.session import settings, temporary, xa
from binlane.session.binlog import Binlog
from binlane.session.handlers import handler_of
from binlane.session.missing import missing
from binlane.session.programs import runner
from binlane.session.programs.host import InnerStatement, ProgramState
from binlane.session.programs.values import Value
from binlane.session.report import (
    BinlogResult,
    Note,
    Outcome,
    Refusal,
    StatementResult,
    Unanalysed,
    Why,
)
from binlane.session.safety import ScopeSafety
from binlane.session.state import Command, Run, SessionState
from binlane.session.variable_values import system_value
from binlane.session.variables import Variables
from binlane.sql.analysis import read
from binlane.sql.catalog import SchemaCatalog
from binlane.sql.comments import ServerText, server_text
from binlane.sql.effects import StatementKind
from binlane.sql.facts import StatementFacts
from binlane.sql.logging_mode import LoggingMode

_POSITIONS: Final = {symbol(reason): reason.position for reason in Reason}
_BINLOG: Final = "binlog"
_NO_OUTCOME: Final = Outcome()
_DEFINITIONS: Final = frozenset(
    (
        StatementKind.CREATE_VIEW,
        StatementKind.ALTER_VIEW,
        StatementKind.CREATE_TRIGGER,
        StatementKind.CREATE_ROUTINE,
        StatementKind.CREATE_EVENT,
        StatementKind.CREATE_PACKAGE,
    )
)
"""What the server keeps, and logs, without executable comments."""
_CHANGES_ROUTINES: Final = frozenset(
    (StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE)
)


class Session:
    """A session of `root@localhost`.

    Attributes:
        programs: What it keeps for its programs.
    """

    def __init__(
        self,
        *,
        server: Server,
        objects: SchemaCatalog,
        definitions: Sequence[Definition] | None = None,
        database: str = "",
        assume_engine: str | None = None,
    ) -> None:
        """Begin a session.

        Args:
            server: Whose rules are followed.
            objects: The server's objects; the session's DDL changes them.
            definitions: The binlogs; None for one of the server's own, without a scope, that
                binlog_format rules.
            database: The default database.
            assume_engine: Engine of tables that nothing is known of; None refuses them.
        """
        names = [_BINLOG] if definitions is None else [one.name for one in definitions]
        variables = Variables(server, global_values=_global_values(objects))
        self._state = SessionState(
            server=server,
            objects=objects,
            database=database,
            variables=variables,
            binlogs={name: Binlog(name, server) for name in names},
            host=self,
            modes=None
            if definitions is None
            else {one.name: one.logging_mode for one in definitions},
            safety=None if definitions is None else ScopeSafety(definitions, server),
            assume_engine=assume_engine,
            isolation=variables.isolation,
        )

    def follow(self, before: Session) -> None:
        """Come after a session that ended: its prepared XA transactions are still there."""
        left = before._state.left_xids
        self._state.prepared_xids = dict(left)
        self._state.left_xids = dict(left)

    @property
    def definitions(self) -> Sequence[Definition] | None:
        """The binlogs as they are now; None for one of the server's own."""
        safety = self._state.safety
        return None if safety is None else safety.definitions

    @property
    def has_backslash_escapes(self) -> bool:
        """Whether a backslash in a string stands for something else."""
        return not self._state.variables.no_backslash_escapes

    @property
    def server(self) -> Server:
        """Whose rules are followed."""
        return self._state.server

    @property
    def objects(self) -> SchemaCatalog:
        """The server's objects."""
        return self._state.objects

    @property
    def database(self) -> str:
        """The default database."""
        return self._state.database

    @property
    def collation(self) -> str:
        """collation_connection."""
        if self._state.variables.connection is not None:
            return self._state.variables.connection[1]
        return "utf8mb4_general_ci" if self.server.is_mariadb else "utf8mb4_0900_ai_ci"

    @property
    def programs(self) -> ProgramState:
        """What the session keeps for its programs."""
        return self._state.programs

    def system_variable(self, name: str) -> Value:
        """The value of `@@name` as far as it is known."""
        return system_value(self._state.variables, name)

    def has_sql_mode(self, mode: str) -> bool:
        """Whether a mode, in capitals, is one of sql_mode."""
        return mode in self._state.variables.text("sql_mode").split(",")

    def execute(self, statement: str, outcome: Outcome = _NO_OUTCOME) -> StatementResult:
        """Run one statement.

        Args:
            statement: Its text, without a delimiter.
            outcome: What happened, where the text does not tell it.
        """
        state = self._state
        state.run = Run()
        state.programs.effort.reset()
        state.is_in_procedure = False
        text = statement.strip().rstrip(";").rstrip()
        if self._defines(text):
            return self._result()
        had = self._as_had(text)
        facts = self._read(had.read, state.database)
        if facts.effects.stopped_at is not None:
            return self._result(unanalysed=_unanalysed(facts))
        sql, logged = had.read, had.logged
        if had.stored != text and facts.effects.kind in _DEFINITIONS:
            sql = logged = had.stored
            facts = self._read(sql, state.database)
        self._carry_out(
            Command(sql=sql, text=logged, facts=facts, database=state.database, outcome=outcome)
        )
        unfollowed = state.programs.effort.unfollowed
        result = self._result()
        if not unfollowed:
            return result
        # What it may have logged is not told: nobody knows it.
        return StatementResult(
            binlogs={name: BinlogResult() for name in result.binlogs},
            unanalysed=Unanalysed(reason=unfollowed, offset=0, length=0),
        )

    def evaluates(self, facts: StatementFacts, database: str) -> None:
        """Note that a program evaluates expressions.

        MySQL decides for them as for statements: one that is unsafe under MIXED leaves the program
        in row format.
        """
        state = self._state
        if state.server.is_mariadb:
            return
        mixed = [name for name in state.binlogs if state.mode(name) is LoggingMode.MIXED]
        if not mixed:
            return
        resolved = resolve(facts, state.objects, server=state.server, database=database)
        if resolved.reasons:
            state.program_rows.update(mixed)

    def execute_inner(self, statement: InnerStatement) -> Refusal | None:
        """Run one statement of a program; what it does belongs to the outermost statement."""
        state = self._state
        facts = self._read(statement.sql, statement.database)
        if facts.effects.stopped_at is not None:
            state.programs.effort.unfollowed = _unanalysed(facts).reason
            return None
        outer, state.run.error = state.run.error, None
        command = Command(
            sql=statement.sql,
            text=statement.logged,
            facts=facts,
            database=statement.database,
            outcome=statement.outcome,
            is_inner=True,
            is_condition=statement.is_condition,
            remembered=statement.remembered,
            environment=statement.environment,
        )
        outside, state.is_in_procedure = state.is_in_procedure, statement.is_procedure
        self._carry_out(command)
        state.is_in_procedure = outside
        error, state.run.error = state.run.error, outer
        return error

    def disconnect(self) -> StatementResult:
        """End the session: roll back what is open, drop its temporary tables."""
        state = self._state
        state.run = Run()
        state.xid = state.xa_phase = None
        if state.server.is_mariadb:
            temporary.drop_at_disconnect(state)
            state.roll_back()
        else:
            state.roll_back()
            temporary.drop_at_disconnect(state)
        return self._result()

    def _read(self, text: str, database: str) -> StatementFacts:
        variables = self._state.variables
        return read(text, database=database, is_oracle=variables.is_oracle, **variables.quoting)

    def _as_had(self, text: str) -> ServerText:
        """A statement as the server has it, with respect to executable comments."""
        return server_text(
            text,
            flavor=Flavor(self.server.flavor),
            version=self.server.version,
            **self._state.variables.quoting,
        )

    def _defines(self, text: str) -> bool:
        """Whether a statement was CREATE, ALTER or DROP BINLOG, which is then carried out."""
        state = self._state
        safety = state.safety
        if safety is None:
            return False
        try:
            if not safety.define(text, state.objects, ansi_quotes=state.variables.ansi_quotes):
                return False
        except StatementError as error:
            state.fail(
                Refusal(
                    errno=error.errno,
                    sqlstate=error.sqlstate,
                    symbol="BINLANE_DEFINITION",
                    message=str(error),
                    why=(Why(hint=error.hint),),
                )
            )
            return True
        definitions = safety.definitions
        state.binlogs = {
            one.name: state.binlogs.get(one.name) or Binlog(one.name, state.server)
            for one in definitions
        }
        state.modes = {one.name: one.logging_mode for one in definitions}
        safety.mode_changed({name: state.mode(name) for name in state.binlogs})
        return True

    def _carry_out(self, command: Command) -> None:
        state = self._state
        saved = state.variables.copy() if command.facts.statement_assignments else None
        if saved is not None and not settings.with_statement_settings(state, command):
            return
        for name, binlog in state.binlogs.items():
            binlog.options = state.variables.shown_options
            state.is_row_now(name)
        if command.succeeds and (failure := missing(state, command)) is not None:
            command = command.failing(failure)
        if xa.is_forbidden(state, command):
            pass
        elif runner.is_program(command.facts):
            self._run_program(command)
        else:
            handler_of(command.facts.effects.kind)(state, command)
            if command.facts.effects.kind in _CHANGES_ROUTINES:
                state.programs.forget_routines()
        if saved is not None:
            settings.restore(state, command, saved)

    def _run_program(self, command: Command) -> None:
        state = self._state
        error = runner.run(command.facts, command.text, command.outcome, self)
        if error is not None:
            is_stated = error.is_stated or error.errno == command.outcome.error
            state.fail(replace(error, is_stated=is_stated))
        if not command.is_inner:
            state.program_rows.clear()
            state.run.notes = _merged(state.run.notes)

    def _result(self, unanalysed: Unanalysed | None = None) -> StatementResult:
        run = self._state.run
        return StatementResult(
            error=run.error,
            notes=tuple(run.notes),
            binlogs={
                name: BinlogResult(
                    logged_as=run.logged_as(name),
                    events=binlog.take_written(),
                    steps=tuple(run.steps.get(name, ())),
                    unsafe=tuple(dict.fromkeys(run.unsafe.get(name, ()))),
                )
                for name, binlog in self._state.binlogs.items()
            },
            unanalysed=unanalysed,
        )


def _global_values(objects: SchemaCatalog) -> dict[str, str]:
    return {name: value.strip().strip("'\"").upper() for name, value in objects.settings().items()}


def _unanalysed(facts: StatementFacts) -> Unanalysed:
    token = facts.effects.stopped_at
    assert token is not None
    text = token.text[:80]
    where = f"at {text!r}" if text else "at the end of the statement"
    return Unanalysed(
        reason=f"the statement is not understood {where}",
        offset=token.offset,
        length=max(1, len(token.text)),
    )


def _merged(notes: Sequence[Note]) -> list[Note]:
    """The notes of a program's statements: each reason once, in the order of the server."""
    first = {note.reason: note for note in reversed(notes)}
    return sorted(first.values(), key=lambda note: _POSITIONS[note.reason])
