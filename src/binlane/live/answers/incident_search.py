"""Finds, once, the INCIDENT events of files that a binlane wrote which kept no list of them.

It goes on beside all else, from the newest file back, and remembers how far it is: a store of
terabytes is read once, whatever happens meanwhile, and no start waits for it.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import CancelledError

from binlane.binlogs.store.binlog import Binlog
from binlane.binlogs.store.files import BinlogFile
from binlane.binlogs.store.incidents import StoredIncident
from binlane.binlogs.store.stored_groups import incidents_in
from binlane.errors import BinlaneError
from binlane.live.loop.binlogs import Binlogs
from binlane.positions import FilePosition

logger = logging.getLogger(__name__)


class IncidentSearch:
    """The search, in a thread of its own.

    Args:
        binlogs: The binlogs whose files are read.
    """

    def __init__(self, binlogs: Binlogs) -> None:
        self._binlogs = binlogs
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="incidents", daemon=True)

    def start(self) -> None:
        """Begin, where there is something to be read."""
        if any(self._binlogs.get(name).unsearched for name in self._binlogs.names):
            self._thread.start()

    def stop(self) -> None:
        """Read no more; what is left is read at another start."""
        self._stopped.set()

    def _run(self) -> None:
        for name in self._binlogs.names:
            try:
                self._search(self._binlogs.get(name))
            except CancelledError:
                return
            except (BinlaneError, OSError) as error:
                # It is read again at the next start; who reads that file is told, too.
                logger.warning(
                    "binlog %s: files of an older binlane cannot be searched for INCIDENTs: %s",
                    *(name, error),
                    extra={"binlog": name},
                )

    def _search(self, binlog: Binlog) -> None:
        while (before := binlog.unsearched) is not None and not binlog.failure:
            if self._stopped.is_set():
                return
            files = [file for file in binlog.files() if file.number <= _number(before)]
            found: tuple[StoredIncident, ...] = ()
            if files:
                last = files[-1]
                size = before.position if last.name == before.file else last.size_bytes
                found = incidents_in(last.path, size)
            for incident in found:
                logger.error(
                    "binlog %s: an INCIDENT at %s, %s: %s; replicas stop there",
                    *(binlog.name, incident.place_text, incident.gtid, incident.reason),
                    extra={"binlog": binlog.name, "gtid": incident.gtid},
                )
            if self._stopped.is_set():
                return
            self._binlogs.changes.note_found(binlog, found, _end(files[:-1])).result()
            if binlog.unsearched == before:
                return  # its disk failed, or it is another one now


def _number(place: FilePosition) -> int:
    return int(place.file.rpartition(".")[2])


def _end(files: list[BinlogFile]) -> FilePosition | None:
    """The end of the last of some files."""
    return FilePosition(files[-1].name, files[-1].size_bytes) if files else None
