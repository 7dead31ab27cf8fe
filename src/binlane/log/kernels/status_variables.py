"""Status variables of statements, as far as kernels look into them: how AUTO_INCREMENT values grow."""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, load_u16

_DDL_LOGGED_WITH_XID: Final = 17
_DATABASES: Final = 12
_DATABASES_MOST: Final = 16
_AUTO_INCREMENT: Final = 3
_STATUS_TEXTS: Final = (5, 6)
"""Status variables that are a byte of length and a text."""


@register_jitable
def _status_end(text: Bytes, at: int, end: int) -> int:
    """The place behind a status variable; -1 if its length is not plain."""
    code = int(text[at])
    at += 1
    if code in _STATUS_TEXTS:
        at += 1 + int(text[at]) if at < end else 1
    elif code in (0, _AUTO_INCREMENT):
        at += 4
    elif code in (1, 9, _DDL_LOGGED_WITH_XID):
        at += 8
    elif code == 4:
        at += 6
    elif code in (7, 8, 18):
        at += 2
    elif code in (13, 128):
        at += 3
    elif code in (16, 19, 20, 21):
        at += 1
    elif code == _DATABASES and at < end:
        count = int(text[at])
        at += 1
        # More are not named.
        for _ in range(0 if count > _DATABASES_MOST else count):
            while at < end and text[at]:
                at += 1
            at += 1
    else:
        return -1
    return at if at <= end else -1


@register_jitable
def step_of(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """The step by which values grow, and their beginning; -1 if that is not plainly told."""
    while 0 <= at < end:
        behind = _status_end(text, at, end)
        if text[at] == _AUTO_INCREMENT and behind >= 0:
            return load_u16(text, at + 1), load_u16(text, at + 3)
        at = behind
    return (1, 1) if at == end else (-1, -1)


@register_jitable
def may_have_xid(text: Bytes, at: int, end: int) -> bool:
    """True if MySQL may have written a transaction's number into status variables."""
    while 0 <= at < end:
        if text[at] == _DDL_LOGGED_WITH_XID:
            return True
        at = _status_end(text, at, end)
    return at < 0


@register_jitable
def following(value: int, increment: int, offset: int) -> int:
    """The value that a server chooses behind another one."""
    if increment <= 1:
        return value + 1
    if value < offset:
        return offset
    return (value - offset + increment) // increment * increment + offset
