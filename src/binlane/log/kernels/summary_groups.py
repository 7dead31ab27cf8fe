"""The open transaction, its GTID, and the kept facts of ended ones: part of `summarise`."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import summary_layout as lay
from binlane.log.kernels.layout import (
    BASE,
    CONTROL,
    GROUP_POSITION,
    IS_ANONYMOUS,
    IS_GTID,
    IS_MYSQL_GTID,
    IS_OPEN,
    IS_TRANSACTION,
    STARTS_GROUP,
)
from binlane.log.kernels.memory import Bytes, load_i64, load_u32

Numbers = npt.NDArray[np.int64]
Tables = tuple[Numbers, ...]

_HEADER: Final = 19


@register_jitable
def _is_free(moments: Numbers, time: int) -> bool:
    """True if a second can be counted."""
    own = moments[lay.TIME, time % lay.MOMENTS_MAX]
    return bool(time == 0 or own == lay.NONE or own == time)


@register_jitable
def has_room(
    data: Bytes, at: int, kind: int, state: Numbers, figures: Numbers, tables: Tables
) -> bool:
    """True if everything that the event at `at` may add has its place."""
    if figures[lay.CANDIDATES] >= tables[lay.GROUPS].shape[1]:
        return False
    time = load_u32(data, at)
    end_time = time
    if state[IS_OPEN]:
        end_time = figures[lay.LAST_TIME]
        if kind & (CONTROL | STARTS_GROUP) == 0:
            end_time = max(end_time, time)
    if not (_is_free(tables[lay.MOMENTS], time) and _is_free(tables[lay.ENDS], end_time)):
        return False
    body = at + _HEADER
    if kind & IS_GTID:
        domain = load_u32(data, body + 8)
        own = tables[lay.DOMAINS][lay.DOMAIN, domain % lay.DOMAINS_MAX]
        if own != lay.NONE and own != domain:
            return False
    if kind & IS_MYSQL_GTID and kind & IS_ANONYMOUS == 0 and figures[lay.RUN_LAST] != lay.NONE:
        return bool(
            figures[lay.RUN_SOURCE] == load_i64(data, body + 1)
            and figures[lay.RUN_SOURCE + 1] == load_i64(data, body + 9)
            and figures[lay.RUN_LAST] + 1 == load_i64(data, body + 17)
        )
    return True


@register_jitable
def open_group(at: int, state: Numbers, figures: Numbers) -> None:
    """Begin a group with the event at `at`."""
    state[IS_OPEN] = 1
    state[GROUP_POSITION] = state[BASE] + at
    for figure in range(lay.BYTES, lay.LAST_TIME + 1):
        figures[figure] = 0


@register_jitable
def count_in_group(time: int, length: int, figures: Numbers) -> None:
    """Count an event for the open group."""
    figures[lay.BYTES] += length
    figures[lay.ROWS] += figures[lay.EVENT_ROWS]
    figures[lay.EVENTS] += 1
    if time:
        first = figures[lay.FIRST_TIME]
        figures[lay.FIRST_TIME] = min(first, time) if first else time
        figures[lay.LAST_TIME] = max(figures[lay.LAST_TIME], time)


@register_jitable
def end_group(state: Numbers, figures: Numbers, tables: Tables, unfinished: int) -> None:
    """End the open group, if there is one; keep it if a list may want it."""
    if state[IS_OPEN]:
        figures[lay.TRANSACTIONS] += 1
        figures[lay.UNFINISHED] += unfinished
        rows, time = figures[lay.ROWS], figures[lay.LAST_TIME]
        if time:
            slot = time % lay.MOMENTS_MAX
            tables[lay.ENDS][lay.TIME, slot] = time
            tables[lay.ENDS][lay.END_GROUPS, slot] += 1
            tables[lay.ENDS][lay.END_ROWS, slot] += rows
        if (
            figures[lay.BYTES] > figures[lay.LEAST_BYTES]
            or rows > figures[lay.LEAST_ROWS]
            or time - figures[lay.FIRST_TIME] > figures[lay.LEAST_DURATION]
        ):
            number = figures[lay.CANDIDATES]
            groups = tables[lay.GROUPS]
            groups[lay.GROUP_POSITION, number] = state[GROUP_POSITION]
            for figure in range(lay.GROUPS_ROWS - lay.GROUP_FIGURES):
                groups[lay.GROUP_FIGURES + figure, number] = figures[lay.BYTES + figure]
            figures[lay.CANDIDATES] = number + 1
    state[IS_OPEN] = 0
    state[IS_TRANSACTION] = 0
    figures[lay.GTID_KIND] = lay.GTID_NONE


@register_jitable
def note_gtid(data: Bytes, at: int, figures: Numbers, domains: Numbers) -> None:
    """Note the GTID of the group that MariaDB's GTID event begins."""
    body = at + _HEADER
    sequence, domain, server = (
        load_i64(data, body),
        load_u32(data, body + 8),
        load_u32(data, at + 5),
    )
    slot = domain % lay.DOMAINS_MAX
    if domains[lay.DOMAIN, slot] == lay.NONE:
        domains[lay.DOMAIN, slot] = domain
        domains[lay.FIRST_SERVER, slot] = server
        domains[lay.FIRST_SEQUENCE, slot] = sequence
    domains[lay.LAST_SERVER, slot] = server
    domains[lay.LAST_SEQUENCE, slot] = sequence
    figures[lay.GTID_KIND] = lay.GTID_MARIADB
    figures[lay.GTID] = domain
    figures[lay.GTID + 1] = server
    figures[lay.GTID + 2] = sequence


@register_jitable
def note_mysql_gtid(data: Bytes, at: int, figures: Numbers) -> None:
    """Note the GTID of the group that MySQL's GTID event begins."""
    body = at + _HEADER
    sequence = load_i64(data, body + 17)
    figures[lay.GTID_KIND] = lay.GTID_MYSQL
    figures[lay.GTID + 2] = sequence
    for half in range(2):
        number = load_i64(data, body + 1 + 8 * half)
        figures[lay.GTID + half] = number
        figures[lay.RUN_SOURCE + half] = number
    if figures[lay.RUN_LAST] == lay.NONE:
        figures[lay.RUN_FIRST] = sequence
    figures[lay.RUN_LAST] = sequence
