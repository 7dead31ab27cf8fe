"""Planned texts of a run's groups → the groups whose texts may not stand in a scope as they are.

Literals decide nothing of that, so that each context and shape of a text is judged once, by `scoped_texts`; here
its number is looked up. Beside the texts count the tables of the group's rows, and MySQL's BEGIN.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import layout
from binlane.log.kernels import route_layout as lay
from binlane.log.kernels.memory import Bytes, copy_bytes
from binlane.log.kernels.text_shapes import TEXTS_TYPE, Texts, find, text_at, write_shape

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Groups = tuple[Bytes, Small, Numbers, Numbers]
"""The bytes of a run, the index of its events, the index of its groups and the facts of these."""

_CONTEXT: Final = 8
"""Bytes of a QUERY's body before its context."""
_HEADER: Final = 19
_QUERY: Final = 2
_MAP: Final = 19
_UNKNOWN: Final = 0


def texts_outside(
    run: Groups,
    planned: tuple[Numbers, Small, Numbers, Bytes],
    texts: Texts,
    known: tuple[Bytes, Bytes],
    results: tuple[Bytes, Numbers],
    state: Numbers,
) -> int:
    """Find the groups with texts that may not stand in a scope as they are, as far as all texts are known.

    Args:
        run: The run of the groups, and the facts of these.
        planned: The groups that are asked for, and each group's form, its events' bodies and their bytes.
        texts: The texts that are known, by their contexts and shapes; MySQL's BEGIN by its context.
        known: 1 for each table in the scope; the verdict on each text that is known.
        results: The first receives the key of a text, and has room for the longest, and padding; the second the numbers
            of the groups.
        state: As of `SCOPED_SIZE`; is moved on.

    Returns:
        1 if a text is not known: the caller moves the state on once it has judged the text; 0 if all is done.
    """
    data, events, groups, _ = run
    numbers, forms, bodies, arena = planned
    inside, verdicts = known
    key, out = results
    while state[lay.SCOPED_NEXT] < len(numbers):
        number = numbers[state[lay.SCOPED_NEXT]]
        first = int(forms[lay.FORM_FIRST, number])
        count = int(forms[lay.FORM_COUNT, number])
        verdict = lay.INSIDE
        if first >= 0 and count != 0:
            begin = groups[layout.GROUP_FIRST, number] + 1
            if state[lay.SCOPED_TEXT] == 0:
                if not _has_tables_inside(run, number, inside):
                    verdict = lay.OUTSIDE
                elif events[layout.EVENT_TYPE, begin] == _QUERY:
                    start = int(events[layout.EVENT_OFFSET, begin]) + _HEADER
                    end = int(events[layout.EVENT_END, begin])
                    verdict = _verdict(data, (start, end, lay.CONTEXT), texts, verdicts, key, state)
            while verdict == lay.INSIDE and state[lay.SCOPED_TEXT] <= count:
                body = first + state[lay.SCOPED_TEXT] - 1
                if state[lay.SCOPED_TEXT] > 0 and bodies[lay.BODY_TYPE, body] == _QUERY:
                    start = int(bodies[lay.BODY_START, body])
                    end = start + int(bodies[lay.BODY_LENGTH, body])
                    verdict = _verdict(
                        arena, (start, end, lay.STATEMENT), texts, verdicts, key, state
                    )
                if verdict == lay.INSIDE:
                    state[lay.SCOPED_TEXT] += 1
        if verdict == _UNKNOWN:
            return 1
        if verdict == lay.OUTSIDE:
            out[state[lay.SCOPED_COUNT]] = number
            state[lay.SCOPED_COUNT] += 1
        state[lay.SCOPED_NEXT] += 1
        state[lay.SCOPED_TEXT] = 0
    return 0


@register_jitable
def _has_tables_inside(run: Groups, number: int, inside: Bytes) -> bool:
    """True if all tables of a group's rows are in the scope, and it ends with what names no database."""
    _, events, groups, facts = run
    if not facts[lay.FACT_BITS, number] & lay.ENDS_WITH_XID:
        return False
    for event in range(groups[layout.GROUP_FIRST, number], groups[layout.GROUP_END, number]):
        if events[layout.EVENT_TYPE, event] == _MAP and not inside[events[layout.EVENT_MAP, event]]:
            return False
    return True


@register_jitable
def _verdict(
    data: Bytes,
    text: tuple[int, int, int],
    texts: Texts,
    verdicts: Bytes,
    key: Bytes,
    state: Numbers,
) -> int:
    """The verdict on the QUERY with this body and of this kind; `_UNKNOWN` if it is asked for in the state."""
    start, end, kind = text
    state[lay.SCOPED_KIND] = kind
    state[lay.SCOPED_START] = start
    state[lay.SCOPED_END] = end
    state[lay.SCOPED_KEY] = 0
    context = start + _CONTEXT
    if end <= context or end - context > state[lay.SCOPED_KEY_MAX]:
        return _UNKNOWN
    place = end if kind == lay.CONTEXT else text_at(data, start, end)
    length = place - context
    if length < 0:
        return _UNKNOWN
    copy_bytes(key, 0, data, context, length)
    if place < end:
        length = write_shape(data, place, end, key, length)
    state[lay.SCOPED_KEY] = length
    number = find(key, 0, length, kind, texts)
    return int(verdicts[number]) if number >= 0 else _UNKNOWN


EXPORTS: Final = (
    (
        texts_outside,
        (
            "int64(Tuple((uint8[::1], int32[:, ::1], int64[:, ::1], int64[:, ::1])), "
            "Tuple((int64[::1], int32[:, ::1], int64[:, ::1], uint8[::1])), "
            f"{TEXTS_TYPE}, UniTuple(uint8[::1], 2), Tuple((uint8[::1], int64[::1])), int64[::1])"
        ),
    ),
)
