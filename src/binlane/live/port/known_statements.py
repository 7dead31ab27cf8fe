"""Statement templates as a session of the port sends them: the plan of a group as bytes, with holes.

A template that `PlanningSession.unchanging` gives leaves the session as it is, and makes one group, or none.
For its first statement the plan is made by the model, and encoded, in full. Of those behind it two things
differ: the text, and the AUTO_INCREMENT value that goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from binlane.live.port.context_use import ContextUse
from binlane.live.port.context_values import ContextValues
from binlane.log.codec.types import EventType
from binlane.statements.scope.definition import Definition
from binlane.statements.session.group_plan import EncodedEvent, GroupPlan, Part, TextPart
from binlane.statements.session.plan_bytes import EVENT_HEAD, EncodedPlans, encode_plans
from binlane.statements.session.report import StatementPlan

_QUERY: Final = int(EventType.QUERY)
_INTVAR: Final = int(EventType.INTVAR)
_INSERT_ID_KIND: Final = b"\x02"
_VALUE_BYTES: Final = 8
_TO_BE_CHOSEN: Final = EncodedEvent(_INTVAR, _INSERT_ID_KIND + bytes(_VALUE_BYTES))


class TextHole(NamedTuple):
    """Place of a text in an encoded plan.

    Attributes:
        part: The text's part, with the event of the first text.
        head: Bytes of the text's event before the text.
        has_insert_id: True if an event with an AUTO_INCREMENT value stands before the text's event.
        others: Parts of binlogs that have something else than the text.
        before: The plan's bytes up to the text's event, or to the value before that.
        after: The plan's bytes behind the text's event.
    """

    part: TextPart
    head: bytes
    has_insert_id: bool
    others: Mapping[str, tuple[Part, ...]]
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True, eq=False)
class SentTemplate:
    """A statement template as one session sends it, under circumstances that are compared by identity.

    Attributes:
        definitions: Definitions of the binlogs at that time.
        version: Version of the source's objects.
        values: The session's variables, as last read.
        plan: Plan of the first statement's group; None for statements of which no binlog has anything.
        hole: Place of the text that differs in other statements; None where no binlog has the text, so that
            nothing differs.
        is_update: True if a reply tells in words how many rows a statement changed.
    """

    definitions: tuple[Definition, ...]
    version: object
    values: ContextValues | None
    plan: GroupPlan | None = None
    hole: TextHole | None = None
    is_update: bool = False

    @property
    def has_insert_id(self) -> bool:
        """True if an AUTO_INCREMENT value stands before the text."""
        return self.hole is not None and self.hole.has_insert_id

    def with_write(
        self, planned: StatementPlan, plan: GroupPlan, text: str, use: ContextUse
    ) -> SentTemplate | None:
        """Return the template with the plan of its first statement; None where more than the text differs.

        Args:
            planned: The model's account of the statement.
            plan: Plan of the statement's group, before the statement is sent.
            text: Text of the client's statement.
            use: Use that the statement makes of its context.
        """
        if not _is_plain(planned, plan, use):
            return None
        texts = {
            parts: None
            for parts in plan.binlogs.values()
            if any(isinstance(part, TextPart) for part in parts)
        }
        if not texts:
            return None if planned.has_texts else replace(self, plan=plan)
        (parts, *more) = texts
        hole = None if more or len(parts) > 1 else _hole(plan, parts, text)
        if hole is None:
            return None
        template = replace(self, plan=plan, hole=hole)
        filled = template.filled(text)
        is_right = (
            filled is not None
            and filled.encoded == encode_plans((plan,))
            and list(filled) == [plan]
        )
        return template if is_right else None

    def filled(self, text: str) -> EncodedPlans | None:
        """Return the plan of another statement; None where the plan has to be made.

        Args:
            text: Text of the client's statement.
        """
        hole, plan = self.hole, self.plan
        assert plan is not None, "a binlog has something of the statements"
        if hole is None:
            return EncodedPlans(encode_plans((plan,)), 1, lambda: (plan,))
        if text.isascii():
            body = hole.head + text.encode()
        elif self.values is None or not self.values.is_text_as_it_came:
            return None
        else:
            body = hole.head + text.encode("utf-8", "surrogateescape")
        head = EVENT_HEAD.pack(_QUERY, hole.part.events[-1].flags, len(body))
        value = _TO_BE_CHOSEN.body[1:] if hole.has_insert_id else b""
        encoded = b"".join((hole.before, value, head, body, hole.after))
        return EncodedPlans(encoded, 1, partial(_filled, plan, hole, body, value))

    def with_insert_id(self, plans: EncodedPlans, insert_id: int) -> EncodedPlans:
        """Return a plan of `filled` with the AUTO_INCREMENT value that stands before its text.

        Args:
            plans: Plan that `filled` gave for a template with such a value.
            insert_id: The first value that the statement was given.
        """
        hole, plan, value = self.hole, self.plan, insert_id.to_bytes(_VALUE_BYTES, "little")
        assert hole is not None, "the value stands before a text"
        assert plan is not None, "the text is in a plan"
        behind = plans.encoded[len(hole.before) + _VALUE_BYTES :]
        encoded = b"".join((hole.before, value, behind))
        return EncodedPlans(encoded, 1, partial(_with_value, plan, hole, behind, value))


def _with_value(plan: GroupPlan, hole: TextHole, behind: bytes, value: bytes) -> tuple[GroupPlan]:
    """Return a plan with the text that stands in encoded bytes behind the place of the value."""
    return _filled(plan, hole, behind[EVENT_HEAD.size : len(behind) - len(hole.after)], value)


def _filled(plan: GroupPlan, hole: TextHole, body: bytes, value: bytes) -> tuple[GroupPlan]:
    """Return a plan with another text, and with the AUTO_INCREMENT value before that."""
    part = hole.part
    event = EncodedEvent(_QUERY, body, part.events[-1].flags)
    events: tuple[EncodedEvent, ...] = (event,)
    if value:
        events = (EncodedEvent(_INTVAR, _INSERT_ID_KIND + value), event)
    # In a third of the time of `_replace`.
    parts = (TextPart(events, *part[1:]),)
    binlogs: dict[str, tuple[Part, ...]] = dict.fromkeys(plan.binlogs, parts)
    if hole.others:
        binlogs |= hole.others
    return (replace(plan, binlogs=binlogs),)


def _hole(plan: GroupPlan, parts: tuple[Part, ...], text: str) -> TextHole | None:
    """Find a text's place in a plan, if nothing is around it but an AUTO_INCREMENT value to come."""
    (part,) = parts
    assert isinstance(part, TextPart), "it was looked at"
    *values, event = part.events
    query = text.encode("utf-8", "surrogateescape")
    if event.type_code != _QUERY or not event.body.endswith(query) or part.section is None:
        return None
    if values not in ([], [_TO_BE_CHOSEN]) or part.timestamp or part.uses_temporary:
        return None
    head = EVENT_HEAD.pack(_QUERY, event.flags, len(event.body))
    before, _, after = encode_plans((plan,)).partition(head + event.body)
    return TextHole(
        part=part,
        head=event.body[: len(event.body) - len(query)],
        has_insert_id=bool(values),
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
