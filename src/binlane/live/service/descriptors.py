"""The numbers of files and connections that this process may have open, and their shares.

Who connects must never take the descriptor that the store needs for its next file.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from dataclasses import replace
from typing import Any, Final

from binlane.live.service.config import ServeSettings
from binlane.live.web.settings import CONNECTIONS_MAX

_RESERVE: Final = 256
"""Descriptors for the store's files, the connections of capture, libraries."""

_OF_A_SESSION: Final = 6
"""The client's connection, the source's, the file that a replica reads, and one client each that
waits, is accepted and is sent away."""

_ACCEPTED_AT_ONCE: Final = 100
"""Connections that asyncio accepts before it lets anybody look at them."""

_PLENTY: Final = 1 << 20
"""The limit that is taken where the system sets none."""

_NO_ACCEPT: Final = "socket.accept() out of system resource"
_TOLD_EVERY_S: Final = 60.0

logger = logging.getLogger(__name__)


def settle(settings: ServeSettings, *, binlogs: int) -> ServeSettings:
    """Take as many descriptors as the system lets us have, and share them out.

    Args:
        settings: The settings as they were configured.
        binlogs: The number of binlogs in the store.

    Returns:
        The settings, with fewer sessions where there are not descriptors for all.
    """
    have = _take_all()
    # A process that has hardly any keeps half of them for itself.
    reserve = min(_RESERVE + 2 * binlogs, have // 2)
    http = 0 if settings.http is None else CONNECTIONS_MAX + _ACCEPTED_AT_ONCE
    sessions = max(1, (have - reserve - http) // _OF_A_SESSION)
    listen = settings.listen
    if sessions >= listen.max_connections:
        return settings
    logger.warning(
        "%d open files are allowed: max_connections is %d, not %d (raise LimitNOFILE, ulimit -n)",
        *(have, sessions, listen.max_connections),
    )
    return replace(settings, listen=replace(listen, max_connections=sessions))


def tell_once_in_a_while(loop: asyncio.AbstractEventLoop) -> None:
    """Tell that there are no descriptors for more connections, once a minute.

    asyncio tries again each second, and each time would print its stack a hundred times.
    """
    next_s = 0.0

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal next_s
        if not str(context.get("message")).startswith(_NO_ACCEPT):
            loop.default_exception_handler(context)
        elif loop.time() >= next_s:
            next_s = loop.time() + _TOLD_EVERY_S
            logger.error("connections: no more can be accepted: %s", context.get("exception"))

    loop.set_exception_handler(tell)


def _take_all() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        hard = max(soft, _PLENTY)
    if soft >= hard:
        return soft
    try:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
    except (OSError, ValueError):
        return soft
    return hard
