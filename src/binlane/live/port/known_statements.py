"""Statements of a session of which it has run others that are alike.

What `PlanningSession.unchanging` tells of leaves the session as it is, and makes one group, or none.
For the first one of a kind the plan is made by the model, and encoded, in full. Of those behind it
two things differ: the text, and the AUTO_INCREMENT value that goes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, overload

from binlane.live.port.context_use import ContextUse
from binlane.live.port.context_values import ContextValues
from binlane.log.codec.types import EventType
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_fitting import StatementPlan
from binlane.statements.session.group_plan import EncodedEvent, Generated, GroupPlan, Part, TextPart
from binlane.statements.session.plan_bytes import EVENT_HEAD, encode_plans

_QUERY: Final = int(EventType.QUERY)
_INTVAR: Final = int(EventType.INTVAR)
_INSERT_ID_KIND: Final = b"\x02"
_VALUE_BYTES: Final = 8
_TO_BE_CHOSEN: Final = EncodedEvent(_INTVAR, _INSERT_ID_KIND + bytes(_VALUE_BYTES))


class Circumstances(NamedTuple):
    """Circumstances that decide a statement's plan beside the model's state; all are compared by identity.

    Attributes:
        definitions: Definitions of the binlogs at that time.
        version: Version of the source's objects.
        values: The session's variables, as last read.
    """

    definitions: tuple[Definition, ...]
    version: object
    values: ContextValues | None


class KnownRead(NamedTuple):
    """A SELECT that no binlog has anything of.

    Attributes:
        circumstances: In which it is that.
    """

    circumstances: Circumstances


@dataclass(frozen=True, slots=True, eq=False)
class KnownWrite:
    """A write that makes one group.

    Attributes:
        circumstances: Circumstances in which the write makes one group.
        is_update: True if the write's reply tells in words how many rows it changed.
        plan: Plan of the first such write.
        text: Place of the text that differs in the other writes; None where no binlog has one, so that
            nothing differs.
        has_insert_id: True if an AUTO_INCREMENT value stands before the write's text.
    """

    circumstances: Circumstances
    is_update: bool
    plan: GroupPlan
    text: PlannedText | None
    has_insert_id: bool = field(init=False)

    def __post_init__(self) -> None:
        """Note once if an AUTO_INCREMENT value stands before the text."""
        has_insert_id = self.text is not None and self.text.has_insert_id
        object.__setattr__(self, "has_insert_id", has_insert_id)

    def foreseen(self, text: str) -> Foreseen | None:
        """Give the plan of another such write; None where the plan has to be made.

        Args:
            text: Text of the client's statement.
        """
        planned = self.text
        if planned is None:
            return Foreseen(self, b"")
        if text.isascii():
            return Foreseen(self, planned.head + text.encode())
        values = self.circumstances.values
        if values is None or not values.is_text_as_it_came:
            return None
        return Foreseen(self, planned.head + text.encode("utf-8", "surrogateescape"))


class Foreseen(Sequence[GroupPlan]):
    """The plan of a write that follows a known one; its session has no time to make it.

    Args:
        write: The known write that it is like.
        body: Event of the write's text.
        insert_id: The first AUTO_INCREMENT value that it was given; 0 leaves it to the rows.
    """

    __slots__ = ("_body", "_insert_id", "_plans", "_write")

    def __init__(self, write: KnownWrite, body: bytes, insert_id: int = 0) -> None:
        self._write, self._body, self._insert_id = write, body, insert_id
        self._plans: tuple[GroupPlan] | None = None

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> GroupPlan: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[GroupPlan]: ...

    def __getitem__(self, index: int | slice) -> GroupPlan | Sequence[GroupPlan]:
        if self._plans is None:
            self._plans = (self._plan(),)
        return self._plans[index]

    def with_id(self, insert_id: int) -> Foreseen:
        """The same with the first value that it was given."""
        return Foreseen(self._write, self._body, insert_id)

    def _plan(self) -> GroupPlan:
        plan, text = self._write.plan, self._write.text
        if text is None:
            return plan
        event = EncodedEvent(_QUERY, self._body, text.flags)
        events: tuple[EncodedEvent, ...] = (event,)
        if text.has_insert_id:
            value = self._insert_id.to_bytes(_VALUE_BYTES, "little")
            events = (EncodedEvent(_INTVAR, _INSERT_ID_KIND + value), event)
        parts = (TextPart(events, text.section, text.generated, is_as_sent=text.is_as_sent),)
        binlogs: dict[str, tuple[Part, ...]] = dict.fromkeys(plan.binlogs, parts)
        if text.others:
            binlogs |= text.others
        return replace(plan, binlogs=binlogs)

    def encoded(self) -> bytes:
        """The bytes of that plan alone, as `encode_plans` gives them."""
        body, text = self._body, self._write.text
        if text is None:
            return encode_plans((self._write.plan,))
        head = EVENT_HEAD.pack(_QUERY, text.flags, len(body))
        if text.has_insert_id:
            value = self._insert_id.to_bytes(_VALUE_BYTES, "little")
            return b"".join((text.before, value, head, body, text.after))
        return b"".join((text.before, head, body, text.after))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedText:
    """Place of a text in a plan.

    Attributes:
        head: Bytes of the text's event before the text.
        flags: Flags of the text's event.
        has_insert_id: True if an event with an AUTO_INCREMENT value stands before the text's event.
        section: Same as in `Text`, like `generated` and `is_as_sent`.
        others: Parts of binlogs that have something else than the text.
        before: The plan's bytes up to the text's event, or to the value before that.
        after: The plan's bytes behind the text's event.
    """

    head: bytes
    flags: int
    has_insert_id: bool
    section: int
    generated: Generated | None
    is_as_sent: bool
    others: dict[str, tuple[Part, ...]]
    before: bytes
    after: bytes


def known_write(
    planned: StatementPlan,
    plan: GroupPlan,
    text: str,
    use: ContextUse,
    circumstances: Circumstances,
    *,
    is_update: bool,
) -> KnownWrite | None:
    """Give the common part of all writes that are like one; None where more than their text differs.

    Args:
        planned: The model's account of the write.
        plan: Plan of the write's group, before it is sent.
        text: Text of the client's statement.
        use: Use that the write makes of its context.
        circumstances: Circumstances in which the write runs.
        is_update: True if the write is an UPDATE.
    """
    if not _is_plain(planned, plan, use):
        return None
    texts = {
        parts: None
        for parts in plan.binlogs.values()
        if any(isinstance(part, TextPart) for part in parts)
    }
    if not texts:
        return None if planned.has_texts else KnownWrite(circumstances, is_update, plan, None)
    (parts, *more) = texts
    if more or len(parts) > 1:
        return None
    found = _planned_text(plan, parts, text)
    if found is None:
        return None
    write = KnownWrite(circumstances, is_update, plan, found)
    foreseen = write.foreseen(text)
    is_right = (
        foreseen is not None and foreseen[0] == plan and foreseen.encoded() == encode_plans((plan,))
    )
    return write if is_right else None


def _planned_text(plan: GroupPlan, parts: tuple[Part, ...], text: str) -> PlannedText | None:
    """Find a text's place in a plan, if nothing is around it but an AUTO_INCREMENT value to come."""
    (part,) = parts
    assert isinstance(part, TextPart), "it was looked at"
    *values, event = part.events
    query = text.encode("utf-8", "surrogateescape")
    if event.type_code != _QUERY or not event.body.endswith(query) or part.section is None:
        return None
    if values not in ([], [_TO_BE_CHOSEN]):
        return None
    head = EVENT_HEAD.pack(_QUERY, event.flags, len(event.body))
    before, _, after = encode_plans((plan,)).partition(head + event.body)
    return PlannedText(
        head=event.body[: len(event.body) - len(query)],
        flags=event.flags,
        has_insert_id=bool(values),
        section=part.section,
        generated=part.generated,
        is_as_sent=part.is_as_sent,
        others={name: one for name, one in plan.binlogs.items() if one != parts},
        before=before[:-_VALUE_BYTES] if values else before,
        after=after,
    )


def _is_plain(planned: StatementPlan, plan: GroupPlan, use: ContextUse) -> bool:
    """True if a write makes the planned group, and nothing of its context is asked for."""
    return (
        len(planned.groups) == 1
        and planned.last == planned.number
        and planned.mark is None
        and not planned.result.notes
        and plan.binlogs.keys() == planned.groups[0].binlogs.keys()
        and not any(plan.ends.values())
        and not (
            use.is_program
            or use.may_skip_rows
            or use.changes_session
            or use.needs_microseconds
            or use.reads_diagnostics
            or use.routines
        )
    )
