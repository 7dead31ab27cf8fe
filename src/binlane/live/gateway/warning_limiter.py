"""Warnings that peers can cause as often as they like: the log does not grow with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

EVERY_S: Final = 60.0
"""Seconds between two tellings of one kind of warning."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kind:
    """Warnings of one text since it was told last.

    Attributes:
        timer: Ends the time in which the warnings are only counted.
        count: Number of the warnings that were counted.
        message: Text of the last counted warning.
        extra: Logged fields of the last counted warning.
    """

    timer: asyncio.TimerHandle
    count: int = 0
    message: str = ""
    extra: Mapping[str, object] | None = None


class WarningLimiter:
    """Tells the first warning of a kind at once, and those behind it as one, each minute.

    Args:
        every_s: Seconds between two tellings of one kind.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._kinds: dict[str, _Kind] = {}

    def warn(self, text: str, *values: object, extra: Mapping[str, object] | None = None) -> None:
        """Warn, or count; in an event loop.

        Args:
            text: Format string for `values`, which is the warning's kind.
            values: Values of this one warning.
            extra: Further fields, as `logging` has them.
        """
        kind = self._kinds.get(text)
        if kind is None:
            logger.warning(text, *values, extra=extra)
            self._kinds[text] = _Kind(self._later(text))
            return
        kind.count += 1
        kind.message, kind.extra = text % values, extra

    def close(self) -> None:
        """Tell the warnings that were only counted so far."""
        for kind in self._kinds.values():
            kind.timer.cancel()
            self._tell(kind)
        self._kinds.clear()

    def _later(self, text: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._every_s, self._sum_up, text)

    def _sum_up(self, text: str) -> None:
        kind = self._kinds.pop(text)
        if kind.count:
            self._tell(kind)
            self._kinds[text] = _Kind(self._later(text))

    def _tell(self, kind: _Kind) -> None:
        if kind.count:
            more = f"the last of {kind.count} more like it" if kind.count > 1 else "1 more like it"
            logger.warning("%s (%s in %g s)", kind.message, more, self._every_s, extra=kind.extra)
