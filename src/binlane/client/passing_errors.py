"""Errors of servers that pass by themselves: whoever reads a log tries again."""

from __future__ import annotations

from typing import Final

from binlane.errors import PeerError

# Too many connections, shutdown, lost packets, limits, interrupted, killed, offline: they pass.
_PASSING_ERRNOS: Final = frozenset(
    {1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1226, 1317, 1927, 3032, 3169}
)
_PASSING_PHASES: Final = frozenset({"connect", "read", "write"})


def is_passing(error: PeerError) -> bool:
    """True if another attempt may help though nobody does anything."""
    if error.errno is None:
        return error.phase in _PASSING_PHASES
    return error.errno in _PASSING_ERRNOS
