"""Statements that pass without being read, as a kernel knows them, and the places to which they lead.

A text has a form, which is the text without its literals; a prepared statement has the types of its values with
its text. Both have numbers, which are those of all sessions of the process. A transition says that a statement
leads a session from one place to another one, or leaves it where it is; the kernel lets nothing else pass.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from binlane.live.gateway.judge import SeenStatement
from binlane.log.kernels.load import kernels
from binlane.log.kernels.passing_layout import (
    IS_RECORDED,
    NEEDS_ROWS,
    PLACE_FACTOR,
    STATEMENT_FACTOR,
    TELLS_ROWS,
    TEXTS_MAX,
    TEXTS_SIZE,
    TRANSITION_FIELDS,
    TRANSITION_PROBES,
    TRANSITIONS_MAX,
    TURNS,
)

_PADDING: Final = 64
_FULL: Final = TRANSITIONS_MAX // 2
_NUMBERS_MAX: Final = 1 << 31


class Transition(NamedTuple):
    """A step of a session by a known statement.

    Attributes:
        to: Number of the place behind the statement.
        effect: Effect of the statement as its judge keeps it; None for a read that leaves all as it is.
    """

    to: int
    effect: object


Transitions = dict[tuple[int, int], Transition]
"""Transitions by the place from which they lead, and the number of the statement."""


class KnownStatements:
    """Known texts, prepared statements and transitions.

    Numbers of places and prepared statements are never given again. When there are too many transitions all are
    forgotten: sessions that pass keep those with which they began, for what was recorded.

    Attributes:
        texts: The forms of texts as kernels read them.
        table: The transitions as kernels read them.
        transitions: The same transitions, with the statements' effects.
    """

    def __init__(self) -> None:
        """Begin with no statements."""
        import numpy as np  # noqa: PLC0415 - only kernels need it

        self.texts: Any = np.zeros(TEXTS_SIZE + _PADDING, np.uint8)
        self.table: Any = np.zeros(TRANSITIONS_MAX * TRANSITION_FIELDS, np.int64)
        self.transitions: Transitions = {}
        self._array = np.frombuffer
        self._samples: dict[int, str] = {}
        self._places: dict[object, int] = {}
        self._beginnings: set[int] = set()
        self._prepared: dict[tuple[str, bytes], int] = {}
        self._last_place, self._last_prepared = 0, TEXTS_MAX - 1

    # Statements -----------------------------------------------------------------------------------

    def number_of(self, query: bytes) -> int:
        """Give the number of a text's form; below 0 for a text that cannot pass, or of which there are too many.

        Args:
            query: The text as it came.
        """
        # Kernels take arrays that can be written to.
        text = self._array(bytearray(query + bytes(_PADDING)), "u1")
        number = int(kernels().keep_text(text, len(query), self.texts))
        if number >= 0 and number not in self._samples:
            self._samples[number] = query.decode("ascii")
        return number

    def sample(self, number: int) -> str:
        """Give a text of a form."""
        return self._samples[number]

    def number_of_prepared(self, text: str, types: bytes) -> int:
        """Give the number of a prepared statement.

        Args:
            text: Text of the statement as it was prepared.
            types: Types of its values, as clients tell them.
        """
        number = self._prepared.get((text, types))
        if number is None:
            self._make_room(len(self._prepared))
            number = self._last_prepared = self._last_prepared + 1
            self._prepared[text, types] = number
        return number

    # Places ---------------------------------------------------------------------------------------

    def place_of(self, key: object) -> int:
        """Give the number of a place, from 1.

        Args:
            key: The place as the judge tells it.
        """
        place = self._places.get(key)
        if place is None:
            self._make_room(len(self._places))
            place = self._last_place = self._last_place + 1
            self._places[key] = place
        return place

    def leads_from(self, place: int) -> bool:
        """True if some statement leads from a place."""
        return place in self._beginnings

    def add(self, seen: SeenStatement, number: int, to: int) -> None:
        """Let a statement pass that leads from one place to another.

        Args:
            seen: The statement, as its judge tells of it.
            number: Number of the statement among those of all sessions.
            to: Number of the place behind the statement.
        """
        before = self.place_of(seen.before)
        known = self.transitions.get((before, number))
        if known is not None and known == (to, seen.effect):
            return
        self._make_room(len(self.transitions))
        demands = 0
        if seen.effect is not None:
            demands = IS_RECORDED | seen.needs_rows * NEEDS_ROWS
            demands |= seen.tells_rows * TELLS_ROWS | seen.turns * TURNS
        first = before * PLACE_FACTOR + number * STATEMENT_FACTOR
        for probe in range(TRANSITION_PROBES):
            at = (first + probe) % TRANSITIONS_MAX * TRANSITION_FIELDS
            there, by = self.table[at : at + 2].tolist()
            if not there or (there, by) == (before, number):
                self.table[at : at + TRANSITION_FIELDS] = before, number, to, demands
                self.transitions[before, number] = Transition(to, seen.effect)
                self._beginnings.add(before)
                return

    def _make_room(self, count: int) -> None:
        """Forget all places, prepared statements and transitions if there are too many of some."""
        if count < _FULL:
            return
        assert self._last_place < _NUMBERS_MAX, "a process makes no more places"
        self.table[:] = 0
        self.transitions = {}
        self._places.clear()
        self._beginnings.clear()
        self._prepared.clear()


@cache
def known_statements() -> KnownStatements:
    """The statements of this process."""
    return KnownStatements()
