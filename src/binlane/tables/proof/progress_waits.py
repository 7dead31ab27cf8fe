"""Waits until a binlog, or a server, has all that the other has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from binlane.positions import GtidPosition, GtidSet, Position
from binlane.tables.proof.compared_server import ComparedServer
from binlane.tables.proof.described_binlog import DescribedBinlog
from binlane.tables.proof.verdicts import ComparisonStep

_PAUSE_S: Final = 0.1


class NotComparableError(Exception):
    """A table cannot be compared now; the text says why."""


class InterruptedReadingError(NotComparableError):
    """A reading proves nothing, and another one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonLimits:
    """Limits of one comparison.

    Attributes:
        wait_s: Longest wait for a replica or the binlog to come to a position.
        changes_max: Changes of one table that are kept while it is read.
        is_stopped: True if the comparison is to end early.
        observe: Told of each step before it begins.
    """

    wait_s: float = 60.0
    changes_max: int = 20_000_000
    is_stopped: Callable[[], bool] = lambda: False
    observe: Callable[[ComparisonStep], None] = lambda _: None


class ProgressWaits:
    """Waits for a binlog and for a server that is compared with it.

    Args:
        binlog: The binlog, which is followed as far as a wait needs.
        server: The server to compare with.
        limits: The longest wait. After one in vain there is no other: the next would be, too.
    """

    def __init__(
        self, binlog: DescribedBinlog, server: ComparedServer, limits: ComparisonLimits
    ) -> None:
        self._binlog = binlog
        self._server = server
        self._limits = limits
        self._patience_s = limits.wait_s

    def await_server(self) -> None:
        """Wait until reads of the server see all that the binlog was followed up to.

        Raises:
            NotComparableError: If it takes too long.
            PeerError: If the server goes away.
        """
        binlog = self._binlog
        needed = binlog.position if self._server.address.is_source else binlog.logged
        self._await(
            lambda: _has_done(self._server.settled(), needed),
            lambda: (
                f"the server is at GTID {self._server.settled() or 'none'},"
                f" and the binlog at {needed}"
            ),
        )

    def advance_behind_reads(self) -> None:
        """Follow the binlog to a mark behind all that the server could have shown until now.

        Raises:
            NotComparableError: If it takes too long.
            PeerError: If the server goes away.
            CodecError: With file and position, if the binlog is damaged.
        """
        if self._server.address.is_source:
            self.advance_behind(self._server.position_behind())
            return
        end = self._binlog.end
        self._await(
            lambda: not self._binlog.mark.end < end,
            lambda: f"the binlog is saved up to {self._binlog.mark.end}, and has {end}",
        )
        self._binlog.advance(self._binlog.mark)

    def advance_behind(self, position: Position) -> None:
        """Follow the binlog to a mark behind a position of the source.

        Raises:
            NotComparableError: If it takes too long.
            CodecError: With file and position, if the binlog is damaged.
        """
        self._await(
            lambda: self._binlog.mark.position.includes(position),
            lambda: (
                f"the binlog is complete up to GTID {self._binlog.mark.position or 'none'},"
                f" and the server at {position}"
            ),
        )
        self._binlog.advance(self._binlog.mark)

    def _await(self, is_enough: Callable[[], bool], state: Callable[[], str]) -> None:
        deadline = time.monotonic() + self._patience_s
        while not is_enough():
            if self._limits.is_stopped() or time.monotonic() > deadline:
                self._patience_s = 0.0
                raise NotComparableError(state())
            time.sleep(_PAUSE_S)


def _has_done(there: Position, needed: Position) -> bool:
    """True if a server has done all that it ever can of a binlog's position.

    The GTIDs of rows that a binlog begins with are in a domain, or of a UUID, that no source has.
    """
    left = needed.subtract(there)
    if isinstance(left, GtidSet) and isinstance(there, GtidSet):
        known = {run.source_id for run in there.runs}
        is_left = any(run.source_id in known for run in left.runs)
    elif isinstance(left, GtidPosition) and isinstance(there, GtidPosition):
        is_left = any(there.last(gtid.domain_id) is not None for gtid in left)
    else:
        is_left = bool(left)
    return not is_left and (bool(there) or not needed)
