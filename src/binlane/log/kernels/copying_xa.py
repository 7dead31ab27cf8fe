"""XA transactions in the groups that a binlog gets as bytes: which are known, and what becomes of them."""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.layout import (
    EVENT_BITMAP,
    EVENT_END,
    EVENT_MAP,
    EVENT_OFFSET,
    EVENT_TYPE,
    GROUP_END,
    GROUP_FIRST,
)
from binlane.log.kernels.memory import Bytes
from binlane.log.kernels.text_shapes import Numbers, Run, Texts, text_at

View = tuple[Bytes, Numbers, Numbers, Numbers, Bytes]
"""A binlog's treatment of each table, as bits; its verdict on each text; the state of each XA
transaction of the run in it; the bodies that were made for events of the run, and their bytes."""
_HEADER: Final = 19
_XA_VERB: Final = 3
_COMMIT: Final = 67


@register_jitable
def finish_xa(run: Run, event: int, view: View) -> int:
    """Decide on an XA COMMIT or XA ROLLBACK: 1 if it stays, 0 if not, -1 for the reference."""
    data, events, _, _ = run
    state = view[2][lay.XA_STATE, events[EVENT_BITMAP, event]]
    if state == lay.XA_PREPARED:
        return 1
    if state == lay.XA_UNCLEAR:
        return -1
    end = int(events[EVENT_END, event])
    text = text_at(data, int(events[EVENT_OFFSET, event]) + _HEADER, end)
    return -1 if state != lay.XA_PASSED and data[text + _XA_VERB] == _COMMIT else 0


@register_jitable
def is_known_xa(run: Run, event: int, view: View, texts: Texts) -> bool:
    """True if a statement on an XA transaction is one that the kernel may decide on."""
    _, events, _, _ = run
    number = events[EVENT_MAP, event]
    if number < 0 or texts[1][lay.TEXT_KIND, number] != lay.XA or not view[2].shape[1]:
        return False
    return bool(view[1][lay.ACTION, number] != lay.BY_REFERENCE)


@register_jitable
def may_prepare(run: Run, event: int, view: View) -> bool:
    """True if the kernel may decide on an XA transaction that is prepared."""
    number, states = run[1][EVENT_BITMAP, event], view[2]
    if number == lay.NO_XA or not states.shape[1]:
        return bool(states.shape[1])
    state = states[lay.XA_STATE, number]
    return bool(state in (lay.XA_UNKNOWN, lay.XA_PASSED))


@register_jitable
def _names_kept(run: Run, first: int, end: int, keep: Bytes) -> bool:
    """True if a group maps a table whose rows a binlog has."""
    _, events, _, roles = run
    for event in range(first, end):
        is_map = roles[events[EVENT_TYPE, event]] == lay.MAP
        if is_map and keep[events[EVENT_MAP, event]] & lay.KEEP:
            return True
    return False


@register_jitable
def note_xa(run: Run, group: int, view: View, texts: Texts, stays: int) -> None:
    """Note the state of the XA transaction that a group prepares or finishes."""
    _, events, groups, roles = run
    states = view[2]
    first, end = groups[GROUP_FIRST, group], groups[GROUP_END, group]
    for event in range(first, end):
        role, text = roles[events[EVENT_TYPE, event]], events[EVENT_MAP, event]
        number = events[EVENT_BITMAP, event]
        if role == lay.QUERY and text >= 0 and texts[1][lay.TEXT_KIND, text] == lay.XA:
            if number != lay.NO_XA:
                states[lay.XA_STATE, number] = lay.XA_UNKNOWN
        elif role == lay.XA_PREPARE and number != lay.NO_XA:
            states[lay.XA_STATE, number] = lay.XA_PREPARED
            if not stays:
                is_inside = _names_kept(run, first, end, view[0])
                states[lay.XA_STATE, number] = lay.XA_INSIDE if is_inside else lay.XA_PASSED
                states[lay.XA_GROUP, number] = group
