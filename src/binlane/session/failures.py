"""Statements that fail as the script states."""

from __future__ import annotations

from binlane.session.report import Refusal
from binlane.session.state import Command, SessionState


def fail_as_stated(state: SessionState, command: Command) -> None:
    """Report the error that the script states, or that is known without it."""
    if command.failure is not None:
        state.fail(command.failure)
        return
    errno = command.outcome.error
    assert errno is not None
    state.fail(
        Refusal(
            errno=errno,
            sqlstate="HY000",
            symbol="",
            message=f"the script states that the server fails with error {errno}",
            is_stated=True,
        )
    )
