"""Ends of transactions that pass: the plan of the group is put together from the transaction's records, and said.

The statement that ends a transaction is its last record; a write with autocommit is the only one. A message on a
group is with the process that routes before the statement is sent that makes the group, as `attribution_messages`
has it; what the reply told is said with the next message, or once all ready connections were served. The plan is
the one that `TransactionEnd` puts together; its pieces come from there.
"""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.memory import (
    Bytes,
    copy_bytes,
    is_equal,
    load_i64,
    load_le,
    load_u16,
    load_u32,
)
from binlane.log.kernels.passing_layout import (
    HIDES_STATE,
    ITS_OFFSET,
    LOGGED_THREAD,
    NEXT,
    NUMBERED,
    OF_END,
    OF_WRITE,
    PENDING,
    PIECE_BEGINNING,
    PIECE_FIELDS,
    PIECE_ROWS,
    PIECES_MAX,
    PLACE,
    PLACE_FACTOR,
    RECORD_HEAD,
    RECORD_INSERT_ID,
    RECORD_LENGTH,
    RECORD_NUMBER,
    RECORD_PLACE,
    RECORDED,
    RECORDS_MAX,
    REST,
    RULES,
    SAID_HEAD,
    SAID_LENGTH,
    SAID_TO,
    STATEMENT_FACTOR,
    STATEMENT_FIELDS,
    STATEMENTS,
    STATEMENTS_MAX,
    STRIPS_GTIDS,
    THREAD,
    TOLD_MAX,
    TRANSITION_PROBES,
    TYPES,
)
from binlane.log.kernels.passing_statements import (
    VALUES_AT,
    Known,
    Numbers,
    packed_end,
    record_under_way,
    store,
    transition_from,
)
from binlane.log.kernels.sockets import send

_INTENT: Final = 2
_ANSWER: Final = 3
_IS_KNOWN: Final = 128
"""Kinds of messages, and a bit of one, as in `journal_records`."""
_FRAME: Final = 5
_STATEMENT_BITS: Final = 12
_STATEMENT: Final = 17
"""Bytes of a message's head, and of the fields of a statement's record."""
_QUERY: Final = 3
_SPACE: Final = 0x20
_QUOTE: Final = 0x27
_DIGIT_0: Final = 0x30
_TYPE_SIZES: Final = ((1, 1), (2, 2), (3, 4), (8, 8))
"""Types of integers, and their sizes."""
_DIGITS_MAX: Final = 20
_STATUS: Final = 4
"""Bytes of an OK packet's status and count of warnings."""
_STATE_CHANGED: Final = 0x4000
_PACKED_ONE: Final = 0xFB
_VARIABLES: Final = 0
_GTIDS: Final = 3
_TRANSACTION_STATE: Final = 5
_GTIDS_HEAD: Final = 4
_LAST_GTID: Final = (0x09, 0x6C, 0x61, 0x73, 0x74, 0x5F, 0x67, 0x74, 0x69, 0x64)
"""The name `last_gtid` behind its length."""
Plan = tuple[int, int, int, int]
"""A plan that was measured: place of the ending transition, offset of the plan's beginning, number of its writes,
which is 0 for no plan, and the room that it takes at most."""
_MINE: Final = 256
"""Room for what a statement has in a message besides its piece and its values."""


@register_jitable
def piece_of(end: int, write: int, places: Numbers) -> int:
    """The offset of what a statement has in the plans of transactions that one ends; -1 for none.

    Args:
        end: Place of the ending statement's transition in the table.
        write: Place of the statement's transition there.
        places: Places of pieces, as in `passing_layout`.
    """
    first = end * PLACE_FACTOR + write * STATEMENT_FACTOR
    for probe in range(TRANSITION_PROBES):
        at = ((first + probe) % PIECES_MAX) * PIECE_FIELDS
        offset: int = places[at + ITS_OFFSET]
        if offset and places[at + OF_END] == end and places[at + OF_WRITE] == write:
            return offset
    return -1


@register_jitable
def tells_of_end(table: Numbers, client: int, known: Known) -> bool:
    """True if the group of a transaction that ends was said, as far as that is demanded; else nothing was said.

    Args:
        table: The connections, as in `passing_layout`.
        client: Place of the client's numbers, whose command under way ends a transaction.
        known: What is known of statements, as of `pass_on`.
    """
    said = known[6]
    if not table[client + REST] or table[client + NEXT] != table[client + REST]:
        return False
    plan = _measured(table, client, known)
    begun = load_i64(said, SAID_LENGTH)
    if not plan[2] or SAID_HEAD + begun + plan[3] > len(said):
        return False
    message = SAID_HEAD + begun
    at = _put_plan(message + _FRAME + _STATEMENT, plan, (table, client), known)
    _put_head(said, message, at, (_INTENT, 0, 0), (table, client))
    store(said, SAID_LENGTH, at - SAID_HEAD, 8)
    say(said)
    return not load_i64(said, SAID_LENGTH)


@register_jitable
def _measured(table: Numbers, client: int, known: Known) -> Plan:
    """Measure the plan of the transaction that the command under way ends.

    Args:
        table: The connections, as in `passing_layout`.
        client: Place of the client's numbers.
        known: What is known of statements, as of `pass_on`.
    """
    _, _, transitions, records, places, pieces, _ = known
    last = record_under_way(table, client)
    stop = last + table[client + PENDING]
    number = load_u32(records, last + RECORD_NUMBER)
    end = transition_from(table[client + PLACE], number, transitions)
    beginning = 0
    count = 0
    room = _MINE
    at = last - table[client + RECORDED]
    while at < stop:
        length = load_u32(records, at + RECORD_LENGTH)
        piece = _piece_at(records, at, end, transitions, places)
        if piece < 0:
            return -1, 0, 0, 0
        begins = load_u32(pieces, piece + PIECE_BEGINNING)
        if begins:
            if beginning and beginning != begins:
                return -1, 0, 0, 0
            if (
                records[at + RECORD_HEAD] == _QUERY
                and records[at + RECORD_HEAD + length - 1] == _SPACE
            ):
                return -1, 0, 0, 0
            beginning = begins
            count += 1
            room += load_u32(pieces, piece) + _DIGITS_MAX * length + _MINE
        at += RECORD_HEAD + length
    return end, beginning, count, room + load_u32(pieces, beginning)


@register_jitable
def _put_plan(at: int, plan: Plan, session: tuple[Numbers, int], known: Known) -> int:
    """Write a plan that was measured; gives the place behind it.

    Args:
        at: Place of the plan among the messages.
        plan: The plan as it was measured.
        session: The connections, and the place of the client's numbers.
        known: What is known of statements, as of `pass_on`.
    """
    _, _, transitions, records, places, pieces, said = known
    table, client = session
    end, beginning, count, _ = plan
    last = record_under_way(table, client)
    first = last - table[client + RECORDED]
    stop = last + table[client + PENDING]
    store(said, at, 1, 4)
    length = load_u32(pieces, beginning)
    copy_bytes(said, at + 4, pieces, beginning + 4, length)
    at += 4 + length
    store(said, at, count, 4)
    store(said, at + 4, 1, 4)
    store(said, at + 8, 0, 4)
    said[at + 12] = pieces[beginning + 4 + length]
    at += 13
    record = first
    while record < stop:
        piece = _piece_at(records, record, end, transitions, places)
        if load_u32(pieces, piece + PIECE_BEGINNING):
            length = load_u32(pieces, piece + PIECE_ROWS)
            copy_bytes(said, at, pieces, piece + PIECE_ROWS + 4, length)
            at += length
        record += RECORD_HEAD + load_u32(records, record + RECORD_LENGTH)
    store(said, at, count, 4)
    at += 4
    count = 0
    record = first
    while record < stop:
        piece = _piece_at(records, record, end, transitions, places)
        if load_u32(pieces, piece + PIECE_BEGINNING):
            at = _put_part(at, count, (piece, record), session, known)
            count += 1
        record += RECORD_HEAD + load_u32(records, record + RECORD_LENGTH)
    return at


@register_jitable
def _piece_at(records: Bytes, record: int, end: int, transitions: Numbers, places: Numbers) -> int:
    """The offset of the piece of a recorded command; -1 for none."""
    place, number = (
        load_i64(records, record + RECORD_PLACE),
        load_u32(records, record + RECORD_NUMBER),
    )
    write = transition_from(place, number, transitions)
    return -1 if write < 0 or end < 0 else piece_of(end, write, places)


@register_jitable
def _put_head(
    said: Bytes,
    message: int,
    end: int,
    of: tuple[int, int, int],
    session: tuple[Numbers, int],
) -> None:
    """Write the head of a message on the statement under way.

    Args:
        said: Messages that are to be said, as in `passing_layout`.
        message: Place of the message among them.
        end: The place behind the message.
        of: Kind of the message, flags of the statement's record, and length of the text behind the head.
        session: The connections, and the place of the client's numbers.
    """
    table, client = session
    kind, bits, text = of
    store(said, message, end - message - _FRAME, 4)
    said[message + 4] = kind
    at = message + _FRAME
    store(said, at, table[client + THREAD], 4)
    store(said, at + 4, table[client + NUMBERED] + 1, 8)
    said[at + _STATEMENT_BITS] = bits
    store(said, at + _STATEMENT_BITS + 1, text, 4)


@register_jitable
def _put_part(
    at: int,
    section: int,
    write: tuple[int, int],
    session: tuple[Numbers, int],
    known: Known,
) -> int:
    """Write a write's part of a plan; gives the place behind it.

    Args:
        at: Place of the part among the messages.
        section: Number of the write's rows in the plan.
        write: Offset of the write's piece, and place of its record.
        session: The connections, and the place of the client's numbers.
        known: What is known of statements, as of `pass_on`.
    """
    statements, _, _, records, _, pieces, said = known
    table, client = session
    piece, record = write
    of = piece + PIECE_ROWS + 4 + load_u32(pieces, piece + PIECE_ROWS)
    said[at] = pieces[of]
    store(said, at + 1, section, 4)
    at += 5
    of += 1
    length = load_u16(pieces, of)  # behind the number of the rows
    copy_bytes(said, at, pieces, of + 2, length)
    at += length
    of += 2 + length
    length = load_u16(pieces, of)  # before an AUTO_INCREMENT value
    if length:
        copy_bytes(said, at, pieces, of + 2, length)
        copy_bytes(said, at + length, records, record + RECORD_INSERT_ID, 8)
        at += length + 8
    of += 2 + length
    copy_bytes(said, at, pieces, of, 3)
    event = at + 3
    at += 7
    of += 3
    store(said, at, table[client + LOGGED_THREAD], 4)
    at += 4
    length = load_u16(pieces, of)  # between thread and text
    copy_bytes(said, at, pieces, of + 2, length)
    at += length
    of += 2 + length
    start = record + RECORD_HEAD
    count = load_u16(pieces, of)
    of += 2
    if not count:
        length = load_u32(records, record + RECORD_LENGTH) - 1
        copy_bytes(said, at, records, start + 1, length)
        at += length
    else:
        at = _put_values(
            said, at, start, (pieces, of, count), (records, statements, table[client + STATEMENTS])
        )
    store(said, event, at - event - 4, 4)
    return at


@register_jitable
def _put_values(
    said: Bytes,
    at: int,
    start: int,
    text: tuple[Bytes, int, int],
    executed: tuple[Bytes, Numbers, int],
) -> int:
    """Write the text of an execution, with its values, which are plain; gives the place behind it.

    Args:
        said: Messages that are to be said, as in `passing_layout`.
        at: Place of the text among them.
        start: Place of the execution's first byte in the records.
        text: Pieces of plans, the place of the text's pieces there, and their number.
        executed: Records, prepared statements of the sessions, and the place of those of this session.
    """
    pieces, of, count = text
    records, statements, of_session = executed
    number = load_u32(records, start + 1) % STATEMENTS_MAX
    types = of_session + number * STATEMENT_FIELDS + TYPES
    value = start + VALUES_AT
    if count > 1:
        value += (count + 6) // 8
        value += 1 + 2 * (count - 1) if records[value] else 1
    for place in range(count):
        length = load_u16(pieces, of)
        copy_bytes(said, at, pieces, of + 2, length)
        at += length
        of += 2 + length
        if place == count - 1:
            break
        kind = (statements[types + place // 4] >> (16 * (place % 4))) & 0xFF
        size = 0
        for integer, its_size in _TYPE_SIZES:
            if integer == kind:
                size = its_size
        if size:
            at = _put_number(said, at, load_le(records, value, size))
            value += size
        else:
            length = int(records[value])
            said[at] = _QUOTE
            copy_bytes(said, at + 1, records, value + 1, length)
            at += 1 + length
            said[at] = _QUOTE
            at += 1
            value += 1 + length
    return at


@register_jitable
def _put_number(said: Bytes, at: int, number: int) -> int:
    """Write a number above 0 in digits; gives the place behind it."""
    size = 0
    left = number
    while left:
        size += 1
        left //= 10
    left = number
    for place in range(size):
        said[at + size - 1 - place] = _DIGIT_0 + left % 10
        left //= 10
    return at + size


@register_jitable
def say(said: Bytes) -> None:
    """Send the messages that are still to be said; what the connection does not take stays."""
    length = load_i64(said, SAID_LENGTH)
    if length:
        sent = max(send(load_i64(said, SAID_TO), said, SAID_HEAD, length), 0)
        for byte in range(length - sent if sent else 0):
            said[SAID_HEAD + byte] = said[SAID_HEAD + sent + byte]
        store(said, SAID_LENGTH, length - sent, 8)


@register_jitable
def find_state(data: Bytes, head: int, end: int) -> tuple[int, int, int]:
    """Find the session's state in an OK packet that tells one in a short form.

    Args:
        data: The buffer with the packet.
        head: Place of the packet's first byte.
        end: The place behind the packet.

    Returns:
        Places of the status, of the text's length, and of the state's length; -1 as the first for none.
    """
    status_at = packed_end(data, packed_end(data, head + 1))
    text = status_at + _STATUS
    if text >= end or not load_u16(data, status_at) & _STATE_CHANGED:
        return -1, 0, 0
    size = text + 1 + int(data[text])
    if data[text] >= _PACKED_ONE or size + 1 + _GTIDS_HEAD >= end or data[size] != end - size - 1:
        return -1, 0, 0
    if data[size] >= _PACKED_ONE:
        return -1, 0, 0
    return status_at, text, size


@register_jitable
def without_transaction(data: Bytes, head: int, end: int, rules: int) -> int:
    """Make the client's packet of an OK packet that came alone, and tells of the session what its transaction does.

    Args:
        data: The buffer with the packet.
        head: Place of the packet's first byte.
        end: The place behind the packet.
        rules: Rules of the session, as in `passing_layout`.

    Returns:
        The place behind the client's packet; -1, and nothing is done, for a packet that tells more.
    """
    status_at, text, size = find_state(data, head, end)
    if status_at < 0 or data[size + 1] != _TRANSACTION_STATE or data[size + 2] != end - size - 3:
        return -1
    if not rules & HIDES_STATE:
        return end
    store(data, status_at, load_u16(data, status_at) & ~_STATE_CHANGED, 2)
    return size if data[text] else text


@register_jitable
def told_gtids(data: Bytes, state: int, end: int) -> tuple[int, int]:
    """Find the GTIDs in a session's state that tells them first, and besides at most what its transaction does.

    Args:
        data: The buffer with the state.
        state: Place of the state's first byte.
        end: The place behind the state.

    Returns:
        Places of their text, and behind it; -1 as the first for none.
    """
    stop = state + 2 + int(data[state + 1])
    at = state + _GTIDS_HEAD
    kind = int(data[state])
    if stop > end or data[state + 1] >= _PACKED_ONE:
        return -1, 0
    if stop < end and (
        data[stop] != _TRANSACTION_STATE or stop + 2 > end or data[stop + 1] != end - stop - 2
    ):
        return -1, 0
    if kind == _VARIABLES:
        at = state + 2 + len(_LAST_GTID) + 1
        if at >= stop:
            return -1, 0
        for place, byte in enumerate(_LAST_GTID):
            if data[state + 2 + place] != byte:
                return -1, 0
    elif kind != _GTIDS or at >= stop:
        return -1, 0
    if data[at - 1] != stop - at or stop - at > TOLD_MAX:
        return -1, 0
    return at, stop


@register_jitable
def _lacks_value(table: Numbers, client: int, known: Known) -> bool:
    """True if the plan that was said lacks the AUTO_INCREMENT value that the reply to its last statement told.

    Args:
        table: The connections, as in `passing_layout`.
        client: Place of the client's numbers.
        known: What is known of statements, as of `pass_on`.
    """
    _, _, transitions, records, places, pieces, _ = known
    record = record_under_way(table, client)
    if not load_i64(records, record + RECORD_INSERT_ID):
        return False
    number = load_u32(records, record + RECORD_NUMBER)
    end = transition_from(table[client + PLACE], number, transitions)
    piece = piece_of(end, end, places)
    if piece < 0:  # forgotten meanwhile
        return True
    if not load_u32(pieces, piece + PIECE_BEGINNING):
        return False
    return bool(load_u16(pieces, _value_head(pieces, piece)))


@register_jitable
def _value_head(pieces: Bytes, piece: int) -> int:
    """The place of what stands before an AUTO_INCREMENT value in a piece, behind its length."""
    behind = piece + PIECE_ROWS + 4 + load_u32(pieces, piece + PIECE_ROWS) + 1
    place: int = behind + 2 + load_u16(pieces, behind)
    return place


@register_jitable
def answer_of_end(
    data: Bytes, head: int, end: int, table: Numbers, client: int, known: Known
) -> int:
    """Take an OK packet that came alone as the answer to the end of a transaction, and say which group it told.

    Args:
        data: The buffer with the packet, which is made the client's.
        head: Place of the packet's first byte.
        end: The place behind the packet.
        table: The connections, as in `passing_layout`.
        client: Place of the client's numbers.
        known: What is known of statements, as of `pass_on`.

    Returns:
        The place behind the client's packet; -1, and nothing is done, for another packet.
    """
    _, _, _, records, _, _, said = known
    status_at, text, size = find_state(data, head, end)
    if status_at < 0:
        return -1
    state = size + 1
    at, stop = told_gtids(data, state, end)
    if at < 0:
        return -1
    length = stop - at
    last = record_under_way(table, client) - table[client + RECORDED] + RECORDS_MAX
    if records[last] == length and is_equal(records, last + 1, data, at, length):
        return -1
    plan = (-1, 0, 0, 0)
    if _lacks_value(table, client, known):
        plan = _measured(table, client, known)
        if not plan[2]:
            return -1
    message = SAID_HEAD + load_i64(said, SAID_LENGTH)
    if message + _MINE + plan[3] > len(said):
        return -1
    to = message + _FRAME + _STATEMENT
    records[last] = length
    for byte in range(length):
        records[last + 1 + byte] = said[to + byte] = data[at + byte]
    to += length
    if plan[2]:
        to = _put_plan(to, plan, (table, client), known)
    _put_head(said, message, to, (_ANSWER, _IS_KNOWN, length), (table, client))
    store(said, SAID_LENGTH, to - SAID_HEAD, 8)
    rules = table[client + RULES]
    if not rules & STRIPS_GTIDS:
        return end
    left = 0 if rules & HIDES_STATE else end - stop
    if left:
        data[size] = left
        for byte in range(left):
            data[state + byte] = data[stop + byte]
        return state + left
    store(data, status_at, load_u16(data, status_at) & ~_STATE_CHANGED, 2)
    return size if data[text] else text
