"""A running dump, and whether its account may still read the binlog."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from binlane.binlogs.store.live import LiveBinlog
from binlane.errors import BinlaneError, StatementError
from binlane.live.answers.access import NOT_IN_TIME, Access
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.source_privileges import SourcePrivilege

_AGAIN_S: Final = 1.0

logger = logging.getLogger(__name__)


class Reading:
    """One dump, for the time of an `async with` block.

    Args:
        access: Decides which binlogs a session may read.
        session: The session that reads the binlog.
        live: The binlog that is read.
    """

    def __init__(self, access: Access, session: HandlerSession, live: LiveBinlog) -> None:
        self._access = access
        self._session = session
        self._live = live
        self._error: StatementError | None = None
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def refusal(self) -> StatementError | None:
        """The error with which the dump has to end behind its present group; None while it may go on."""
        return self._error

    def look_again(self) -> None:
        """Look again if the account may read, since grants or accounts have changed."""
        self._has_changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._look())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        """See whether the account may still read, each time that this may have changed."""
        while self._error is None:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                names = await self._access.names(self._session, SourcePrivilege.READ)
            except StatementError as error:
                if error.errno == NOT_IN_TIME:
                    await asyncio.sleep(_AGAIN_S)
                    self._has_changed.set()
                    continue
                self._end(error)
            except BinlaneError as error:
                logger.info("%s: %s", self._session.peer, error, extra=self._named)
                return  # the source has gone, and takes the session with it
            else:
                if self._live.name not in names:
                    self._end(_revoked())

    @property
    def _named(self) -> dict[str, object]:
        """Return the log fields that identify this dump."""
        return {"peer": self._session.peer, "binlog": self._live.name}

    def _end(self, error: StatementError) -> None:
        logger.info(
            "%s: the dump of %s ends: %s",
            *(self._session.peer, self._live.name, error),
            extra=self._named,
        )
        self._error = error
        self._live.notify()


def _revoked() -> StatementError:
    return StatementError(
        "Access denied; READ on the binlog was revoked", errno=1227, sqlstate="42000"
    )
