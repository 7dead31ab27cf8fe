"""An unsafe reason where it was found, and the way there from the statement's text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.policy.reasons import Reason
    from binlane.sql.facts import Shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Via:
    """One step from the statement's text to a table: a view, trigger, routine or foreign key.

    Attributes:
        kind: `view`, `trigger`, `function`, `procedure`, `foreign key`, `default of`,
            `merge table`.
        name: Its name; of a foreign key the child table's, of a default the table's.
    """

    kind: str
    name: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonFound:
    """An unsafe reason with what raised it.

    Attributes:
        reason: Which.
        what: What in the statement is meant, such as `uuid()` or `@@hostname`.
        offset: Where it stands in the statement's text, or what leads to it.
        length: Of that.
        via: How the statement comes to it; empty if its own text says it.
    """

    reason: Reason
    what: str = ""
    offset: int = 0
    length: int = 0
    via: tuple[Via, ...] = ()

    def moved(self, shift: Shift) -> ReasonFound:
        """The same in a statement that differs only in its literals."""
        offset = shift(self.offset)
        return replace(self, offset=offset, length=shift(self.offset + self.length) - offset)
