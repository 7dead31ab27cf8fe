"""Groups of a run of the source and what sessions said of their statements → whose groups they are.

A reply to a session names the group of its statement by its GTID. Nearly all statements are alike: they are to make
one group, and their replies name one. These are found here, with the places of their plans; all others are for the
reference, which is `AttributionState`.

Sessions and groups are found by tables of places, in which an entry that is taken sends on to the next one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import layout
from binlane.log.kernels.found_layout import (
    CHUNK_END,
    CHUNK_FILE,
    CHUNK_IS_CURRENT,
    CHUNK_OFFSET,
    MESSAGE_FIELDS,
    SESSION_ENDS,
    SESSION_ENDS_END,
    SESSION_FOUND,
    SESSION_IS_OVER,
    SESSION_NAMED,
    SESSION_OPEN,
    SESSION_THREAD,
    TOLD_BEGIN,
    TOLD_CHECKSUM,
    TOLD_CHUNK,
    TOLD_DOMAIN,
    TOLD_END,
    TOLD_FILE,
    TOLD_GROUP,
    TOLD_PLACE,
    TOLD_PLAN,
    TOLD_SEQUENCE,
    TOLD_THREAD,
)
from binlane.log.kernels.memory import Bytes, is_equal, load_i64, load_u32

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_SPREAD: Final = 0x9E3779B1
_GTID: Final = 162
_DOMAIN_AT: Final = 27
_SEQUENCE_AT: Final = 19
_MYSQL_GTID: Final = 33
_UUID: Final = 16
_UUID_AT: Final = 20
_MYSQL_SEQUENCE_AT: Final = 36
_INTENT: Final = 2
_KIND, _THREAD, _NUMBER, _PLACE, _CHECKSUM, _BEGIN, _END, _COUNT, _DOMAIN, _SEQUENCE = range(
    MESSAGE_FIELDS
)
"""Fields of a message, as of `MESSAGE_FIELDS`."""


def find_groups(
    run: tuple[Bytes, Small, Numbers, Numbers],
    reads: tuple[Numbers, Bytes],
    said: tuple[Numbers, Numbers],
    known: tuple[Numbers, Numbers],
    tables: tuple[Numbers, Numbers, Numbers],
    found: Numbers,
) -> int:
    """Find the groups of statements of which all is usual.

    Args:
        run: Bytes, events and groups of a run, and the thread that the log names for each group, or 0.
        reads: Domains, and the sequence up to which each was read before the run; and the UUIDs of MySQL's sources, or
            none for MariaDB: a source's number is then the domain.
        said: The messages, a row each, and what is known of those that were heard together.
        known: The sessions of which nothing is open but what the messages say, and their ends: domains, and the last
            sequence there that the session was told of. What the messages say is noted in both.
        tables: Entries for the groups and for the sessions, of powers of two, all of them -1; and three rows for
            each group, which get the messages of its statement and of the reply, or -1, and the next group for
            which the log names the same session.
        found: Gets what is found, a row for each group in their order, as `TOLD_SIZE` says.

    Returns:
        The number of the groups that were found.
    """
    groups, threads = run[2], run[3]
    messages, chunks = said
    by_group, by_thread, makers = tables
    sessions, ends = known
    read, sources = reads
    for number in range(groups.shape[1]):
        makers[0, number] = makers[1, number] = makers[2, number] = -1
        domain, sequence = _gtid(run, sources, number)
        if sequence > _read(read, domain):
            entry = _first_entry(domain ^ (sequence << 8), len(by_group))
            while by_group[entry] >= 0:
                entry = (entry + 1) & (len(by_group) - 1)
            by_group[entry] = number
    for number in range(sessions.shape[1]):
        entry = _first_entry(sessions[SESSION_THREAD, number], len(by_thread))
        while by_thread[entry] >= 0:
            entry = (entry + 1) & (len(by_thread) - 1)
        by_thread[entry] = number
    for number in range(groups.shape[1] - 1, -1, -1):
        session = _session(sessions, by_thread, threads[number]) if threads[number] > 0 else -1
        if session >= 0:
            makers[2, number] = sessions[SESSION_NAMED, session]
            sessions[SESSION_NAMED, session] = number
    chunk = 0
    for at in range(messages.shape[0]):
        while at >= chunks[CHUNK_END, chunk]:
            chunk += 1
        session = _session(sessions, by_thread, messages[at, _THREAD])
        if session < 0 or sessions[SESSION_IS_OVER, session]:
            continue
        is_open = sessions[SESSION_OPEN, session] >= 0
        count = messages[at, _COUNT]
        if messages[at, _KIND] == _INTENT:
            if is_open or count != 1 or not chunks[CHUNK_IS_CURRENT, chunk]:
                sessions[SESSION_IS_OVER, session] = 1
            else:
                sessions[SESSION_OPEN, session] = at
            continue
        sent = sessions[SESSION_OPEN, session]
        group = -1
        if (
            is_open
            and messages[sent, _NUMBER] == messages[at, _NUMBER]
            and (count == 1 or count < 0)
        ):
            group = _told(run, sources, by_group, messages[at, _DOMAIN], messages[at, _SEQUENCE])
        end = _end(sessions, ends, session, messages[at, _DOMAIN])
        is_new = group >= 0 and end >= 0 and messages[at, _SEQUENCE] > ends[1, end]
        # Else the session has made another group before it, of which nothing was told.
        is_next = not 0 <= sessions[SESSION_NAMED, session] < group
        if not (is_new and is_next) or makers[0, group] >= 0:
            sessions[SESSION_IS_OVER, session] = 1
            continue
        if sessions[SESSION_NAMED, session] == group:
            sessions[SESSION_NAMED, session] = makers[2, group]
        makers[0, group] = sent
        makers[1, group] = at
        ends[1, end] = messages[at, _SEQUENCE]
        sessions[SESSION_OPEN, session] = -1
        sessions[SESSION_FOUND, session] += 1
    done = 0
    for number in range(groups.shape[1]):
        sent = makers[0, number]
        if sent < 0:
            continue
        at = makers[1, number]
        planned = at if messages[at, _COUNT] >= 0 else sent
        chunk = 0
        while planned >= chunks[CHUNK_END, chunk]:
            chunk += 1
        found[done, TOLD_THREAD] = messages[at, _THREAD]
        found[done, TOLD_SEQUENCE] = messages[at, _SEQUENCE]
        found[done, TOLD_FILE] = chunks[CHUNK_FILE, chunk]
        found[done, TOLD_PLACE] = chunks[CHUNK_OFFSET, chunk] + messages[planned, _PLACE]
        found[done, TOLD_CHECKSUM] = messages[planned, _CHECKSUM]
        found[done, TOLD_PLAN] = 0
        found[done, TOLD_GROUP] = number
        found[done, TOLD_CHUNK] = chunk
        found[done, TOLD_BEGIN] = messages[planned, _BEGIN]
        found[done, TOLD_END] = messages[planned, _END]
        found[done, TOLD_DOMAIN] = messages[at, _DOMAIN]
        done += 1
    return done


@register_jitable
def _gtid(
    run: tuple[Bytes, Small, Numbers, Numbers], sources: Bytes, number: int
) -> tuple[int, int]:
    """The domain and the sequence of a group; a sequence of 0 for a GTID that is not known."""
    data, events, groups, _ = run
    first = groups[layout.GROUP_FIRST, number]
    kind = events[layout.EVENT_TYPE, first]
    start = int(events[layout.EVENT_OFFSET, first])
    if kind == _GTID and not len(sources):
        return int(load_u32(data, start + _DOMAIN_AT)), int(load_i64(data, start + _SEQUENCE_AT))
    if kind == _MYSQL_GTID:
        for source in range(len(sources) // _UUID):
            if is_equal(sources, source * _UUID, data, start + _UUID_AT, _UUID):
                return source, int(load_i64(data, start + _MYSQL_SEQUENCE_AT))
    return 0, 0


@register_jitable
def _first_entry(number: int, entries: int) -> int:
    return ((int(number) * _SPREAD) >> 8) & (entries - 1)


@register_jitable
def _read(reads: Numbers, domain: int) -> int:
    """The sequence up to which a domain was read."""
    for each in range(reads.shape[1]):
        if reads[0, each] == domain:
            return int(reads[1, each])
    return 0


@register_jitable
def _session(sessions: Numbers, by_thread: Numbers, thread_id: int) -> int:
    """The number of a thread's session; -1 for none."""
    entry = _first_entry(thread_id, len(by_thread))
    while by_thread[entry] >= 0:
        if sessions[SESSION_THREAD, by_thread[entry]] == thread_id:
            return int(by_thread[entry])
        entry = (entry + 1) & (len(by_thread) - 1)
    return -1


@register_jitable
def _end(sessions: Numbers, ends: Numbers, session: int, domain: int) -> int:
    """The number of a session's end in a domain; -1 for none."""
    for each in range(sessions[SESSION_ENDS, session], sessions[SESSION_ENDS_END, session]):
        if ends[0, each] == domain:
            return int(each)
    return -1


@register_jitable
def _told(
    run: tuple[Bytes, Small, Numbers, Numbers],
    sources: Bytes,
    by_group: Numbers,
    domain: int,
    sequence: int,
) -> int:
    """The number of a new group of the run; -1 for none."""
    entry = _first_entry(domain ^ (sequence << 8), len(by_group))
    while by_group[entry] >= 0:
        number = int(by_group[entry])
        if _gtid(run, sources, number) == (domain, sequence):
            return number
        entry = (entry + 1) & (len(by_group) - 1)
    return -1


EXPORTS: Final = (
    (
        find_groups,
        (
            "int64(Tuple((uint8[::1], int32[:, ::1], int64[:, ::1], int64[::1])), "
            "Tuple((int64[:, ::1], uint8[::1])), "
            "UniTuple(int64[:, ::1], 2), UniTuple(int64[:, ::1], 2), "
            "Tuple((int64[::1], int64[::1], int64[:, ::1])), int64[:, ::1])"
        ),
    ),
)
