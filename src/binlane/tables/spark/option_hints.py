"""Errors on their way through Spark, which passes on only the text of their traceback."""

from __future__ import annotations

import logging
from contextlib import ContextDecorator
from types import TracebackType
from typing import Final, Self

from binlane.errors import BinlaneError

_logger: Final = logging.getLogger(__name__)


class hints_shown(ContextDecorator):  # noqa: N801 - used as a function
    """Shorten the traceback of binlane's errors, and end it with their hint.

    Where in binlane it was raised is told to the log of the process, on the level DEBUG.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, BinlaneError):
            return
        _logger.debug("binlane: %s", error, exc_info=error)
        note = f"hint: {error.hint}"
        if error.hint and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        if error.__traceback__ is not None:
            # This one line stays: where there is none but Spark's own, Spark shows all of those.
            error.__traceback__.tb_next = None
        error.__cause__ = None
        error.__suppress_context__ = True
