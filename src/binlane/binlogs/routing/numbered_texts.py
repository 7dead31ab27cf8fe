"""Shapes of texts, contexts of brackets and shapes of payloads, by number, as kernels look them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from binlane.binlogs.routing.payload_shapes import Shape
from binlane.binlogs.routing.texts import SHAPES_MAX
from binlane.log.codec.event import Event
from binlane.log.grouping.scanner import Numbers, Small
from binlane.log.grouping.window import PADDING, Bytes
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.load import kernels

_Array = TypeVar("_Array", Bytes, Small)

CONTEXTS: Final = (lay.CONTEXT, lay.SAVEPOINT, lay.XA)
"""Kinds of texts that concern no table: brackets, statements on savepoints and XA transactions."""

_JUDGED: Final = (lay.STATEMENT, lay.PAYLOAD)
_SLOTS: Final = 4 * SHAPES_MAX


class NumberedTexts:
    """Shapes of texts and contexts of brackets by number, in arrays that the kernels look into.

    Attributes:
        table: The facts of each text, a column each.
        arena: Bytes of the texts and of contexts that stand in for others.
        needs: Numbers of the names that texts have without a database.
        is_told: True for each statement that a session logged as such, by its number.
        payloads: The first payload of each shape, by its number.
        slots: Numbers of the texts by hash.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a log whose texts are all different must not fill the memory."""
        self.slots: Numbers = np.full(_SLOTS, -1, np.int64)
        self.table: Numbers = np.zeros((lay.TEXT_SIZE, SHAPES_MAX), np.int64)
        self.is_told = np.zeros(SHAPES_MAX, np.bool_)
        self.payloads: dict[int, Event] = {}
        self._numbers: dict[Shape, int] = {}
        self._seen = 1  # the one that is too long, which nobody keeps
        self.arena: Bytes = np.zeros(1 << 16, np.uint8)
        self._arena_end = 0
        self.needs: Small = np.zeros(1 << 10, np.int32)
        self._needs_end = 0

    @property
    def is_full(self) -> bool:
        """True if no further text can be learned."""
        return self._seen == SHAPES_MAX

    @property
    def contexts(self) -> Iterator[tuple[int, bytes]]:
        """Numbers and bytes of the contexts of brackets, and of statements on savepoints."""
        for number in np.flatnonzero(np.isin(self.table[lay.TEXT_KIND], CONTEXTS)):
            yield int(number), self.key(int(number))

    def key(self, number: int) -> bytes:
        """The bytes of a text by which kernels find it."""
        start, length = (int(self.table[row, number]) for row in (lay.TEXT_START, lay.TEXT_LENGTH))
        return self.arena[start : start + length].tobytes()

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """True for the number of whatever is judged anew when a binlog's memory changes."""
        found: npt.NDArray[np.bool_] = np.isin(self.table[lay.TEXT_KIND], _JUDGED)
        return found

    def add(self, key: bytes, kind: int) -> int:
        """Take a text and return its number; `make_known` lets kernels find it."""
        number = self._seen
        self._seen += 1
        self.table[lay.TEXT_START, number] = self.keep(key)
        self.table[lay.TEXT_LENGTH, number] = len(key)
        self.table[lay.TEXT_KIND, number] = kind
        return number

    def packed_number(self, shape: Shape) -> int | None:
        """The number of the shape of a payload or a compressed statement; None if it is not known."""
        return self._numbers.get(shape)

    def add_packed(self, shape: Shape, key: bytes, kind: int) -> int:
        """Take a shape that kernels do not look for, and return its number."""
        number = self._numbers[shape] = self.add(key, kind)
        return number

    def add_payload(self, shape: Shape, event: Event) -> int:
        """Take a payload, the first of its shape, and return the shape's number."""
        number = self.add_packed(shape, b"", lay.PAYLOAD)
        self.payloads[number] = event
        return number

    def arrays(self, names: Small) -> tuple[Numbers, Numbers, Bytes, Small, Small]:
        """The arrays as kernels take them, with the number of each table's name."""
        return self.slots, self.table, self.arena, self.needs, names

    def make_known(self, number: int, scratch: Bytes, names: Small) -> None:
        """Let kernels find a text, whose key stands in `scratch`."""
        length, kind = (int(self.table[row, number]) for row in (lay.TEXT_LENGTH, lay.TEXT_KIND))
        found = kernels().find_text(scratch, 0, length, kind, self.arrays(names))
        assert found < 0, "a text is learned once"
        self.slots[-1 - found] = number

    def keep(self, data: bytes) -> int:
        """Keep bytes for the kernels and return their place."""
        start, end = self._arena_end, self._arena_end + len(data)
        while end + PADDING > self.arena.shape[0]:
            self.arena = larger(self.arena)
        self.arena[start:end] = np.frombuffer(data, np.uint8)
        self._arena_end = end
        return start

    def keep_needs(self, number: int, needs: Sequence[int]) -> None:
        """Keep the numbers of the names that a text has without a database."""
        while self._needs_end + len(needs) > self.needs.shape[0]:
            self.needs = larger(self.needs)
        end = self._needs_end + len(needs)
        self.needs[self._needs_end : end] = needs
        self.table[[lay.NEEDS_START, lay.NEEDS_COUNT], number] = self._needs_end, len(needs)
        self._needs_end = end


def larger(array: _Array) -> _Array:
    """Copy an array of numbers into one with twice the room."""
    return np.concatenate([array, np.zeros_like(array)])
