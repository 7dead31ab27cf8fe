"""Facts kept beside a log, so that no process reads a file a second time only to cut it.

One file of JSON for each file of a log, in a directory that is a cache: what is missing, torn, of
another file of that name or not to be written is surveyed anew, and never an error.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from binlane.errors import CodecError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.event import decode_event, encode_event
from binlane.log.codec.format import MAGIC, Format
from binlane.log.codec.rows import TableMapEvent
from binlane.log.grouping.first_event import format_of
from binlane.tables.ranges.log_file_facts import FilePiece, LogFileFacts, LoggedQuery, XaPlace

_VERSION: Final = 3
_SUFFIX: Final = ".facts"
_KEPT_S: Final = 90 * 86_400


def default_directory() -> Path:
    """Return the directory of facts if none is set: `$XDG_CACHE_HOME/binlane/facts`."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a name, as containers have them: nothing can be kept
        cache = Path(os.devnull)
    return cache / "binlane" / "facts"


class KeptFacts:
    """A directory of facts.

    Args:
        directory: Made when the first are kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, uri: str, *, piece_bytes: int) -> LogFileFacts | None:
        """The facts of a file, if they are kept and whole; whether they fit is not looked at."""
        try:
            check, _, data = self._path(uri, piece_bytes).read_bytes().partition(b"\n")
            if check != b"%08x" % zlib.crc32(data):
                return None
            return _facts(json.loads(data))
        except (OSError, ValueError, KeyError, TypeError, IndexError, CodecError):
            return None

    def write(self, uri: str, facts: LogFileFacts, *, piece_bytes: int) -> None:
        """Keep the facts of a file; if that cannot be done, nothing happens."""
        path = self._path(uri, piece_bytes)
        data = json.dumps(_values(facts), separators=(",", ":")).encode()
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                self._forget_old()
            number, made = tempfile.mkstemp(dir=self._directory, suffix=".new")
            try:
                with os.fdopen(number, "wb") as stream:
                    stream.write(b"%08x\n" % zlib.crc32(data) + data)
                Path(made).replace(path)
            except OSError:
                Path(made).unlink(missing_ok=True)
                raise

    def _path(self, uri: str, piece_bytes: int) -> Path:
        name = uri.partition("?")[0].rpartition("/")[2].partition("#")[0]
        key = sha256(f"{uri}\n{piece_bytes}".encode()).hexdigest()[:24]
        return self._directory / f"{name[:64]}-{key}{_SUFFIX}"

    def _forget_old(self) -> None:
        """Remove what nobody has written for a quarter of a year: files that are purged by now."""
        oldest = time.time() - _KEPT_S
        for path in self._directory.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _values(facts: LogFileFacts) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "fingerprint": facts.fingerprint,
        "head": _text(facts.head),
        "begin": facts.begin,
        "end": facts.end,
        "check": facts.check.hex(),
        "read_to": 0 if facts.fault else facts.read_to,
        "pieces": [
            [
                piece.stop,
                piece.groups,
                piece.first_timestamp,
                piece.last_timestamp,
                piece.gtids,
                int(piece.has_anonymous),
                piece.maps,
                piece.least_event_time,
                piece.greatest_event_time,
            ]
            for piece in facts.pieces
        ],
        "table_maps": [_text(table.encode(facts.format)) for table in facts.table_maps],
        "queries": [
            [
                query.event.position,
                query.group,
                query.stop,
                query.gtid,
                _text(encode_event(query.event, facts.format)),
            ]
            for query in facts.queries
        ],
        "xa": [[place.xid, place.start, place.stop, place.is_prepare] for place in facts.xa],
        "incidents": facts.incidents,
    }


def _facts(values: Mapping[str, Any]) -> LogFileFacts | None:
    if values["version"] != _VERSION:
        return None
    head = b64decode(values["head"])
    first = decode_event(head[len(MAGIC) :], None, position=len(MAGIC))
    format_ = format_of(first)
    start, pieces = len(MAGIC), list[FilePiece]()
    for stop, groups, first_timestamp, last_timestamp, gtids, has_anonymous, maps, *times in values[
        "pieces"
    ]:
        least_event_time, greatest_event_time = times
        pieces.append(
            FilePiece(
                start=start,
                stop=stop,
                groups=groups,
                first_timestamp=first_timestamp,
                last_timestamp=last_timestamp,
                gtids=gtids,
                has_anonymous=bool(has_anonymous),
                maps=None if maps is None else tuple(maps),
                least_event_time=least_event_time,
                greatest_event_time=greatest_event_time,
            )
        )
        start = stop
    return LogFileFacts(
        fingerprint=values["fingerprint"],
        server_id=first.header.server_id,
        head=head,
        format=format_,
        begin=values["begin"],
        start=len(MAGIC),
        end=values["end"],
        check=bytes.fromhex(values["check"]),
        read_to=values["read_to"],
        pieces=tuple(pieces),
        table_maps=tuple(_table_map(b64decode(text), format_) for text in values["table_maps"]),
        queries=tuple(
            LoggedQuery(
                event=decode_event(b64decode(text), format_, position=position),
                group=group,
                stop=stop,
                gtid=gtid,
            )
            for position, group, stop, gtid, text in values["queries"]
        ),
        xa=tuple(
            XaPlace(xid=xid, start=start, stop=stop, is_prepare=is_prepare)
            for xid, start, stop, is_prepare in values["xa"]
        ),
        incidents=tuple(values["incidents"]),
    )


def _table_map(data: bytes, format_: Format) -> TableMapEvent:
    return TableMapEvent.decode(Reader(data), format_)


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
