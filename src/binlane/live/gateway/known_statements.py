"""Statements that pass without being read, as a kernel knows them, and the places to which they lead.

A text has a form, which is the text without its literals; a prepared statement has the types of its values with
its text. Both have numbers, which are those of all sessions of the process. A transition says that a statement
leads a session from one place to another one, or leaves it where it is; the kernel lets nothing else pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from binlane.live.gateway.judge import SeenStatement
from binlane.log.codec.packets.framing import bytes_of
from binlane.log.kernels.load import kernels
from binlane.log.kernels.passing_layout import (
    ENDS,
    IS_RECORDED,
    NEEDS_ROWS,
    OF_END,
    OF_WRITE,
    PIECE_FIELDS,
    PIECES_MAX,
    PIECES_SIZE,
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
_PIECE: Final = Struct("<II")
_U16: Final = Struct("<H")
_TEXT_MAX: Final = (1 << 16) - 1
_FIRST_PIECE: Final = 8
"""Offset 0 is none."""


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
        piece_places: Places of pieces of plans as kernels read them.
        pieces: Bytes of these pieces as kernels read them.
    """

    def __init__(self) -> None:
        """Begin with no statements."""
        import numpy as np  # noqa: PLC0415 - only kernels need it

        self.texts: Any = np.zeros(TEXTS_SIZE + _PADDING, np.uint8)
        self.table: Any = np.zeros(TRANSITIONS_MAX * TRANSITION_FIELDS, np.int64)
        self.transitions: Transitions = {}
        self.piece_places: Any = np.zeros(PIECES_MAX * PIECE_FIELDS, np.int64)
        self.pieces: Any = np.zeros(PIECES_SIZE + _PADDING, np.uint8)
        self._pieces_end = _FIRST_PIECE
        self._plan_beginnings: dict[bytes, int] = {}
        self._array = np.frombuffer
        self._samples: dict[int, str] = {}
        self._places: dict[object, int] = {}
        self._beginnings: set[int] = set()
        self._prepared: dict[tuple[str, bytes, tuple[str, ...]], int] = {}
        self._texts_of_prepared: dict[int, Sequence[str]] = {}
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

    def number_of_prepared(self, text: str, types: bytes, pieces: Sequence[str]) -> int:
        """Give the number of a prepared statement.

        Args:
            text: Text of the statement as it was prepared.
            types: Types of its values, as clients tell them.
            pieces: Text before, between and behind the values; empty if that is not known.
        """
        key = (text, types, tuple(pieces))
        number = self._prepared.get(key)
        if number is None:
            self._make_room(len(self._prepared))
            number = self._last_prepared = self._last_prepared + 1
            self._prepared[key] = number
            self._texts_of_prepared[number] = key[2]
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

    def add(self, seen: SeenStatement, number: int, to: int) -> bool:
        """Let a statement pass that leads from one place to another.

        Args:
            seen: The statement, as its judge tells of it.
            number: Number of the statement among those of all sessions.
            to: Number of the place behind the statement.

        Returns:
            True if it passes; there may be too many.
        """
        before = self.place_of(seen.before)
        known = self.transitions.get((before, number))
        if known is not None and known == (to, seen.effect):
            return True
        self._make_room(len(self.transitions))
        demands = 0
        if seen.effect is not None:
            demands = IS_RECORDED | seen.needs_rows * NEEDS_ROWS
            demands |= seen.tells_rows * TELLS_ROWS | seen.turns * TURNS
            demands |= ENDS if seen.piece is not None else 0
        at = self._entry(before, number)
        if at < 0:
            return False
        if known is not None:
            # What was known of plans was known of another effect.
            entries = self.piece_places.reshape(-1, PIECE_FIELDS)
            entries[(entries[:, OF_END] == at) | (entries[:, OF_WRITE] == at)] = 0
        self.table[at : at + TRANSITION_FIELDS] = before, number, to, demands
        self.transitions[before, number] = Transition(to, seen.effect)
        self._beginnings.add(before)
        return True

    def _entry(self, place: int, number: int) -> int:
        """Find the entry of a transition, or a free one; -1 for none."""
        first = place * PLACE_FACTOR + number * STATEMENT_FACTOR
        for probe in range(TRANSITION_PROBES):
            at = (first + probe) % TRANSITIONS_MAX * TRANSITION_FIELDS
            there, by = self.table[at : at + 2].tolist()
            if not there or (there, by) == (place, number):
                return at
        return -1

    # Plans ----------------------------------------------------------------------------------------

    def add_pieces(
        self, seen: SeenStatement, number: int, writes: Iterable[tuple[int, int]]
    ) -> None:
        """Let transactions pass as wholes that have such statements, and end by another one.

        Args:
            seen: The statement that ends them, as its judge tells of it.
            number: Number of that statement among those of all sessions.
            writes: Places and numbers of the other statements in such a transaction.
        """
        assert seen.piece is not None, "the statement ends transactions"
        last = self.place_of(seen.before), number
        end = self._entry(*last)
        for place, of_write in (*writes, last):
            transition = self.transitions.get((place, of_write))
            if transition is None or transition.effect is None:
                continue
            entry = self._entry(place, of_write)
            at = self._place_of_piece(end, entry)
            piece = None if at < 0 else seen.piece(transition.effect)
            text = self._encoded_text(of_write)
            if piece is None or (piece.beginning and text is None):
                continue
            begins = self._keep_beginning(piece.beginning) if piece.beginning else 0
            data = piece.of_write + text if text and begins else b""
            offset = self._keep(_PIECE.pack(_PIECE.size + len(data), max(begins, 0)) + data)
            if begins < 0 or offset < 0:
                self._forget()
                return
            self.piece_places[at : at + PIECE_FIELDS] = end, entry, offset

    def _place_of_piece(self, end: int, write: int) -> int:
        """Find a free place for a piece; -1 if the piece is there already, or there are too many."""
        first = end * PLACE_FACTOR + write * STATEMENT_FACTOR
        for probe in range(TRANSITION_PROBES):
            at = (first + probe) % PIECES_MAX * PIECE_FIELDS
            of_end, of_write, offset = self.piece_places[at : at + PIECE_FIELDS].tolist()
            if not offset:
                return at
            if (of_end, of_write) == (end, write):
                return -1
        return -1

    def _encoded_text(self, number: int) -> bytes | None:
        """Encode a statement's text as pieces have it; None for a text that is not known, or not plain."""
        if number < TEXTS_MAX:
            return _U16.pack(0)
        pieces = [bytes_of(piece) for piece in self._texts_of_prepared.get(number, ())]
        if not pieces or any(len(one) > _TEXT_MAX or not one.isascii() for one in pieces):
            return None
        return _U16.pack(len(pieces)) + b"".join(_U16.pack(len(one)) + one for one in pieces)

    def _keep_beginning(self, beginning: bytes) -> int:
        """Keep the beginning of plans, once; gives its offset, -1 where there is no room."""
        offset = self._plan_beginnings.get(beginning)
        if offset is None:
            offset = self._keep(beginning)
            self._plan_beginnings[beginning] = offset
        return offset

    def _keep(self, data: bytes) -> int:
        """Keep bytes for kernels; gives their offset, -1 where there is no room."""
        begin = self._pieces_end
        if begin + len(data) > PIECES_SIZE:
            return -1
        self.pieces[begin : begin + len(data)] = self._array(data, "u1")
        self._pieces_end += len(data)
        return begin

    def _make_room(self, count: int) -> None:
        """Forget all places, prepared statements and transitions if there are too many of some."""
        if count >= _FULL:
            self._forget()

    def _forget(self) -> None:
        assert self._last_place < _NUMBERS_MAX, "a process makes no more places"
        self.table[:] = 0
        self.piece_places[:] = 0
        self._pieces_end = _FIRST_PIECE
        self._plan_beginnings.clear()
        self._texts_of_prepared.clear()
        self.transitions = {}
        self._places.clear()
        self._beginnings.clear()
        self._prepared.clear()


@cache
def known_statements() -> KnownStatements:
    """The statements of this process."""
    return KnownStatements()
