"""Values of the options of `cat`: times, positions, ids and GTID sets, read from their text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, Final

import click

from binlane.positions import SERVER_ID_MAX, GtidPosition, GtidSet

POSITION_MAX: Final = (1 << 63) - 1
"""The largest position that file systems have."""
_DIGITS_TO_FORMAT: Final = {8: "%Y%m%d", 12: "%y%m%d%H%M%S", 14: "%Y%m%d%H%M%S"}


class _Value(click.ParamType[Any], ABC):
    """A value that its own reader checks."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a typed value; a value that is read already stays."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value.strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)

    @abstractmethod
    def read(self, text: str) -> object:
        """Parse the value; ValueError says what is wrong with the text."""


class Time(_Value):
    """A date and time → seconds since 1970; without a zone it is local time, as for the tools."""

    name = "time"

    def read(self, text: str) -> int:
        """Parse a DATETIME as servers accept it, or ISO 8601 with a zone."""
        try:
            if text.isascii() and text.isdigit() and len(text) in _DIGITS_TO_FORMAT:
                when = datetime.strptime(text, _DIGITS_TO_FORMAT[len(text)])  # noqa: DTZ007  # local
            else:
                when = datetime.fromisoformat(text.replace("/", "-"))
        except ValueError:
            raise ValueError(
                f"{text!r} is no date and time such as '2026-11-20 15:00:00' (local time) or "
                "'2026-11-20T14:00:00Z'"
            ) from None
        return max(0, int(when.timestamp()))


class PositionValue(_Value):
    """A byte position in a file, or a MariaDB GTID list."""

    name = "position"

    def read(self, text: str) -> int | GtidPosition:
        """A number, or GTIDs with commas between them."""
        if text.isascii() and text.isdigit():
            if int(text) > POSITION_MAX:
                raise ValueError(f"no file is longer than {POSITION_MAX} bytes")
            return int(text)
        try:
            return GtidPosition.parse(text)
        except ValueError as error:
            raise ValueError(f"{error}; a position is a number of bytes or such GTIDs") from None


class Ids(_Value):
    """Server ids or domain ids with commas between them → a set."""

    name = "ids"

    def read(self, text: str) -> frozenset[int]:
        """Numbers of 32 bits."""
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise ValueError(f"{text!r} is no list of numbers such as 1,2")
        numbers = frozenset(map(int, parts))
        if max(numbers) > SERVER_ID_MAX:
            raise ValueError(f"{max(numbers)} is more than {SERVER_ID_MAX}")
        return numbers


class Gtids(_Value):
    """A MySQL GTID set."""

    name = "gtid set"

    def read(self, text: str) -> GtidSet:
        """Parse GTIDs such as `uuid:1-5:7,uuid:tag:1`."""
        return GtidSet.parse(text)


class RewriteValue(_Value):
    """`from->to` → both names."""

    name = "rewrite"

    def read(self, text: str) -> tuple[str, str]:
        """Two names of databases."""
        old, arrow, new = text.partition("->")
        if not (old.strip() and arrow and new.strip()):
            raise ValueError(f"{text!r} is not FROM->TO")
        return old.strip(), new.strip()
