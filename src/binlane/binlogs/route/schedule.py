"""The definitions that hold at each place of a log: the scope history that a run follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from binlane.positions import AnyGtid, Position
from binlane.statements.scope.definition import Definition


@dataclass(frozen=True, slots=True)
class ScheduledChange:
    """Other definitions from a place in the log on.

    Attributes:
        after: The last event group for which the ones before hold.
        definitions: Those that hold behind it.
    """

    after: AnyGtid
    definitions: tuple[Definition, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Definitions, and how they change.

    Attributes:
        definitions: Those that hold at first.
        changes: Changes of definitions, in the order of the log.
    """

    definitions: tuple[Definition, ...]
    changes: tuple[ScheduledChange, ...] = ()

    def at(self, done: Position | None) -> Sequence[Definition]:
        """The definitions for what comes after a position; None is the beginning."""
        definitions = self.definitions
        for change in self.changes:
            if done is not None and done.covers(change.after):
                definitions = change.definitions
        return definitions

    def left_at(self, done: Position | None) -> tuple[ScheduledChange, ...]:
        """The changes that come after a position."""
        return tuple(c for c in self.changes if done is None or not done.covers(c.after))
