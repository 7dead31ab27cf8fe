"""The exception by which a check of a statement ends with the first error."""

from __future__ import annotations

from binlane.statements.policy.refusals import Refusal


class PredictedError(Exception):
    """Carries the error of a statement out of a check that goes through its text.

    Attributes:
        error: Error that the server would give.
    """

    def __init__(self, error: Refusal) -> None:
        super().__init__(error)
        self.error = error
