"""Texts that pass: by their first word, or by their form, which is a text without its literals."""

from __future__ import annotations

from typing import Final

from numba.extending import register_jitable

from binlane.log.kernels.memory import Bytes, load_u16, load_u32
from binlane.log.kernels.passing_layout import (
    FORM_AT,
    FORM_MAX,
    PLAIN_TEXTS,
    TEXT_LENGTH_MAX,
    TEXT_SIZE,
    TEXTS_MAX,
)

_SPACE: Final = 32
_LOWER: Final = 0x20202020
_LETTER_A: Final = 97
_LETTER_Z: Final = 122
_WORD_MAX: Final = 8
_WORDS: Final = (
    int.from_bytes(b"select", "little"),
    int.from_bytes(b"insert", "little"),
    int.from_bytes(b"update", "little"),
    int.from_bytes(b"delete", "little"),
    int.from_bytes(b"replace", "little"),
    int.from_bytes(b"begin", "little"),
    int.from_bytes(b"commit", "little"),
    int.from_bytes(b"rollback", "little"),
)
"""The first words of statements that pass; none is a question of binlane's, but for SELECT."""
_SELECT: Final = _WORDS[0]
_ASKING: Final = (
    int.from_bytes(b"bina", "little"),
    int.from_bytes(b"binl", "little"),
    int.from_bytes(b"mast", "little"),
    int.from_bytes(b"sour", "little"),
    int.from_bytes(b"slav", "little"),
    int.from_bytes(b"repl", "little"),
    int.from_bytes(b"gtid", "little"),
    int.from_bytes(b"tabl", "little"),
    int.from_bytes(b"syst", "little"),
    int.from_bytes(b"show", "little"),
    int.from_bytes(b"kill", "little"),
)
"""Beginnings of the words that a SELECT for binlane has one of."""
_ASCII_END: Final = 0x80
_VARIABLE: Final = 0x40
_STATEMENT_END: Final = 0x3B
_SLASH: Final = 0x2F
_STAR: Final = 0x2A
_LETTER_B: Final = 98
_LETTER_T: Final = 116
_DIGIT_0: Final = 0x30
_DIGIT_9: Final = 0x39
_QUOTE: Final = 0x27
_BACKSLASH: Final = 0x5C
_DOT: Final = 0x2E
_DASH: Final = 0x2D
_UNDERSCORE: Final = 0x5F
_DOLLAR: Final = 0x24
_NUMBER_FORM: Final = 1
_STRING_FORM: Final = 2
"""Bytes that stand for literals in the form of a text."""
_PUNCTUATION: Final = (0x20, 0x21, 0x25, 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x3C, 0x3D, 0x3E)
_PROBES: Final = 4
_HASH_BEGIN: Final = 5381
_HASH_FACTOR: Final = 33
_HASH_MASK: Final = 0xFFFFFFFF


@register_jitable
def passes_text(data: Bytes, start: int, end: int, rules: int) -> bool:
    """True if a statement's text passes, by its first word and, where they matter, all others."""
    word = 0
    at = start
    while at < end and at - start < _WORD_MAX:
        letter = int(data[at]) | 0x20
        if letter < _LETTER_A or letter > _LETTER_Z:
            break
        word |= letter << (8 * (at - start))
        at += 1
    if at < end and data[at] != _SPACE:
        return False
    found = False
    for each in _WORDS:
        if each == word:
            found = True
    if not found:
        return False
    if rules & PLAIN_TEXTS:
        for place in range(at, end):
            byte = int(data[place])
            if byte >= _ASCII_END or byte in (_VARIABLE, _STATEMENT_END):
                return False
            if byte == _STAR and data[place - 1] == _SLASH:
                return False
    if word != _SELECT:
        return True
    for place in range(at, end - 3):
        letter = int(data[place]) | 0x20
        if _LETTER_B <= letter <= _LETTER_T:
            four = load_u32(data, place) | _LOWER
            for each in _ASKING:
                if each == four:
                    return False
    return True


@register_jitable
def is_of_word(byte: int) -> bool:
    """True if a byte of ASCII may stand in a name."""
    letter = byte | 0x20
    if _LETTER_A <= letter <= _LETTER_Z or _DIGIT_0 <= byte <= _DIGIT_9:
        return True
    return byte in (_UNDERSCORE, _DOLLAR)


@register_jitable
def string_end(data: Bytes, at: int, end: int) -> int:
    """The place behind a plain string that begins at a quote; -1 for one that may be read otherwise."""
    at += 1
    while at < end and data[at] != _QUOTE:
        if data[at] >= _ASCII_END or data[at] == _BACKSLASH or data[at] < _SPACE:
            return -1
        at += 1
    if at >= end:
        return -1
    at += 1
    if at < end and (data[at] == _QUOTE or is_of_word(data[at])):
        return -1
    return at


@register_jitable
def form_of(data: Bytes, start: int, end: int, form: Bytes) -> int:
    """Write the form of a text: the text with one byte in the place of each literal.

    Texts of the same form are the same but for literals, however the session reads them: what may be read
    in different ways has no form. Numbers that begin with 0 or are no plain integers stay as they are.

    Args:
        data: The buffer with the text.
        start: The place of the text's first byte.
        end: The place behind its last byte.
        form: Gets the form, at `FORM_AT`.

    Returns:
        The length of the form; 0 for no form.
    """
    if end - start > TEXT_LENGTH_MAX:
        return 0
    size = 0
    at = start
    before = _SPACE
    while at < end:
        byte = int(data[at])
        stop = at + 1
        mark = 0
        if byte == _QUOTE:
            stop = string_end(data, at, end)
            if stop < 0 or is_of_word(before) or before in (_QUOTE, _DOT):
                return 0
            mark = _STRING_FORM
        elif _DIGIT_0 <= byte <= _DIGIT_9:
            while stop < end and _DIGIT_0 <= data[stop] <= _DIGIT_9:
                stop += 1
            behind = int(data[stop]) if stop < end else _SPACE
            is_apart = not (is_of_word(before) or before in (_QUOTE, _DOT))
            if (
                byte != _DIGIT_0
                and is_apart
                and not is_of_word(behind)
                and behind not in (_QUOTE, _DOT)
            ):
                mark = _NUMBER_FORM
        elif byte == _DASH:
            if before == _DASH:
                return 0
        elif not is_of_word(byte) and byte not in _PUNCTUATION:
            return 0
        length = 1 if mark else stop - at
        if size + length > FORM_MAX:
            return 0
        for place in range(length):
            form[FORM_AT + size + place] = mark or data[at + place]
        size += length
        before = byte
        at = stop
    return size


@register_jitable
def known_text(data: Bytes, start: int, end: int, texts: Bytes, adds: bool) -> int:  # noqa: FBT001
    """The number of a text's form among those that are known; -1 for none.

    Args:
        data: The buffer with the text.
        start: The place of the text's first byte.
        end: The place behind its last byte.
        texts: The forms, as in `passing_layout`.
        adds: True if a form is added that is not known yet, while there is room.
    """
    if not passes_text(data, start, end, PLAIN_TEXTS):
        return -1
    size = form_of(data, start, end, texts)
    if not size:
        return -1
    number = _HASH_BEGIN
    for place in range(size):
        number = (number * _HASH_FACTOR + int(texts[FORM_AT + place])) & _HASH_MASK
    for probe in range(_PROBES):
        slot = (number + probe) % TEXTS_MAX
        begin = (slot + 1) * TEXT_SIZE
        length = load_u16(texts, begin)
        if not length and adds:
            texts[begin] = size & 0xFF
            texts[begin + 1] = size >> 8
            for place in range(size):
                texts[begin + FORM_AT + place] = texts[FORM_AT + place]
            return slot
        if length == size:
            is_same = True
            for place in range(size):
                if texts[begin + FORM_AT + place] != texts[FORM_AT + place]:
                    is_same = False
                    break
            if is_same:
                return slot
    return -1
