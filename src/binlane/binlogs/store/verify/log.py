"""The files of one log, checked one after the other by the faster of two paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from binlane.binlogs.store.byte_source import ChunkBytes, is_large
from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.fills import Seeding
from binlane.binlogs.store.verify.checks import Checks
from binlane.binlogs.store.verify.faults import CheckCounts, Fault
from binlane.binlogs.store.verify.reference import ReferencePath
from binlane.errors import CodecError, StoreError, TruncatedError
from binlane.log.codec.encryption import KeyRing
from binlane.log.grouping.decryption import plain_chunks
from binlane.log.grouping.walk import walk
from binlane.positions import Position

# If the kernel was not compiled ahead, numba takes some ten seconds for it.
_JIT_BYTES_MIN: Final = 32 << 20
_CUT: Final = "the file ends inside an event group"
EVERYWHERE: Final = 1 << 63
"""A position behind every other."""


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of one log.

    Attributes:
        paths: Paths of the files, oldest first.
        is_live: True if the last file may still be written.
        begin: The source's position at which the binlog began, if a store tells; the binlog has
            nothing of what was done before.
        seedings: The rows of tables in it, whose GTIDs no other log has.
    """

    name: str
    paths: tuple[str, ...]
    is_live: bool = False
    begin: Position | None = None
    seedings: tuple[Seeding, ...] = ()


class _Path(Protocol):
    """A way to check a file.

    Attributes:
        end: Position behind the last whole event.
        open_group: Position of the group that has not ended yet; None if all have.
    """

    end: int
    open_group: int | None


class CheckedLog:
    """One log.

    Args:
        keys: Keys for files that a server encrypted.
        tally: Counter of the files and events looked at.
        watermark: The watermark, as `Checks` takes it.
        by_kernels: True if kernels look; None where they are compiled, or worth it.
    """

    def __init__(
        self,
        *,
        keys: KeyRing | None = None,
        tally: CheckCounts | None = None,
        watermark: Position | None = None,
        by_kernels: bool | None = None,
    ) -> None:
        self._keys = keys
        self._tally = CheckCounts() if tally is None else tally
        self._by_kernels = by_kernels
        self._checks = Checks(watermark)

    @property
    def position(self) -> Position | None:
        """Position that is done up to here; None if no event has told the flavor of the log."""
        return self._checks.position

    def file(
        self, path: str, *, may_be_cut: bool, marked_up_to: int = EVERYWHERE
    ) -> Iterator[Fault]:
        """Check the next file; the checks inside a file end at its first damage.

        Args:
            path: Path of the file to check.
            may_be_cut: True if the file may still be written, so that a cut at its end is no fault.
            marked_up_to: Position up to which the watermark covers it.
        """
        yield from self._checks.begin_file(path, marked_up_to=marked_up_to)
        self._tally.files += 1
        reader, faults = self._open(path)
        try:
            yield from faults
        except CodecError as error:
            # A body that ends early tells at which offset; only the file itself may be cut.
            is_cut = isinstance(error, TruncatedError) and not error.offset and bool(reader.end)
            if not (is_cut and may_be_cut):
                yield Fault(error.file or path, error.position or 0, error.message)
        except StoreError as error:
            yield Fault(path, 0, error.message)
        else:
            if reader.end == 0:
                yield Fault(path, 0, "the file holds no event")
            if reader.open_group is not None and not may_be_cut:
                yield Fault(path, reader.open_group, f"{_CUT} that begins here")
        self._tally.size_bytes += reader.end

    def pass_over(self) -> None:
        """Leave out the next file, which has been purged."""
        self._checks.pass_over()

    def _open(self, path: str) -> tuple[_Path, Iterator[Fault]]:
        if self._uses_kernels(path):
            from binlane.binlogs.store.verify.kernel_path import KernelPath  # noqa: PLC0415  # needs numpy

            source = ChunkBytes(plain_chunks(open_chunks(path), file=path, keys=self._keys))
            fast = KernelPath(self._checks, self._tally, path, source)
            return fast, fast.faults()
        reader = ReferencePath(self._checks, self._tally, path)
        return reader, reader.faults(walk(open_chunks(path), file=path, keys=self._keys))

    def _uses_kernels(self, path: str) -> bool:
        if self._by_kernels is not None:
            return self._by_kernels
        from binlane.log.kernels.load import can_jit, is_compiled  # noqa: PLC0415  # looks for files

        return is_compiled(("scan",)) or (can_jit() and is_large(path, _JIT_BYTES_MIN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings for the checks of files.

    Attributes:
        keys: Keys for files that a server encrypted.
        tally: Counter of the files and events looked at.
        by_kernels: The choice of kernels, as `CheckedLog` takes it.
    """

    keys: KeyRing | None = None
    tally: CheckCounts = field(default_factory=CheckCounts)
    by_kernels: bool | None = None

    def log(self, watermark: Position | None = None) -> CheckedLog:
        """A log to be looked at."""
        return CheckedLog(
            keys=self.keys, tally=self.tally, watermark=watermark, by_kernels=self.by_kernels
        )
