"""Bytes between clients and the source that nobody has to look at but for their frames.

A session whose statements concern no binlog stands in a table, by the file numbers of its two
connections. Of such a session a command passes that came alone and in full and that is none of
binlane's by its first word; its reply is followed by the lengths of its packets. Anything else is
handed back: the bytes that were received, of which nothing has been sent on, with the session's state
before them in the table.
"""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, load_i64, load_u16, load_u24, load_u32
from binlane.log.kernels.passing_ends import answer_of_end, say, tells_of_end, without_transaction
from binlane.log.kernels.passing_layout import (
    BYTES_LEFT,
    CACHES_METADATA,
    CLIENT,
    COUNT,
    DEMANDS,
    DEPRECATES_EOF,
    ENDS,
    EVENT_IN,
    EVENTS_MAX,
    EXECUTION,
    EXECUTIONS,
    FIELDS,
    HANDED,
    HANDED_FIELDS,
    HELD,
    HELD_BYTES,
    HIDES_STATE,
    IS_CONTINUED,
    IS_READ,
    IS_UNSENT,
    KIND,
    KNOWN_STATEMENTS,
    NEEDS_ROWS,
    NEXT,
    PACKETS_LEFT,
    PEER,
    PENDING,
    PLACE,
    READ_MAX,
    RECORD_INSERT_ID,
    REPORTS_PROGRESS,
    RULES,
    SAID_LENGTH,
    SOURCE,
    STATEMENTS,
    STATUS,
    STEP,
    STEP_DEFINITIONS,
    STEP_DEFINITIONS_END,
    STEP_HEAD,
    STEP_IDLE,
    STEP_ROWS,
    TURNS,
)
from binlane.log.kernels.passing_statements import (
    Known,
    Numbers,
    arrive,
    executed_statement,
    goes_from_place,
    is_as_demanded,
    packed,
    packed_end,
    record_under_way,
    store,
)
from binlane.log.kernels.passing_texts import known_text, passes_text
from binlane.log.kernels.sockets import (
    EVENT_NUMBER,
    EVENT_SIZE,
    clock_ms,
    receive,
    send,
    wait,
)

_ROUNDS: Final = 4
"""Times that ready connections are looked for without waiting, as long as all of them pass."""
_HEADER: Final = 4
_FRAME_MAX: Final = 0xFFFFFF
_HEAD_MAX: Final = 24
"""Bytes of an OK packet's fields up to its status: a mark, two packed integers, the flags."""
_QUERY: Final = 3
_PING: Final = 0x0E
_EXECUTE: Final = 0x17
_EXECUTE_FLAGS: Final = _HEADER + 5
_OK: Final = 0
_EOF: Final = 0xFE
_ERR: Final = 0xFF
_LOCAL_INFILE: Final = 0xFB
_EOF_LENGTH_MAX: Final = 8
_PACKED_8: Final = 0xFE
_PACKED_3: Final = 0xFD
_PACKED_2: Final = 0xFC
_PACKED_ONE: Final = 0xFB
_MORE_RESULTS: Final = 8
_STATE_CHANGED: Final = 0x4000
_LASTING: Final = 0xA303
"""Flags of a status that are not of one reply alone, as `reply_follower` has them."""
_IN_TRANSACTION: Final = 1


def pass_on(
    waiting: tuple[int, int, int],
    events: Bytes,
    table: Numbers,
    known: Known,
    buffer: Bytes,
    handed: Numbers,
) -> int:
    """Serve the connections of an epoll instance that are ready.

    Args:
        waiting: File number of the epoll instance; milliseconds for which the kernel waits until something is
            handed back, below 0 without end; and the file number of what ends that as well when it is ready, -1
            for none.
        events: Room for `EVENTS_MAX` events of epoll.
        table: The connections, as in `passing_layout`.
        known: Prepared statements of the sessions, known texts, transitions, records of the sessions' commands,
            places of pieces, the pieces, and messages, as in `passing_layout`. Messages that the connection for
            them did not take are left there: they are to be sent before anything else is done.
        buffer: Room for the bytes, of `READ_MAX` more for each event than for one.
        handed: Gets what is handed back.

    Returns:
        The number of things in `handed`.
    """
    count = 0
    at = 0
    epoll, left_ms, other = waiting
    ends_ms = clock_ms() + left_ms if left_ms > 0 else 0
    rounds = 0
    is_over = False
    while not (count or is_over):
        ready = wait(epoll, events, EVENTS_MAX, 0)
        if ready <= 0:
            say(known[6])
            if not left_ms or load_i64(known[6], SAID_LENGTH):
                break
            ready = wait(epoll, events, EVENTS_MAX, left_ms)
            if ready <= 0:
                break
        rounds += 1
        if not left_ms:
            is_over = rounds >= _ROUNDS
        elif left_ms > 0:
            left_ms = max(ends_ms - clock_ms(), 0)
        for each in range(ready):
            place = each * EVENT_SIZE
            mask = load_u32(events, place)
            number = load_u32(events, place + EVENT_NUMBER)
            if number == other:
                is_over = True
                continue
            row = number * FIELDS
            kind = table[row + KIND]
            got = -1
            held = 0
            unsent = -1
            to = 0
            if mask == EVENT_IN:
                client = row
                if kind == SOURCE:
                    client = table[row + PEER] * FIELDS
                    held = table[client + HELD]
                    for byte in range(held):
                        word = table[client + HELD_BYTES + byte // 8]
                        buffer[at + byte] = (word >> (8 * (byte % 8))) & 0xFF
                got = receive(number, buffer, at + held, READ_MAX)
                if kind != HANDED and got > 0:
                    peer = table[row + PEER]
                    if kind == CLIENT:
                        passes = passes_command(buffer, at, at + got, table, client, known)
                        to = at + got
                    else:
                        to = followed_to(buffer, at, at + held + got, table, client, known)
                        passes = to >= 0
                    if passes:
                        unsent = 0
                        if to > at:
                            sent = max(send(peer, buffer, at, to - at), 0)
                            if sent < to - at:
                                unsent = to - at - sent
                        if not unsent:
                            continue
            if kind != HANDED:
                table[row + KIND] = HANDED
                table[table[row + PEER] * FIELDS + KIND] = HANDED
            item = count * HANDED_FIELDS
            count += 1
            handed[item] = number
            handed[item + 1] = mask
            if unsent > 0:
                handed[item] = table[row + PEER]
                handed[item + 1] = IS_UNSENT
                handed[item + 2] = to - unsent
                handed[item + 3] = unsent
                at = to
            elif got >= 0:
                if kind == SOURCE:
                    table[client + HELD] = 0
                handed[item + 1] = IS_READ
                handed[item + 2] = at
                handed[item + 3] = held + got
                at += held + got
                if not got and held:  # the bytes that were kept, and then the end
                    handed[item + HANDED_FIELDS] = number
                    handed[item + HANDED_FIELDS + 1] = IS_READ
                    handed[item + HANDED_FIELDS + 2] = at
                    handed[item + HANDED_FIELDS + 3] = 0
                    count += 1
    say(known[6])
    return count


@register_jitable
def passes_command(
    data: Bytes,
    start: int,
    end: int,
    table: Numbers,
    client: int,
    known: Known,
) -> bool:
    """True if bytes of a client are one command that passes; its reply is expected then."""
    statements, texts, _, _, _, _, _ = known
    length = end - start - _HEADER
    if length < 1 or load_u32(data, start) != length or table[client + STEP] != STEP_IDLE:
        return False
    rules = table[client + RULES]
    command = data[start + _HEADER]
    execution = 0
    is_known = True
    number = 0
    if command == _EXECUTE:
        execution = load_u32(data, start + _HEADER + 1)
        if length <= 5 or data[start + _EXECUTE_FLAGS]:
            return False
        if not rules & EXECUTIONS:
            of_session = table[client + STATEMENTS]
            if of_session < 0:
                return False
            place = executed_statement(data, start + _HEADER, end, statements, of_session)
            if place < 0:
                return False
            number = -1 - place
    elif command == _PING:
        if length > 1:
            return False
        is_known = False
    elif command != _QUERY:
        return False
    elif rules & KNOWN_STATEMENTS:
        number = known_text(data, start + _HEADER + 1, end, texts, False)
        if number < 0:
            return False
        execution = -1 - number
    elif not passes_text(data, start + _HEADER + 1, end, rules):
        return False
    if rules & KNOWN_STATEMENTS:
        if not is_known:
            table[client + NEXT] = table[client + PLACE]
        elif not goes_from_place(data, start + _HEADER, end, number, (table, client), known):
            return False
        elif table[client + DEMANDS] & ENDS and not tells_of_end(table, client, known):
            table[client + DEMANDS] = table[client + PENDING] = 0
            return False
    table[client + STEP] = STEP_HEAD
    table[client + EXECUTION] = execution
    if not table[client + PENDING]:
        table[client + COUNT] += 1
    return True


def keep_text(data: Bytes, length: int, texts: Bytes) -> int:
    """Give the number of a text's form, which is known from now on; -1 for a text that cannot be known.

    Args:
        data: The text, and bytes that are not read behind it.
        length: Number of bytes of the text.
        texts: The known forms, as in `passing_layout`.
    """
    return known_text(data, 0, length, texts, True)


@register_jitable
def followed_to(
    data: Bytes, start: int, end: int, table: Numbers, client: int, known: Known
) -> int:
    """Follow bytes of the source.

    Args:
        data: The buffer, with the bytes that were kept before the new ones.
        start: The place of the first of them.
        end: The place behind the last one.
        table: The connections; the session's state is kept there, with the head of a packet that is cut.
        client: The place of the client's numbers.
        known: What is known of statements, as of `pass_on`: records get what the replies told.

    Returns:
        The place up to which the bytes may be sent; -1 for bytes that are handed back.
    """
    rules = table[client + RULES]
    step = table[client + STEP]
    packets = table[client + PACKETS_LEFT]
    left: int = table[client + BYTES_LEFT]
    continued = table[client + IS_CONTINUED]
    status = table[client + STATUS]
    demands = table[client + DEMANDS]
    turned = _IN_TRANSACTION if demands & TURNS else 0
    has_arrived = False
    at = start
    while True:
        part = min(left, end - at)
        at += part
        left -= part
        if left or end - at < _HEADER:
            break
        length = load_u24(data, at)
        head = at + _HEADER
        if head + min(_HEAD_MAX, length) > end:
            break
        if step == STEP_IDLE and not continued:
            return -1
        if not continued:
            mark = int(data[head]) if length else _OK
            told = -1
            if mark == _ERR:
                if rules & REPORTS_PROGRESS and length > 2 and load_u16(data, head + 1) == 0xFFFF:
                    return -1
                if rules & KNOWN_STATEMENTS:
                    return -1
                step = STEP_IDLE
            elif step == STEP_HEAD:
                if mark == _OK:
                    told = status_at(data, head + 1, head + length)
                    if told < 0:
                        return -1
                    if demands:
                        if not is_as_demanded(data, head, end, demands):
                            return -1
                        insert_id = packed(data, packed_end(data, head + 1))
                        store(
                            known[3],
                            record_under_way(table, client) + RECORD_INSERT_ID,
                            insert_id,
                            8,
                        )
                elif mark in (_EOF, _LOCAL_INFILE) or demands & (NEEDS_ROWS | ENDS):
                    return -1
                else:
                    columns = 1 if mark < _PACKED_ONE else 0
                    if columns:
                        packets = mark
                    elif mark == _PACKED_2:
                        packets = load_u16(data, head + 1)
                        columns = 3
                    if not columns or not packets or length < columns:
                        return -1
                    step = STEP_DEFINITIONS
                    if rules & CACHES_METADATA and (length <= columns or not data[head + columns]):
                        step = STEP_ROWS if rules & DEPRECATES_EOF else STEP_DEFINITIONS_END
            elif step == STEP_ROWS:
                if mark == _EOF and rules & DEPRECATES_EOF and length < _FRAME_MAX:
                    told = status_at(data, head + 1, head + length)
                    if told < 0:
                        return -1
                elif mark == _EOF and not rules & DEPRECATES_EOF and length <= _EOF_LENGTH_MAX:
                    if length < 5:
                        return -1
                    told = load_u16(data, head + 3)
            elif step == STEP_DEFINITIONS_END:
                step = STEP_ROWS
            else:
                packets -= 1
                if not packets:
                    step = STEP_ROWS if rules & DEPRECATES_EOF else STEP_DEFINITIONS_END
            if told >= 0:
                if rules & KNOWN_STATEMENTS and (
                    told & _MORE_RESULTS or (told ^ table[client + STATUS] ^ turned) & _LASTING
                ):
                    return -1
                if told & _STATE_CHANGED and demands:
                    if head + length != end:
                        return -1
                    if demands & ENDS:
                        end = answer_of_end(data, head, end, table, client, known)
                    else:
                        end = without_transaction(data, head, end, rules)
                    if end < 0:
                        return -1
                    told &= ~_STATE_CHANGED
                    length = end - head
                    store(data, at, length, 3)
                elif demands & ENDS or (
                    told & _STATE_CHANGED and rules & (HIDES_STATE | KNOWN_STATEMENTS)
                ):
                    return -1
                has_arrived = True
                status = told
                step = STEP_HEAD if told & _MORE_RESULTS else STEP_IDLE
        continued = 1 if length == _FRAME_MAX else 0
        at = head
        left = length
    table[client + STEP] = step
    table[client + PACKETS_LEFT] = packets
    table[client + BYTES_LEFT] = left
    table[client + IS_CONTINUED] = continued
    table[client + STATUS] = status
    table[client + HELD] = end - at
    for word in range((end - at + 7) // 8):
        table[client + HELD_BYTES + word] = load_i64(data, at + 8 * word)
    if has_arrived and rules & KNOWN_STATEMENTS:
        arrive(table, client)
    return at


@register_jitable
def status_at(data: Bytes, at: int, end: int) -> int:
    """The status in an OK packet, from behind its mark; -1 where it is none."""
    for _ in range(2):
        if at >= end:
            return -1
        first = int(data[at])
        at += 1
        if first == _PACKED_2:
            at += 2
        elif first == _PACKED_3:
            at += 3
        elif first == _PACKED_8:
            at += 8
        elif first >= _PACKED_ONE:
            return -1
    status: int = load_u16(data, at) if at + 2 <= end else -1
    return status


_KNOWN: Final = "int64[::1], uint8[::1], int64[::1], uint8[::1], int64[::1], uint8[::1], uint8[::1]"
EXPORTS: Final = (
    (
        pass_on,
        f"int64(UniTuple(int64, 3), uint8[::1], int64[::1], Tuple(({_KNOWN})), uint8[::1], int64[::1])",
    ),
    (keep_text, "int64(uint8[::1], int64, uint8[::1])"),
)
