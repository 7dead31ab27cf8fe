"""Which binlogs log a statement that is logged as its text in every mode."""

from __future__ import annotations

from binlane.policy.access import ResolvedStatement
from binlane.session.state import Command, SessionState


def recorders_of(state: SessionState, command: Command, *, commits: bool) -> frozenset[str] | None:
    """The binlogs that log a statement; None if one of them refuses it, which `state` then knows.

    Args:
        state: The session.
        command: The statement.
        commits: It commits first what is open.
    """
    names = frozenset(state.each_logging())
    safety = state.safety
    if safety is None or not names:
        return names
    changes = safety.changes(
        command.facts, ResolvedStatement(), state.objects, is_in_procedure=state.is_in_procedure
    )
    modes = {name: state.mode(name) for name in state.binlogs}
    is_in_transaction = state.is_in_transaction and not commits
    refusal = safety.check(changes, modes=modes, formats={}, is_in_transaction=is_in_transaction)
    if refusal is not None:
        state.fail(refusal)
        return None
    recorders = safety.recorders(changes, modes=modes, formats={})
    if command.succeeds:
        safety.executed(changes, recorders, is_in_transaction=is_in_transaction)
    return recorders & names
