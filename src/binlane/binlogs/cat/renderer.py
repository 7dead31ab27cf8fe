"""The interface that every output form of a log implements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from binlane.log.codec.event import Event


class Renderer(Protocol):
    """Gives the lines of a run of events, in order; lines have no line ends."""

    def head(self) -> Iterable[str]:
        """The lines before the first event."""
        ...

    def lines(self, event: Event, *, file: str) -> Iterator[str]:
        """The lines of one event.

        Args:
            event: The next event; events inside a compressed transaction follow their carrier.
            file: Base name of its file.

        Raises:
            CodecError: If the event, or a row in it, cannot be rendered.
        """
        ...

    def finish(self) -> Iterator[str]:
        """The lines behind the last event."""
        ...


@runtime_checkable
class OpensFiles(Protocol):
    """A renderer that prints lines even for files without printed events."""

    def open(self, event: Event, *, file: str) -> Iterator[str]:
        """The lines before the first event of a file.

        Args:
            event: FORMAT_DESCRIPTION of the file, which is not printed.
            file: Base name of the file.
        """
        ...


@runtime_checkable
class HoldsGroups(Protocol):
    """A renderer whose output is wrong where an event group is cut off by damage."""

    def cut(self) -> Iterator[str]:
        """Return the lines that undo the printed part of the group, and forget its pending part."""
        ...
