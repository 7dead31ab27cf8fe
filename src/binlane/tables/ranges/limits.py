"""How much of a log is taken at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlane.statements.scope.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken at once, about: event groups stay whole, and at least one is taken.

    Attributes:
        size_bytes: Of log.
        groups: Event groups.
        rows: Row changes.
        scope: The tables whose rows count.
    """

    size_bytes: int | None = None
    groups: int | None = None
    rows: int | None = None
    scope: Scope = field(default_factory=Scope.everything)

    @property
    def are_used_up(self) -> bool:
        """Whether nothing more is to be taken."""
        return any(left is not None and left <= 0 for left in self._given())

    @property
    def are_exceeded(self) -> bool:
        """Whether more was taken than wanted, in bytes."""
        return self.size_bytes is not None and self.size_bytes < 0

    @property
    def is_unlimited(self) -> bool:
        """Whether all there is may be taken."""
        return all(left is None for left in self._given())

    def _given(self) -> tuple[int | None, ...]:
        return self.size_bytes, self.groups, self.rows
