"""The files that are routed: what each begins with, looked at before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.binlogs.store.chunks import STDIN, base_name, open_chunks
from binlane.binlogs.store.stored_groups import fingerprint
from binlane.errors import CodecError, ConfigError, UnsupportedError
from binlane.log.codec.control import FormatDescriptionEvent
from binlane.log.codec.encryption import KeyRing
from binlane.log.codec.event import Event
from binlane.log.codec.format import MAGIC
from binlane.log.codec.mysql_transaction import PreviousGtidsEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import EventType
from binlane.log.grouping.walk import walk
from binlane.positions import Position, nothing_done

# Events that may stand between a FORMAT_DESCRIPTION and the position done before the file.
_BETWEEN: Final = frozenset({EventType.START_ENCRYPTION, EventType.ROTATE, EventType.STOP})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file to be routed.

    Attributes:
        path: Path as the user named it.
        name: Base name without compression suffix.
        first: The event FORMAT_DESCRIPTION at its beginning.
        done: Position done before it, as its head says.
        is_encrypted: True if it is read by way of its keys.
        size_bytes: Size of the file as it stands on its disk.
    """

    path: str
    name: str
    first: Event
    done: Position
    is_encrypted: bool
    size_bytes: int

    @property
    def description(self) -> FormatDescriptionEvent:
        """The body of its FORMAT_DESCRIPTION."""
        assert isinstance(self.first.body, FormatDescriptionEvent), "look() saw to it"
        return self.first.body

    @property
    def fingerprint(self) -> str:
        """Tells it from another file of its name: the checksum of its first event."""
        return fingerprint(self.first)


def look(paths: Sequence[str], keys: KeyRing | None) -> list[SourceFile]:
    """Look at the head of each file.

    Raises:
        CodecError: If one is no binlog, or is encrypted and its key is not given.
        StoreError: If one cannot be read.
        ConfigError: If standard input is one, one is given twice, or they are of both flavors.
    """
    files = [_look(path, keys) for path in paths]
    _check_each_once(files)
    flavors = {file.done.flavor for file in files}
    if len(flavors) > 1:
        raise ConfigError(
            "some files are MariaDB's and some MySQL's, so they are not one log",
            key="FILE",
            hint="route those of each server into a directory of their own",
        )
    return files


def _check_each_once(files: Sequence[SourceFile]) -> None:
    """Refuse a file that is given twice: a run that goes on could not tell how far it is."""
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        before = seen.get((file.name, file.fingerprint))
        if before is not None:
            same = "is given twice" if before == file.path else f"is the same file as {before}"
            raise ConfigError(f"{file.path} {same}", key="FILE", hint="name each file once")
        seen[file.name, file.fingerprint] = file.path


def _look(path: str, keys: KeyRing | None) -> SourceFile:
    if path == STDIN:
        raise ConfigError(
            "standard input cannot be routed, since files are read twice",
            key="FILE",
            hint="write it into a file first",
        )
    events = _head(path, keys)
    first = next(events, None)
    if first is None or not isinstance(first.body, FormatDescriptionEvent):
        found = "nothing" if first is None else first.header.type_name
        raise CodecError(
            f"FORMAT_DESCRIPTION is expected, {found} is there",
            hint="name a binlog file from its beginning",
        ).at(path, len(MAGIC))
    done: Position = nothing_done(first.body.format.flavor.value)
    is_encrypted = False
    for event in events:
        if isinstance(event.body, GtidListEvent | PreviousGtidsEvent):
            done = event.body.position
            break
        is_encrypted |= event.header.type_code == EventType.START_ENCRYPTION
        if event.header.type_code not in _BETWEEN:
            break
    return SourceFile(
        path=path,
        name=base_name(path),
        first=first,
        done=done,
        is_encrypted=is_encrypted,
        size_bytes=Path(path).stat().st_size,
    )


def _head(path: str, keys: KeyRing | None) -> Iterator[Event]:
    """The first events; damage behind the first is told when it is come to."""
    events = walk(open_chunks(path), file=path, keys=keys)
    yield next(events)
    try:
        yield from events
    except UnsupportedError:
        raise  # no key, or a kind of log that nobody reads
    except CodecError:
        return
