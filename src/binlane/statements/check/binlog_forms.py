"""The form in which binlogs hold the effects of a statement, beside its format: ROW_IMAGE and COMPRESS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from binlane.statements.session.session import Session
from binlane.statements.sql.servers import RowImage, smaller


class BinlogForm(NamedTuple):
    """The form of a binlog.

    Attributes:
        row_image: Columns that the binlog's rows hold: its own ROW_IMAGE, or the session's binlog_row_image
            where that is less.
        is_compressed: The binlog's files are compressed (COMPRESS).
    """

    row_image: RowImage = RowImage.FULL
    is_compressed: bool = False

    @property
    def clauses(self) -> tuple[str, ...]:
        """Return the clauses of CREATE BINLOG that give this form."""
        image = f"ROW_IMAGE='{self.row_image.value}'"
        return (
            *((image,) if self.row_image is not RowImage.FULL else ()),
            *(("COMPRESS='ON'",) if self.is_compressed else ()),
        )


def forms_of(session: Session) -> Mapping[str, BinlogForm]:
    """Return the forms that a session's binlogs now give to changes, by name; empty without binlogs."""
    image = session.row_image
    return {
        one.name: BinlogForm(smaller(one.row_image, image), one.is_compressed)
        for one in session.definitions or ()
    }
