"""Several processes that serve one port: how many clients each of them has.

The counts stand in memory that all of them see. Each writes its own and reads those of the others,
without a lock: as many clients as there are processes may come at the same moment and be one too
many.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_COUNTS: Final = Struct("=II")
_FEW: Final = 4
"""Clients of a process for which a difference of one is no matter."""


class ClientCounts:
    """The clients of all processes of a port.

    Args:
        memory: Memory that all processes see, of `bytes_for` their number; a process that is alone has its
            own.
        number: Number of this process, from 0.
    """

    def __init__(self, memory: memoryview | bytearray | None = None, number: int = 0) -> None:
        self._memory = memoryview(bytearray(_COUNTS.size) if memory is None else memory)
        self._at = number * _COUNTS.size
        self._is_alone = len(self._memory) == _COUNTS.size

    @staticmethod
    def bytes_for(processes: int) -> int:
        """Give the number of bytes of memory that some processes need."""
        return processes * _COUNTS.size

    def tell(self, *, clients: int, sessions: int) -> None:
        """Say how many clients this process has.

        Args:
            clients: Number of the process's client connections.
            sessions: Number of those clients that are logged in.
        """
        _COUNTS.pack_into(self._memory, self._at, clients, sessions)

    @property
    def others(self) -> int:
        """Sessions of all other processes."""
        if self._is_alone:
            return 0
        return sum(sessions for _, sessions in self._counts) - self._own[1]

    @property
    def gives_way(self) -> bool:
        """True if another process has fewer clients, by more than a few where there are many."""
        if self._is_alone:
            return False
        fewest = min(clients for clients, _ in self._counts)
        return self._own[0] > fewest + fewest // _FEW

    @property
    def _own(self) -> tuple[int, int]:
        clients, sessions = _COUNTS.unpack_from(self._memory, self._at)
        return int(clients), int(sessions)

    @property
    def _counts(self) -> list[tuple[int, int]]:
        return [
            (int(clients), int(sessions)) for clients, sessions in _COUNTS.iter_unpack(self._memory)
        ]
