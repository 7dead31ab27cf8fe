"""A client's session: statements go in one by one, each binlog's new events come out.

This module gives each statement to the module that knows its kind. No server is asked: the effects of a
statement follow from its text, the objects and, where that is not enough, its stated outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.errors import StatementError
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome, Refusal, Why
from binlane.statements.policy.resolution import Opening, ResolvedStatement, resolve
from binlane.statements.policy.server import Server
from binlane.statements.policy.server_errors import Identity
from binlane.statements.programs import runner
from binlane.statements.programs.assignments import name_variables
from binlane.statements.programs.environment import SessionEnvironment
from binlane.statements.programs.host import InnerStatement, SessionValues
from binlane.statements.programs.routines import trimmed
from binlane.statements.scope.definition import Definition
from binlane.statements.session import settings, transactions
from binlane.statements.session.caches import BinlogCaches
from binlane.statements.session.context_events import SessionUse
from binlane.statements.session.dml import runs_at_once
from binlane.statements.session.drops import drop_at_disconnect
from binlane.statements.session.handlers import HANDLERS, do_nothing
from binlane.statements.session.lock_refusals import (
    fails_under_locks,
    refusal_beyond_locks,
    unsafe_default_added,
)
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.object_consequences import consequences
from binlane.statements.session.recurring import Attempt, Recurring
from binlane.statements.session.report import (
    StatementResult,
    Unanalysed,
    merged_notes,
)
from binlane.statements.session.resolved_shape import ResolvedShape, may_branch, shape_of
from binlane.statements.session.safety import ScopeSafety
from binlane.statements.session.server_errors import (
    CREATES_PROGRAMS,
    NO_ERRORS,
    SessionErrors,
    hangs_on_unknown,
    is_stated_of_parser,
    not_understood,
    refusal_at_once,
    syntax_error,
)
from binlane.statements.session.session_view import SessionView
from binlane.statements.session.settings import refusal_in_function
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import Execution, SessionStatement
from binlane.statements.session.statement_template import ExpectedResult
from binlane.statements.session.transaction import PreparedXa, Transaction
from binlane.statements.session.transactions import fails_read_only, is_forbidden
from binlane.statements.session.variables import NOTHING_SHOWN, Variables
from binlane.statements.session.ways import follow
from binlane.statements.session.xa_statements import leave_xa_at_end
from binlane.statements.sql.accounts import ROOT, AccountName, default_roles
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.evaluation.evaluator import evaluate
from binlane.statements.sql.evaluation.known_names import Environment
from binlane.statements.sql.evaluation.values import Text
from binlane.statements.sql.executable_comments import ServerText, server_text
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.parser import TOO_DEEP
from binlane.statements.sql.reading import read
from binlane.statements.sql.schema import Routine, Trigger
from binlane.statements.sql.servers import LoggingMode
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind
from binlane.statements.sql.tree.expressions import Literal, UserVariable
from binlane.statements.sql.tree.statements import Prepare

_BINLOG: Final = "binlog"
_DEADLOCK: Final = 1213
"""For which engines roll back the whole transaction, not the statement alone."""
_DEFINITIONS: Final = CREATES_PROGRAMS | {StatementKind.CREATE_VIEW, StatementKind.ALTER_VIEW}
"""Statements that the server keeps, and logs, without executable comments."""


class Session(SessionView):
    """A session of `root@localhost`.

    Attributes:
        recurring: The session's statements that come again, for the same callers.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        *,
        server: Server,
        objects: SchemaCatalog,
        definitions: Sequence[Definition] | None = None,
        database: str = "",
        assume_engine: str | None = None,
        account: AccountName = ROOT,
        logs_source: bool = False,
        errors: SessionErrors = NO_ERRORS,
        program_errors: Callable[[], SessionErrors] | None = None,
    ) -> None:
        """Begin a session.

        Args:
            server: Server whose rules are followed.
            objects: The server's objects; the session's DDL changes them.
            definitions: The binlogs; None for one binlog of the server's own, without a scope, that follows
                binlog_format.
            database: The session's default database at its beginning.
            assume_engine: Engine of tables that nothing is known of; None refuses them.
            account: Account of the session; one that the objects do not have may do everything.
            logs_source: Beside the binlogs keep, as `SOURCE_LOG`, the log of the source that the session runs
                on: without a scope, always rows, whatever the client sets.
            errors: Predicts the server's errors; by default none, as for a session on a source.
            program_errors: Gives the prediction for statements inside of programs, whose errors no source
                tells, and for `predicted_error`; None: `errors` predicts them, too.
        """
        names = [_BINLOG] if definitions is None else [one.name for one in definitions]
        if logs_source:
            names.append(SOURCE_LOG)
        self._errors = errors
        self._program_errors = program_errors
        self._predicts = False
        variables = Variables(server, global_values=_global_values(objects))
        objects.server_version = objects.server_version or server.version
        objects.knows_components &= not logs_source
        self.state = SessionState(
            server=server,
            objects=objects,
            database=database,
            variables=variables,
            binlogs={name: BinlogCaches(name, server) for name in names},
            host=self,
            safety=None if definitions is None else ScopeSafety(definitions),
            assume_engine=assume_engine,
            knows_accounts=bool(objects.accounts),
            identity=Identity(account, default_roles(objects.accounts, account)),
            account_name=account,
            transaction=Transaction(own=variables.settings.characteristics),
        )
        self.recurring = Recurring(self.state)

    def follow(self, before: Session) -> None:
        """Continue a session that ended: its prepared XA transactions are still there."""
        left = before.state.prepared_xa.left
        self.state.prepared_xa = PreparedXa(dict(left), dict(left))

    @property
    def errors(self) -> SessionErrors:
        """Return the prediction of errors for the statement that runs now."""
        is_predicted = self._predicts or self.state.execution.is_inner
        return self._inner_errors if is_predicted else self._errors

    @property
    def _inner_errors(self) -> SessionErrors:
        return self._errors if self._program_errors is None else self._program_errors()

    def begin_to_work(self) -> None:
        """Know that the transaction has begun to work, if nothing of it is logged yet."""
        if not self.state.transaction.is_active:
            self.recurring.leave()
            self.state.transaction.is_active = True

    def begin_with(
        self,
        values: Mapping[str, str],
        before: Session | None = None,
        shown: Mapping[str, str] = NOTHING_SHOWN,
    ) -> None:
        """Take over the values of variables with which a session begins; nothing of it has run yet.

        Args:
            values: Values that SET GLOBAL gave, in capitals, by name, for all binlogs.
            before: A session in whose place this one goes on, with the values that it had set.
            shown: Values of other variables of the session as its server shows them, by name in lower case.
        """
        self.recurring.leave()
        had = before.state.variables if before else None
        self.state.variables.begin_with(values, had, shown)
        self.state.reset_characteristics()

    def know_global(self, values: Mapping[str, str]) -> None:
        """Know the values that sessions begin with from now on; this session stays as it is.

        Args:
            values: Values by name, as for `begin_with`.
        """
        self.recurring.leave()
        self.state.variables.know_global(values)

    def execute(self, statement: str, outcome: Outcome = NO_OUTCOME) -> StatementResult:
        """Run one statement.

        Args:
            statement: Text of the statement, without a delimiter.
            outcome: Result of the execution, where the text does not tell it.
        """
        state = self.state
        state.number += 1
        number = state.number
        result = self._execute(_bare(statement), outcome)
        if state.logs_source:
            for binlog in state.binlogs.values():
                if binlog.transaction_cache.events:
                    binlog.transaction_cache.mark(number)
        return result

    def preview(self, statement: str, outcome: Outcome = NO_OUTCOME) -> StatementResult:
        """Return the effects that a statement would have; nothing of the session changes.

        Args:
            statement: Text of the statement, as for `execute`.
            outcome: Result of the execution, as for `execute`.
        """
        expected = self.expect(statement, outcome)
        if expected is not None:
            return expected.result
        before = self.snapshot()
        try:
            return self.execute(statement, outcome)
        finally:
            self.take_back(before)

    def predicted_error(self, statement: str) -> Refusal | None:
        """Return the error of a statement with all errors of its server predicted; nothing changes.

        The server's own errors come before some of binlane's.

        Args:
            statement: Text of the statement, as for `execute`.
        """
        before = self.snapshot()
        self._predicts = True
        try:
            return self.execute(statement).error
        finally:
            self._predicts = False
            self.take_back(before)

    def expect(self, statement: str, outcome: Outcome = NO_OUTCOME) -> ExpectedResult | None:
        """Return the known effects of a statement from others like it; else None."""
        return self.recurring.expect(_bare(statement), outcome)

    def _execute(self, text: str, outcome: Outcome) -> StatementResult:
        state = self.state
        known = None if self._predicts else self.recurring.again(text, outcome)
        if isinstance(known, StatementResult):
            return known
        state.execution = Execution(number=state.number)
        state.programs.effort.reset()
        had = self._as_had(text)
        facts = read(had.read, database=state.database, dialect=self.dialect)
        is_understood = facts.error is None and facts.effects.stopped_at is None
        if not is_understood and self._defines(text):
            return self._result()
        if facts.error is not None:
            state.fail(syntax_error(facts, outcome))
            return self._result()
        if facts.effects.stopped_at is not None:
            unanalysed = not_understood(facts)
            state.abandon(facts, None, unanalysed.reason)
            return self._result(unanalysed=unanalysed)
        sql, logged = had.read, had.logged
        if had.stored != text and facts.effects.kind in _DEFINITIONS:
            sql = logged = had.stored
            facts = read(sql, database=state.database, dialect=self.dialect)
        return self._run(
            SessionStatement(
                sql=sql, text=logged, facts=facts, database=state.database, outcome=outcome
            ),
            known,
        )

    def _run(self, command: SessionStatement, attempt: Attempt | None) -> StatementResult:
        """Carry out a statement; nothing is left half done."""
        state, facts = self.state, command.facts
        before = None
        try:
            if attempt is not None and not attempt.begins(state, facts):
                attempt = None
            is_followed = may_branch(state, facts)
            if is_followed or facts.effects.kind in DDL_KINDS:
                before = state.snapshot()
            unknown = state.transaction.unknown
            if before is not None and is_followed:
                carry_out = partial(self._carry_out, command)
                result = follow(state, carry_out, self._followed, command.outcome, before)
            else:
                self._carry_out(command)
                result = self._followed()
        except RecursionError:
            state.abandon(facts, before, TOO_DEEP)
            return self._unfollowed(TOO_DEEP)
        except Exception as error:
            state.abandon(facts, before, repr(error))
            raise
        if result.error is not None and state.locked_tables is not None:
            self._drop_open_rows()
        if attempt is not None:
            attempt.was(state, result)
        if result.unanalysed is not None:
            state.abandon(facts, before, result.unanalysed.reason)
        elif unknown and any(one.logged_as or one.bodies for one in result.binlogs.values()):
            reason = f"a statement of its transaction was not analysed: {unknown}"
            return replace(result, unanalysed=Unanalysed(reason=reason, offset=0, length=0))
        return result

    def _drop_open_rows(self) -> None:
        """Know that the rows that MySQL left open under LOCK TABLES go when a later statement fails.

        Source: MySQL 9.7 sql/transaction.cc `trans_rollback_stmt`, measured.
        """
        if not self.state.server.is_mariadb:
            for binlog in self.state.binlogs.values():
                binlog.transaction_cache.drop_open_rows()

    def _followed(self) -> StatementResult:
        """Return the statement's result; an empty one if the statement was not followed to its end."""
        unfollowed = self.state.programs.effort.unfollowed
        result = self._result()
        return self._unfollowed(unfollowed) if unfollowed else result

    def denied(self, facts: StatementFacts, database: str) -> Refusal | None:
        """Return the refusal to run a statement under the privileges that hold; None if it is allowed."""
        opening, identity = self.state.opening(database), self.state.identity
        errors = self._inner_errors
        error = errors.denied(facts, opening, identity)
        return error or errors.denied_inside(facts, opening, identity)

    def acting_for(self, program: Routine | Trigger) -> AbstractContextManager[Refusal | None]:
        """Act for a program's account, as `Host.acting_for` says."""
        return self.state.acting_for(program)

    def resolved(self, facts: StatementFacts, database: str) -> ResolvedStatement:
        """The tables and functions of a statement."""
        resolved = self._shape(facts, database).resolved
        return resolved if facts.shift is None else resolved.moved(facts.shift)

    def executed(self, facts: StatementFacts) -> Sequence[StatementFacts]:
        """Return the statements that EXECUTE or EXECUTE IMMEDIATE may run, if they are known."""
        tree = facts.tree
        if not isinstance(tree, Prepare):
            return ()
        texts: Sequence[str | None] = ()
        dialect = self.dialect
        if tree.verb == "EXECUTE" and (found := self.programs.prepared.get(tree.name.lower())):
            texts, dialect = found.statements, found.dialect
        elif tree.verb == "EXECUTE IMMEDIATE" and isinstance(tree.source, Literal | UserVariable):
            value = evaluate(tree.source, facts, SessionEnvironment(self))
            texts = (value.content,) if isinstance(value, Text) else ()
        return [read(trimmed(one), database=self.database, dialect=dialect) for one in texts if one]

    def opened_by(self, facts: StatementFacts, database: str) -> ResolvedStatement:
        """Return the same as `resolved`, with the places of the first statement of its shape."""
        return self._shape(facts, database).resolved

    def unknown_column(
        self, facts: StatementFacts, database: str, is_local: Callable[[str], bool]
    ) -> Refusal | None:
        """The error of columns that a statement names and that are not there."""
        return self._inner_errors.unknown_column(facts, self.state.opening(database), is_local)

    def _shape(self, facts: StatementFacts, database: str) -> ResolvedShape:
        """Return what is known of all statements of the same shape."""
        return shape_of(facts, self.state.opening(database)._replace(assume_engine=None))

    def depends_on(
        self,
        facts: StatementFacts,
        resolved: ResolvedStatement,
        environment: Environment,
    ) -> SessionValues:
        """Return the session values that a statement's text depends on, triggers and functions left out."""
        assert isinstance(environment, SessionEnvironment)
        return SessionUse(facts, resolved, environment).values()

    def refusal_in_body(self, facts: StatementFacts) -> Refusal | None:
        """Return the refusal of a SET in a function or trigger; None if it is allowed."""
        return refusal_in_function(self.state, facts.assignments)

    def evaluates(self, facts: StatementFacts, database: str) -> Refusal | None:
        """Note that a program evaluates expressions.

        The servers decide for them as for statements, MariaDB where they open tables: one that is
        unsafe under MIXED leaves the program in row format.
        """
        state = self.state
        if (
            state.locked_tables is not None
            or state.is_read_locked
            or (facts.tables and state.is_in_transaction)
        ):
            resolved = self.resolved(facts, database)
            refusal = refusal_beyond_locks(state, facts, resolved)
            if refusal is not None:
                return refusal
            state.opened(one.table for one in resolved.accesses)
        if state.server.is_mariadb and not facts.tables:
            return None
        mixed = [name for name in state.binlogs if state.mode(name) is LoggingMode.MIXED]
        if not mixed:
            return None
        if resolve(facts, Opening(state.objects, state.server, database)).reasons:
            state.execution.row_binlogs.update(mixed)
        return None

    def execute_inner(self, inner: InnerStatement) -> Refusal | None:
        """Run one statement of a program; its effects belong to the outermost statement."""
        state = self.state
        facts = read(inner.sql, database=inner.database, dialect=inner.dialect)
        if facts.effects.stopped_at is not None:
            state.programs.effort.unfollowed = not_understood(facts).reason
            return None
        statement = SessionStatement(
            sql=inner.sql,
            text=inner.logged,
            facts=facts,
            database=inner.database,
            outcome=inner.outcome,
            is_inner=True,
            is_condition=inner.is_condition,
            remembered=inner.remembered,
            environment=inner.environment,
        )
        if facts.effects.kind in DDL_KINDS:
            state.programs.ways.changes_objects(inner.sql)
        with state.numbered(), state.execution.inner(is_in_procedure=inner.is_procedure):
            self._carry_out(statement)
            if state.execution.error is not None:
                state.execution.failed.add(state.execution.number)
            return state.execution.error

    def snapshot(self) -> SessionState:
        """Return the session's present state, for `restore`, as often as it is wanted."""
        self.recurring.leave()
        return self.state.snapshot()

    def restore(self, snapshot: SessionState) -> None:
        """Return to the state of a snapshot."""
        self.recurring.leave()
        self.state.restore(snapshot)

    def take_back(self, snapshot: SessionState) -> None:
        """Return to the state of a snapshot, for the last time."""
        self.recurring.leave()
        self.state.become(snapshot)

    def disconnect(self) -> StatementResult:
        """End the session: roll back the open transaction, drop the session's temporary tables."""
        self.recurring.leave()
        state = self.state
        state.number += 1
        state.execution = Execution(number=state.number)
        leave_xa_at_end(state)
        # The text of the session's end is in UTF-8, whatever character set the client had.
        with state.variables.running(None):
            if state.server.is_mariadb:
                drop_at_disconnect(state)
                state.roll_back()
            else:
                state.roll_back()
                drop_at_disconnect(state)
        return self._result()

    def _as_had(self, text: str) -> ServerText:
        """A statement as the server has it, with respect to executable comments."""
        has_comments = "/*" in text
        return server_text(text, self.dialect) if has_comments else ServerText(text, text, text)

    def _defines(self, text: str) -> bool:
        """Carry out CREATE, ALTER or DROP BINLOG; False for any other statement.

        A session that follows a source carries out none, as the source does not know such statements.
        """
        state = self.state
        safety = state.safety
        if safety is None or state.logs_source:
            return False
        try:
            is_definition = safety.define(
                text,
                state.objects,
                ansi_quotes=state.variables.settings.dialect.ansi_quotes,
                ignores_case=state.objects.ignores_case,
            )
            if not is_definition:
                return False
        except StatementError as error:
            told = (error.errno, error.sqlstate, "BINLANE_DEFINITION", str(error))
            state.fail(Refusal(*told, why=(Why(hint=error.hint),)))
            return True
        self._have_caches()
        return True

    def have(self, definitions: Sequence[Definition]) -> None:
        """Take over the binlogs that hold from here on, which another session has defined.

        Binlogs that existed before keep the events that wait in their caches.
        """
        self.recurring.leave()
        assert self.state.safety is not None, "there are definitions, not the server's own log"
        self.state.safety.have(definitions)
        self._have_caches()

    def _have_caches(self) -> None:
        """Keep caches for the binlogs that are defined."""
        state = self.state
        assert state.safety is not None, "the caller has looked"
        state.binlogs = {
            one.name: state.binlogs.get(one.name) or BinlogCaches(one.name, state.server)
            for one in state.safety.definitions
        } | {name: one for name, one in state.binlogs.items() if name == SOURCE_LOG}
        state.safety.mode_changed(state.modes())

    def _carry_out(self, statement: SessionStatement) -> None:
        state = self.state
        if not statement.facts.statement_assignments:
            self._carry_out_set(statement)
        else:
            with settings.statement_settings(state, statement) as are_set:
                if are_set:
                    self._carry_out_set(statement)
        is_xa = state.transaction.xa_phase is not None
        if statement.outcome.error == _DEADLOCK and not (statement.is_inner or is_xa):
            state.roll_back()

    def _carry_out_set(self, statement: SessionStatement) -> None:
        """Carry out a statement whose SET STATEMENT is done."""
        state = self.state
        settings_now, facts = state.variables.settings, statement.facts
        state.execution.note_settings(settings_now, is_inner=statement.is_inner)
        if facts.user_variables or facts.effects.kind is StatementKind.SET:
            name_variables(facts, SessionEnvironment(self))
        status_vars, compresses = state.variables.status_vars(), state.compresses
        for name, binlog in state.binlogs.items():
            binlog.status_vars = status_vars
            binlog.is_compressing = compresses
            state.is_row_now(name)
        if runs_at_once(state, statement):
            HANDLERS[facts.effects.kind](state, statement)
        else:
            self._carry_out_checked(statement)

    def _carry_out_checked(self, statement: SessionStatement) -> None:
        """Carry out a statement that may fail before its tables are looked at."""
        state = self.state
        if hangs_on_unknown(state, statement.facts):
            state.programs.effort.unfollowed = "what was made of its programs was not analysed"
            return
        if is_stated_of_parser(statement):
            state.fail_as_stated(statement)
            return
        failure = refusal_at_once(state, statement, self.errors)
        if failure is not None:
            state.fail(failure)
            return
        if fails_under_locks(state, statement):
            return
        begins = transactions.begins_transaction(statement.facts)
        if not begins and fails_read_only(state, statement):
            return
        failure = (
            self.errors.denied_behind_commit(state, statement)
            or unsafe_default_added(state, statement.facts)
            or self.errors.of_objects(state, statement)
        )
        if failure is not None and failure.errno != statement.outcome.error:
            statement = statement.failing(failure)
        if is_forbidden(state, statement):
            pass
        elif runner.is_program(statement.facts):
            self._run_program(statement)
        else:
            handler = HANDLERS.get(statement.facts.effects.kind, do_nothing)
            with consequences(state, statement.facts):
                handler(state, statement)

    def _run_program(self, statement: SessionStatement) -> None:
        state = self.state
        error = runner.run(statement.facts, statement.outcome, self)
        if error is not None:
            is_stated = error.is_stated or error.errno == statement.outcome.error
            state.fail(replace(error, is_stated=is_stated))
        if not statement.is_inner:
            state.execution.notes = merged_notes(state.execution.notes)


def _bare(statement: str) -> str:
    return statement.strip().rstrip(";").rstrip()


def _global_values(objects: SchemaCatalog) -> dict[str, str]:
    return {name: value.strip().strip("'\"").upper() for name, value in objects.settings().items()}
