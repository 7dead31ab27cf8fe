"""A program that writes binlogs, through several lives on a disk that fails in each but the last.

A run is told by its seed. In each life one thing goes wrong at an operation drawn by lot: the
process is killed before, in or behind a write, or power is cut, or a write or an fsync fails. What
the process before left unforced in memory is still unforced in the next life. The last life goes
undisturbed; then power is cut, and everything must be there, once.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final, Protocol

from binlane.errors import BinlaneError
from tests.faulty_disk import Failure, Killed, VolatileDisk

_LIVES_MOST: Final = 3


class Fault(Enum):
    """What goes wrong in a life."""

    KILL = "killed"
    POWER_CUT = "power cut"
    SHORT_WRITE = "short write, then no room"
    NO_ROOM = "no room"
    WRITE_ERROR = "EIO at a write"
    SYNC_ERROR = "EIO at fsync, pages lost"
    SYNC_NO_ROOM = "no room at fsync, pages lost"
    ANY_ERROR = "EIO at any operation"


_FORGETFUL: Final = frozenset(
    {Fault.POWER_CUT, Fault.SYNC_ERROR, Fault.SYNC_NO_ROOM, Fault.NO_ROOM, Fault.ANY_ERROR}
)
"""What takes back even what a process that lives on could read."""


class Writer(Protocol):
    """What is tried: it begins anew in each life and goes on with what it finds."""

    def live(self, disk: VolatileDisk) -> None:
        """Write everything that is to be written, as far as the disk lets it.

        Raises:
            Killed: The disk's own; nothing may be done behind it but let go of locks.
            BinlaneError: Where the program gives up.
            AssertionError: If something is missing that was safe, or is there twice.
        """
        ...

    def forget(self) -> None:
        """Power was cut or an fsync failed: what was never forced to disk is not safe any more."""
        ...

    def check(self) -> None:
        """See that everything is there, once, in order, and sound.

        Raises:
            AssertionError: If it is not.
        """
        ...


@dataclass(slots=True)
class Tally:
    """What happened in some runs.

    Attributes:
        runs: How many.
        struck: How many faults of each kind came to strike.
    """

    runs: int
    struck: Counter[Fault]


def fault_runs(
    seeds: range, new_writer: Callable[[Path, Random], tuple[Path, Writer]], base: Path
) -> Tally:
    """Do runs, each in a directory of its own.

    Args:
        seeds: One for each run.
        new_writer: Gives the directory whose files go to the disk, which must be there, and a
            writer that is to work below the given path.
        base: For the directories.

    Raises:
        AssertionError: At the first run that loses, doubles or damages anything; names its seed.
    """
    tally = Tally(0, Counter())
    for seed in seeds:
        chance = Random(seed)
        root, writer = new_writer(base / str(seed), chance)
        try:
            _run(VolatileDisk(root), writer, chance, tally)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        tally.runs += 1
    return tally


def _run(disk: VolatileDisk, writer: Writer, chance: Random, tally: Tally) -> None:
    for _ in range(chance.randint(1, _LIVES_MOST)):
        fault = chance.choice(list(Fault))
        # Most lives are short: what recovery does is disturbed as often as what comes behind it.
        at = int(chance.expovariate(1 / 40))
        disk.arm(_failure(fault, at, chance.choice((0.0, 0.3, 0.7, 1.0))))
        try:
            writer.live(disk)
        except (Killed, BinlaneError, OSError):
            assert disk.has_failed, "nothing was wrong with the disk"
        tally.struck[fault] += disk.has_failed
        if fault is Fault.POWER_CUT and disk.has_failed:
            is_ordered = chance.random() < 0.5
            share = chance.choice((0.0, 0.3, 0.7, 1.0))
            disk.cut_power(share=share, chance=None if is_ordered else chance)
        if fault in _FORGETFUL:
            writer.forget()
    disk.arm(None)
    writer.live(disk)
    # Pages that an fsync lost are in memory still, where they deceive: only the disk counts.
    disk.cut_power(share=0.0)
    writer.check()


def _failure(fault: Fault, at: int, share: float) -> Failure:
    match fault:
        case Fault.KILL | Fault.POWER_CUT:
            return Failure(at=at, error=Killed, share=share, lasts=True)
        case Fault.SHORT_WRITE:
            return Failure(at=at, error=_os_error(errno.ENOSPC), share=share, only="write_at")
        case Fault.NO_ROOM:
            return Failure(at=at, error=_os_error(errno.ENOSPC))
        case Fault.WRITE_ERROR:
            return Failure(at=at, error=_os_error(errno.EIO), share=share, only="write_at")
        case Fault.SYNC_ERROR:
            return Failure(at=at, error=_os_error(errno.EIO), only="sync")
        case Fault.SYNC_NO_ROOM:
            return Failure(at=at, error=_os_error(errno.ENOSPC), only="sync")
        case Fault.ANY_ERROR:
            return Failure(at=at, error=_os_error(errno.EIO))


def _os_error(number: int) -> Callable[[], BaseException]:
    return lambda: OSError(number, os.strerror(number))
