"""Limits of how much of a log is taken at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.statements.scope.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one taking, about: event groups stay whole, and at least one is taken.

    Attributes:
        size_bytes: Bytes of log at most; None without a limit.
        groups: Event groups at most; None without a limit.
        rows: Row changes at most; None without a limit.
        scope: The tables whose rows count.
    """

    size_bytes: int | None = None
    groups: int | None = None
    rows: int | None = None
    scope: Scope = field(default_factory=Scope.everything)

    @property
    def are_used_up(self) -> bool:
        """True if nothing more is to be taken."""
        return any(left is not None and left <= 0 for left in self._given())

    @property
    def are_exceeded(self) -> bool:
        """True if more bytes were taken than wanted."""
        return self.size_bytes is not None and self.size_bytes < 0

    @property
    def is_unlimited(self) -> bool:
        """True if everything in the log may be taken."""
        return all(left is None for left in self._given())

    def _given(self) -> tuple[int | None, ...]:
        return self.size_bytes, self.groups, self.rows
