"""Counts of changes that a filter left out of tables that its rules name; light, for all readers of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from binlane.names import TableName


@dataclass(slots=True)
class Losses:
    """Changes of tables that rules name, and that are left out all the same, by table.

    Every reader of a log counts the same; but changes that take no effect, as rows of an XA
    transaction that is rolled back, are not counted by those that read rows alone.

    Attributes:
        statements: Number of statements, by table.
        images: Number of row images, by table; an update has two. A rows event whose images cannot
            be counted is one.
        places: Place of each table's first change, as FILE:POSITION.
    """

    statements: Counter[TableName] = field(default_factory=Counter)
    images: Counter[TableName] = field(default_factory=Counter)
    places: dict[TableName, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """True if anything was left out."""
        return bool(self.places)

    def lose(self, table: TableName, place: str, *, statements: int = 0, images: int = 0) -> None:
        """Count changes of a table."""
        if statements:
            self.statements[table] += statements
        if images:
            self.images[table] += images
        self.places.setdefault(table, place)

    def add(self, other: Losses) -> None:
        """Count those of another part of the log, behind what was counted so far."""
        self.statements += other.statements
        self.images += other.images
        self.places = other.places | self.places

    def clear(self) -> None:
        """Begin anew."""
        self.statements.clear()
        self.images.clear()
        self.places.clear()

    @property
    def texts(self) -> list[str]:
        """A line for each table, by name."""
        return [self._text(table) for table in sorted(self.places)]

    def _text(self, table: TableName) -> str:
        counts = [
            _counted(self.statements[table], "statement"),
            _counted(self.images[table], "row image"),
        ]
        return (
            f"left out of {table.plain}, which the filter names: "
            f"{' and '.join(filter(None, counts))} from {self.places[table]} on"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}" if count else ""
