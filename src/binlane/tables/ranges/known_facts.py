"""Facts of a log's files as they are known by now; what is new in a file is surveyed when asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from binlane.log.codec.format import CHECKSUM_LENGTH, MAGIC
from binlane.tables.ranges.kept_facts import KeptFacts
from binlane.tables.ranges.log_file_facts import PIECE_BYTES, LogFileFacts
from binlane.tables.ranges.storage import bytes_before
from binlane.tables.ranges.stored_files import StoredLogFile
from binlane.tables.ranges.survey import first_facts, survey

KEPT_BYTES: Final = 4 << 20
"""Bytes that must be new in a file that is written for its facts to be kept again."""


class KnownFacts:
    """The facts of some files.

    Args:
        keys: Path of a key file, for encrypted files.
        piece_bytes: Least distance of two cut points.
        kept: Where facts are kept; None for nowhere.
    """

    def __init__(
        self,
        *,
        keys: str | None = None,
        piece_bytes: int = PIECE_BYTES,
        kept: KeptFacts | None = None,
    ) -> None:
        self._keys = keys
        self._piece_bytes = piece_bytes
        self._kept = kept
        self._kept_ends: dict[str, int] = {}
        self._known: dict[str, LogFileFacts] = {}

    def first(self, file: StoredLogFile) -> LogFileFacts:
        """Read the facts that a file's first events tell, anew each time.

        Raises:
            CodecError: If the file does not begin as a binlog file.
            StoreError: If the file cannot be read.
        """
        return first_facts(file, keys=self._keys)

    def of(
        self,
        file: StoredLogFile,
        *,
        since: int = 0,
        until: int | None = None,
        begin: str | None = None,
    ) -> LogFileFacts:
        """The facts of a file, at least between two positions.

        Args:
            file: The file with its present size.
            since: The file's beginning or where an event group begins. The part before it is not
                read for it; that part may be known all the same.
            until: Position up to which facts are enough; None for the end.
            begin: The position that is done at `since`, where the caller knows it.

        Raises:
            CodecError: If the file does not begin as a binlog file.
            StoreError: If the file cannot be read.
        """
        first = self.first(file)
        known = self._fitting(file, first, self._known.get(file.uri))
        if known is None or known.start > max(since, len(MAGIC)):
            known = self._fitting(file, first, self._read(file)) or known
        if known is None or known.start > max(since, len(MAGIC)):
            known = first
            if file.is_plain and since > first.end:
                known = replace(first, begin=begin, start=since, end=since)
        found = survey(file, known, keys=self._keys, until=until, piece_bytes=self._piece_bytes)
        self._known[file.uri] = found
        self._keep(file, found)
        return found

    def _read(self, file: StoredLogFile) -> LogFileFacts | None:
        if self._kept is None:
            return None
        found = self._kept.read(file.uri, piece_bytes=self._piece_bytes)
        if found is not None:
            self._kept_ends[file.uri] = found.end
        return found

    def _keep(self, file: StoredLogFile, facts: LogFileFacts) -> None:
        """Keep what is worth it: a lot that is new, or the end of a file that is closed."""
        new = facts.end - self._kept_ends.get(file.uri, 0)
        is_worth_it = new >= KEPT_BYTES or (new > 0 and not file.is_live)
        if self._kept is not None and facts.start == len(MAGIC) and is_worth_it:
            self._kept.write(file.uri, facts, piece_bytes=self._piece_bytes)
            self._kept_ends[file.uri] = facts.end

    def _fitting(
        self, file: StoredLogFile, first: LogFileFacts, known: LogFileFacts | None
    ) -> LogFileFacts | None:
        """Return known facts if the file is still the one that they are about, else None."""
        if known is None or known.fingerprint != first.fingerprint:
            return None
        if file.is_plain and (
            known.end > file.size_bytes
            or (known.check and bytes_before(file.uri, known.end, CHECKSUM_LENGTH) != known.check)
        ):
            return None
        return known
