"""Errors of a statement that come before anything of it is carried out."""

from __future__ import annotations

from typing import Final

from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome, Refusal, Why
from binlane.statements.session import transactions
from binlane.statements.session.report import Unanalysed
from binlane.statements.session.server_errors import SessionErrors, no_statement
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import StatementKind

CREATES_PROGRAMS: Final = frozenset(
    {
        *(StatementKind.CREATE_TRIGGER, StatementKind.CREATE_ROUTINE, StatementKind.CREATE_EVENT),
        StatementKind.CREATE_PACKAGE,
    }
)


def syntax_error(facts: StatementFacts, outcome: Outcome) -> Refusal:
    """Return the error of a statement outside of the server's grammar: nothing of the session changes."""
    error, token = facts.error, facts.effects.stopped_at
    assert error is not None, "the caller has looked"
    assert token is not None, "it says where"
    return Refusal(
        *(outcome.error or error.errno, error.sqlstate, "ER_PARSE_ERROR", str(error)),
        is_stated=outcome.error is not None,
        why=(Why(offset=token.offset, length=max(1, len(token.text))),),
    )


def not_understood(facts: StatementFacts) -> Unanalysed:
    """Return where and why the analysis of a statement stopped."""
    token = facts.effects.stopped_at
    assert token is not None
    text = token.text[:80]
    where = f"at {text!r}" if text else "at the end of the statement"
    return Unanalysed(
        reason=facts.too_much or f"the statement is not understood {where}",
        offset=token.offset,
        length=max(1, len(token.text)),
    )


def refusal_at_once(
    state: SessionState, statement: SessionStatement, errors: SessionErrors
) -> Refusal | None:
    """Return the refusal of a statement that is found before its objects are looked at."""
    facts = statement.facts
    failure = no_statement(statement) or errors.of_parser(state, statement)
    if not statement.is_condition:
        failure = failure or transactions.refusal_behind_table(state, facts)
    failure = failure or errors.denied_at_once(state, statement)
    if failure is None and transactions.begins_transaction(facts):
        failure = transactions.begin_with_table(state, statement)
    return failure


def hangs_on_unknown(state: SessionState, facts: StatementFacts) -> bool:
    """True if a statement names programs that nobody knows; one that makes them anew does not."""
    unknown = state.unknown_programs
    if not unknown:
        return False
    effects = facts.effects
    if effects.kind in CREATES_PROGRAMS and facts.is_or_replace:
        state.unknown_programs -= {*effects.objects}
        return False
    named = {
        *effects.objects,
        *effects.calls,
        *(TableName(use.database or state.database, use.name) for use in facts.functions),
    }
    return not unknown.isdisjoint(named)
