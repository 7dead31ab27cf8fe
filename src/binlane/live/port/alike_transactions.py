"""Transactions whose writes are known: what the writes leave behind, and the plan of their end.

A write of a known shape leaves its events in the transaction's caches, and the bytes of its texts' events here.
The plan of the first transaction with such a write is made by the model, and what the write has in it is kept
as bytes. The plan of another transaction is put together from what its writes have, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from binlane.live.gateway.judge import PlanPiece
from binlane.live.port.context_use import ContextUse
from binlane.live.port.group_planning import GroupPlanning, WaitingWrite
from binlane.live.port.group_tracking import UnderWay
from binlane.log.codec.types import EventType
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, TextPart, basis_of
from binlane.statements.session.log_events import Body
from binlane.statements.session.plan_bytes import (
    EVENT_HEAD,
    EncodedPart,
    EncodedPlans,
    encode_beginning,
    encode_pieces,
    encode_plans,
    encode_section,
    rows_at,
)
from binlane.statements.sql.servers import RowImage

THREAD_BYTES: Final = 4
VALUE_BYTES: Final = 8
QUERY: Final = int(EventType.QUERY)
INSERT_ID_KIND: Final = b"\x02"
_INTVAR: Final = int(EventType.INTVAR)
TO_BE_CHOSEN: Final = EncodedEvent(_INTVAR, INSERT_ID_KIND + bytes(VALUE_BYTES))
_PIECES_MAX: Final = 1_024
"""Writes that a statement which ends transactions keeps."""
_LENGTH: Final = Struct("<H")
_ROWS: Final = Struct("<I")
_EVENT: Final = Struct("<BH")
_VALUE_HEAD: Final = EVENT_HEAD.pack(_INTVAR, 0, 1 + VALUE_BYTES) + INSERT_ID_KIND


class TextEvent(NamedTuple):
    """Event of a text that differs in other statements.

    Attributes:
        head: Bytes of the event before the text, behind the session's thread.
        flags: Flags in the header of the event.
        has_insert_id: True if an event with an AUTO_INCREMENT value stands before it.
    """

    head: bytes
    flags: int
    has_insert_id: bool

    @classmethod
    def of(cls, events: Sequence[EncodedEvent], text: str) -> TextEvent | None:
        """Find a text in events, if nothing is around it but an AUTO_INCREMENT value to come."""
        *values, event = events
        query = text.encode("utf-8", "surrogateescape")
        if event.type_code != QUERY or not event.body.endswith(query):
            return None
        if values not in ([], [TO_BE_CHOSEN]):
            return None
        head = event.body[THREAD_BYTES : len(event.body) - len(query)]
        return cls(head, event.flags, bool(values))


class WaitingTemplate(NamedTuple):
    """A write in a transaction, as sessions in one context send it.

    Attributes:
        use: Use that the write makes of its context.
        part: The first such write, as binlogs have it as text; None where none has it so.
        event: Event of the text; None where no binlog has the text.
    """

    use: ContextUse
    part: TextPart | None
    event: TextEvent | None

    @classmethod
    def of(
        cls,
        use: ContextUse,
        texts: Sequence[tuple[Body, ...]],
        one: UnderWay,
        planning: GroupPlanning,
    ) -> WaitingTemplate | None:
        """Find what binlogs have of a write as text; None where that is more than one text.

        Args:
            use: Use that the write makes of its context.
            texts: What the write leaves in transaction caches as texts, each once.
            one: The write, with its context.
            planning: The plans of its transaction.
        """
        if not texts:
            return cls(use, None, None)
        parts = None
        if len(texts) == 1:
            parts = planning.parts([TextPart(section=0, number=one.number, bodies=texts[0])])
        if not parts:
            return None
        (part,) = parts
        assert isinstance(part, TextPart), "it was given"
        event = TextEvent.of(part.events, one.text)
        return None if event is None else cls(use, part, event)

    def events(self, event: bytes, insert_id: int) -> bytes:
        """Return the events of a write whose reply is known.

        Args:
            event: Event with the write's text.
            insert_id: First AUTO_INCREMENT value that the server chose; 0 for none.
        """
        if self.event is None or not self.event.has_insert_id:
            return event
        return b"".join((_VALUE_HEAD, insert_id.to_bytes(VALUE_BYTES, "little"), event))


class WritePiece(NamedTuple):
    """The part of a write in the plan of its transaction's group, wherever the write stands there.

    Attributes:
        section: Bytes of the rows that the source logs.
        names: Binlogs that have the write as text; all others of the plan have its rows.
        text: Bytes of the text's part without its events; None where no binlog has the text.
    """

    section: bytes
    names: frozenset[str]
    text: EncodedPart | None


class TransactionEnd:
    """The plans of all transactions that a statement ends, put together from what their writes have there.

    What a write has in a plan does not depend on the others: its rows are a section of their own, and each
    binlog has its text, or its rows where the binlog has another text. That is what the model says of a
    transaction that waits as a whole (`GroupFitting`), and each plan of the model in which a write comes for
    the first time is compared with the one put together. If they differ none is put together any more.

    Args:
        definitions: Definitions of the binlogs, in their order.
    """

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._bases = {one.name: basis_of(one) for one in definitions}
        self._pieces: dict[object, WritePiece] = {}
        # Binlogs that had all of a transaction as text, and ended it as the source did.
        self._with_texts_alone: set[str] = set()
        self._is_known = True

    def learn(self, plan: GroupPlan, writes: Sequence[WaitingWrite]) -> bool:
        """Take in the model's plan of a transaction; False where plans cannot be put together.

        Args:
            plan: The plan of the transaction, of which each write has a section.
            writes: All writes of the transaction.
        """
        if not self._is_known:
            return False
        if len(self._pieces) >= _PIECES_MAX:
            self._pieces.clear()
        found = _pieces(plan, writes)
        self._is_known = found is not None and all(
            self._pieces.setdefault(template, piece) == piece for template, piece in found
        )
        if self._is_known:
            self._with_texts_alone.update(
                name
                for name, parts in plan.binlogs.items()
                if all(isinstance(part, TextPart) for part in parts)
            )
            made = self.filled(writes)
            self._is_known = made is not None and made.encoded == encode_plans((plan,))
        return self._is_known

    @property
    def is_known(self) -> bool:
        """True if plans are put together."""
        return self._is_known

    def piece(self, template: object, event: TextEvent | None) -> PlanPiece | None:
        """Give what a write has in plans in which all binlogs that have a text have those of all writes.

        Args:
            template: Template by which the write was sent.
            event: Event of the write's text.

        Returns:
            None where no such plan is put together.
        """
        piece = self._pieces.get(template)
        if not self._is_known or piece is None or piece.text is None or event is None:
            return None
        names = tuple([name for name in self._bases if name in piece.names])
        if not piece.names <= self._with_texts_alone:
            return None
        bases = tuple([(name, self._bases[name]) for name in names])
        behind, value = piece.text.behind, _VALUE_HEAD if event.has_insert_id else b""
        of_write = (
            *(_ROWS.pack(len(piece.section)), piece.section, piece.text.kind),
            *(_LENGTH.pack(len(behind)), behind, _LENGTH.pack(len(value)), value),
            *(_EVENT.pack(QUERY, event.flags), _LENGTH.pack(len(event.head)), event.head),
        )
        return PlanPiece(encode_beginning(names, bases), b"".join(of_write))

    def filled(self, writes: Sequence[WaitingWrite]) -> EncodedPlans | None:
        """Return the plan of a transaction, by its writes; None where the model has to make it."""
        if not self._is_known:
            return None
        known, pieces = self._pieces, []
        for _, template, *_ in writes:
            piece = known.get(template)
            if piece is None:
                return None
            pieces.append(piece)
        # Binlogs mostly have the same: what several have stands there once.
        lists: dict[tuple[bool, ...], int] = {}
        names: list[str] = []
        numbers: list[int] = []
        for name in self._bases:
            are_texts = tuple([name in piece.names for piece in pieces])
            if True not in are_texts:
                continue
            if False not in are_texts and name not in self._with_texts_alone:
                return None
            names.append(name)
            numbers.append(lists.setdefault(are_texts, len(lists)))
        parts = [
            [
                (piece.text.at(place) + write.events)
                if is_text and piece.text is not None
                else rows_at(place)
                for place, (is_text, piece, write) in enumerate(
                    zip(are_texts, pieces, writes, strict=True)
                )
            ]
            for are_texts in lists
        ]
        bases = tuple([(name, self._bases[name]) for name in names])
        sections = [piece.section for piece in pieces]
        return encode_pieces(tuple(names), tuple(numbers), bases, sections, parts)


def piece_alone(
    definitions: Sequence[Definition], plan: GroupPlan, event: TextEvent
) -> PlanPiece | None:
    """Give what a write with autocommit has in the plan of its group, which ends with it.

    Args:
        definitions: Definitions of the binlogs, in their order.
        plan: Plan of the group, which has the write's text in some binlog.
        event: Event of that text as plans have it.

    Returns:
        None where the plan is not put together, as of `TransactionEnd.piece`.
    """
    (part, *_) = (part for parts in plan.binlogs.values() for part in parts)
    if not isinstance(part, TextPart):
        return None
    events = b"".join(
        EVENT_HEAD.pack(kind, flags, len(body)) + body for kind, body, flags in part.events
    )
    end, write = TransactionEnd(definitions), WaitingWrite(0, event, events, text="", version=None)
    return end.piece(event, event) if end.learn(plan, (write,)) else None


def _pieces(
    plan: GroupPlan, writes: Sequence[WaitingWrite]
) -> list[tuple[object, WritePiece]] | None:
    """Find what each write of a transaction has in its plan; None where that is not all there is."""
    places = list(range(len(writes)))
    if plan.ends or len(plan.sections) != len(writes) or plan.image is not RowImage.FULL:
        return None
    if any([part.section for part in parts] != places for parts in plan.binlogs.values()):
        return None
    found: list[tuple[object, WritePiece]] = []
    for place, write in enumerate(writes):
        of_write = {name: parts[place] for name, parts in plan.binlogs.items()}
        texts = {name: part for name, part in of_write.items() if isinstance(part, TextPart)}
        distinct = set(texts.values())
        if len(distinct) > 1:
            return None
        text = EncodedPart.of(distinct.pop()) if distinct else None
        section = encode_section(plan.sections[place])
        found.append((write.template, WritePiece(section, frozenset(texts), text)))
    return found
