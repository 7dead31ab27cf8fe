"""Numbers as text, digit for digit as C's printf gives them.

Every function writes into a buffer at a position and gives the position behind what it wrote;
whoever calls it has made sure that `VALUE_ROOM` bytes are free.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.kernels import text_layout as lay
from binlane.kernels.memory import load_be
from binlane.kernels.text_memory import store_u64

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

VALUE_ROOM = 512
BLANK, MINUS, DOT, ZERO = 32, 45, 46, 48
FAILED = -1
_BILLION = 1_000_000_000
_LIMBS = lay.SCRATCH
_DIGITS_AT = lay.SCRATCH + lay.FLOAT_DIGITS


@register_jitable(forceinline=True)
def eight_digits(value: int) -> int:
    """A number below 10**8 as eight characters, the first one in the lowest byte."""
    pairs = value // 10_000 | (value % 10_000) << 32
    hundreds = (pairs * 10_486 >> 20) & 0x7F0000007F
    pairs = hundreds | (pairs - 100 * hundreds) << 16
    tens = (pairs * 103 >> 10) & 0x000F000F000F000F
    return (tens | (pairs - 10 * tens) << 8) + 0x3030303030303030


@register_jitable(forceinline=True)
def put_padded(out: Bytes, at: int, value: int, width: int) -> int:
    """A number with so many digits, at most 8, zeros before it."""
    store_u64(out, at, eight_digits(value) >> 8 * (8 - width))
    return at + width


@register_jitable
def _width(value: int) -> int:
    """Digits of a number below 10**8."""
    if value < 10_000:
        if value < 100:
            return 1 if value < 10 else 2
        return 3 if value < 1000 else 4
    if value < 1_000_000:
        return 5 if value < 100_000 else 6
    return 7 if value < 10_000_000 else 8


@register_jitable(forceinline=True)
def _put_below_1e8(out: Bytes, at: int, value: int) -> int:
    return put_padded(out, at, value, _width(value))


@register_jitable
def put_number(out: Bytes, at: int, value: int) -> int:
    """A number that is not negative."""
    if value < 100_000_000:
        return _put_below_1e8(out, at, value)
    high = value // 100_000_000
    if high < 100_000_000:
        at = _put_below_1e8(out, at, high)
    else:
        at = _put_below_1e8(out, at, high // 100_000_000)
        at = put_padded(out, at, high % 100_000_000, 8)
    return put_padded(out, at, value % 100_000_000, 8)


@register_jitable
def put_unsigned(out: Bytes, at: int, value: int) -> int:
    """Eight bytes as a number without sign: one that is negative stands for 2**64 more."""
    if value >= 0:
        return put_number(out, at, value)
    tenth = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) // 5
    at = put_number(out, at, tenth)
    out[at] = ZERO + ((value - 10 * tenth) & 15)
    return at + 1


@register_jitable
def put_signed(out: Bytes, at: int, value: int) -> int:
    """A number with its sign."""
    if value >= 0:
        return put_number(out, at, value)
    out[at] = MINUS
    return put_unsigned(out, at + 1, -value)


@register_jitable(forceinline=True)
def put_integer(out: Bytes, at: int, value: int, size: int) -> int:
    """A column's integer; the log does not tell its sign, so a negative one is given both ways.

    Args:
        out: Where it goes.
        at: Position there.
        value: As if it were signed.
        size: Bytes that it has in the row, 1 to 8.
    """
    if value >= 0:
        return put_number(out, at, value)
    at = put_signed(out, at, value)
    out[at] = 32
    out[at + 1] = 40
    unsigned = value if size == 8 else value + (1 << 8 * size)
    at = put_unsigned(out, at + 2, unsigned)
    out[at] = 41
    return at + 1


@register_jitable
def put_hex8(out: Bytes, at: int, value: int) -> int:
    """Thirty-two bits as eight lower-case hexadecimal digits."""
    pairs = (value & 0xFFFF) << 32 | value >> 16
    pairs = (pairs & 0x000000FF000000FF) << 16 | (pairs >> 8 & 0x000000FF000000FF)
    digits = (pairs & 0x000F000F000F000F) << 8 | (pairs >> 4 & 0x000F000F000F000F)
    letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101
    store_u64(out, at, digits + 0x3030303030303030 + letters * 39)
    return at + 8


@register_jitable
def decimal_size(digits: int) -> int:
    """Bytes of so many decimal digits: nine in four bytes, fewer in as few as they need."""
    rest = digits % 9
    return digits // 9 * 4 + (rest + 1) // 2


@register_jitable
def put_decimal(out: Bytes, at: int, data: Bytes, start: int, precision: int, scale: int) -> int:
    """A DECIMAL; FAILED where the bytes are none, or a zero that is negative.

    Args:
        out: Where it goes.
        at: Position there.
        data: The row.
        start: Where the value begins, whose `decimal_size` is inside of `data`.
        precision: Digits in all.
        scale: Digits behind the point.
    """
    whole_digits = precision - scale
    sign = -1 if data[start] < 0x80 else 1
    if sign < 0:
        out[at] = MINUS
        at += 1
    begin = at
    position = start
    is_zero = True
    # Digits of the groups from the left: the odd one first before the point, last behind it.
    left = whole_digits
    while left > 0:
        digits = left % 9 or 9
        value = _decimal_group(data, position, digits, start, sign)
        if value < 0:
            return FAILED
        position += decimal_size(digits)
        left -= digits
        if at > begin:
            at = _put_group(out, at, value, digits)
        elif value:
            at = put_number(out, at, value)
        is_zero = is_zero and value == 0
    if at == begin:
        out[at] = ZERO
        at += 1
    if scale:
        out[at] = DOT
        at += 1
    left = scale
    while left > 0:
        digits = min(9, left)
        value = _decimal_group(data, position, digits, start, sign)
        if value < 0:
            return FAILED
        position += decimal_size(digits)
        left -= digits
        at = _put_group(out, at, value, digits)
        is_zero = is_zero and value == 0
    return FAILED if is_zero and sign < 0 else at


@register_jitable
def _decimal_group(data: Bytes, position: int, digits: int, start: int, sign: int) -> int:
    """Up to nine digits of a DECIMAL as a number; FAILED if it has more of them."""
    size = decimal_size(digits)
    value = load_be(data, position, size)
    if position == start:
        value ^= 1 << (8 * size - 1)
    if sign < 0:
        value ^= (1 << 8 * size) - 1
    limit = 1
    for _ in range(digits):
        limit *= 10
    return value if value < limit else FAILED


@register_jitable
def _put_group(out: Bytes, at: int, value: int, digits: int) -> int:
    if digits == 9:
        out[at] = ZERO + value // 100_000_000
        return put_padded(out, at + 1, value % 100_000_000, 8)
    return put_padded(out, at, value, digits)


@register_jitable
def put_float(out: Bytes, at: int, bits: int, size: int, precision: int, state: Longs) -> int:
    """A FLOAT or DOUBLE as `%.{precision}g` gives it, from the exact value, half to even.

    Args:
        out: Where it goes.
        at: Position there.
        bits: Of the value.
        size: Bytes that it has: 8 for a DOUBLE, 4 for a FLOAT.
        precision: Significant digits, at most 20.
        state: Has room to work in, from SCRATCH on.
    """
    if size == 8:
        exponent, mantissa = bits >> 52 & 0x7FF, bits & 0xFFFFFFFFFFFFF
        is_negative, special, shift, hidden = bits < 0, 0x7FF, -1075, 1 << 52
    else:
        exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
        is_negative, special, shift, hidden = bits >> 31 != 0, 0xFF, -150, 1 << 23
    if is_negative:
        out[at] = MINUS
        at += 1
    if exponent == special:
        return _put_special(out, at, mantissa)
    if exponent:
        mantissa |= hidden
    else:
        exponent = 1
    if mantissa == 0:
        out[at] = ZERO
        return at + 1
    count, point = _exact_digits(mantissa, exponent + shift, precision, state)
    count, point = _round_digits(state, count, point, precision)
    return _put_digits(out, at, state, count, point, precision)


@register_jitable
def _put_special(out: Bytes, at: int, mantissa: int) -> int:
    """`inf` and `nan`."""
    store_u64(out, at, 0x6E616E if mantissa else 0x666E69)
    return at + 3


@register_jitable
def _exact_digits(mantissa: int, exponent: int, precision: int, state: Longs) -> tuple[int, int]:
    """Digits of mantissa * 2**exponent from `_DIGITS_AT` on, at least one more than asked for.

    Gives how many, the last one 1 more than it is where lost digits follow an even number (only
    whether they are 0 matters to rounding), and the place of the point.
    """
    count = 0
    if exponent >= 0 or exponent > -53:
        count = _whole_digits(mantissa, exponent, state)
    point = count
    if exponent >= 0:
        return count, point
    limbs = (31 - exponent) // 32
    _split_fraction(mantissa, exponent, limbs, state)
    low = 0
    while low < limbs:
        if state[_LIMBS + low] == 0:
            low += 1
            continue
        if count > precision + 9:
            # What is left is not 0, and lies behind all digits that rounding looks at.
            state[_DIGITS_AT + count] = 1
            return count + 1, point
        carry = 0
        for limb in range(low, limbs):
            product = state[_LIMBS + limb] * _BILLION + carry
            state[_LIMBS + limb] = product & 0xFFFFFFFF
            carry = product >> 32
        if count == 0 and carry == 0:
            point -= 9
            continue
        count = _append_nine(state, count, carry)
        if count == 9 and point <= 0:
            count, point = _drop_zeros(state, point)
    return count, point


@register_jitable
def _drop_zeros(state: Longs, point: int) -> tuple[int, int]:
    """Zeros before the first digit are none of the digits."""
    zeros = 0
    while state[_DIGITS_AT + zeros] == 0:
        zeros += 1
    for index in range(9 - zeros):
        state[_DIGITS_AT + index] = state[_DIGITS_AT + index + zeros]
    return 9 - zeros, point - zeros


@register_jitable
def _append_nine(state: Longs, count: int, value: int) -> int:
    for index in range(8, -1, -1):
        state[_DIGITS_AT + count + index] = value % 10
        value //= 10
    return count + 9


@register_jitable
def _whole_digits(mantissa: int, exponent: int, state: Longs) -> int:
    """Digits of the part before the point, without zeros before them; gives how many."""
    if exponent <= 10:
        whole = mantissa << exponent if exponent >= 0 else mantissa >> -exponent
        limbs = 1
        state[_LIMBS + 0] = whole & 0xFFFFFFFF
        if whole >> 32:
            state[_LIMBS + 1] = whole >> 32
            limbs = 2
    else:
        limbs = _shift_left(mantissa, exponent, state)
    count = 0
    while limbs > 0 and state[_LIMBS + limbs - 1] == 0:
        limbs -= 1
    # From the last digit to the first, then turned round.
    while limbs > 0:
        rest = 0
        for limb in range(limbs - 1, -1, -1):
            value = rest << 32 | state[_LIMBS + limb]
            state[_LIMBS + limb] = value // _BILLION
            rest = value % _BILLION
        for _ in range(9):
            state[_DIGITS_AT + count] = rest % 10
            rest //= 10
            count += 1
        while limbs > 0 and state[_LIMBS + limbs - 1] == 0:
            limbs -= 1
    while count > 0 and state[_DIGITS_AT + count - 1] == 0:
        count -= 1
    for index in range(count // 2):
        other = _DIGITS_AT + count - 1 - index
        digit = state[_DIGITS_AT + index]
        state[_DIGITS_AT + index] = state[other]
        state[other] = digit
    return count


@register_jitable
def _shift_left(mantissa: int, exponent: int, state: Longs) -> int:
    """Shift a number left into limbs, lowest first; gives how many."""
    first, shift = exponent // 32, exponent % 32
    for limb in range(first):
        state[_LIMBS + limb] = 0
    low, high = (mantissa & 0xFFFFFFFF) << shift, (mantissa >> 32) << shift
    state[_LIMBS + first] = low & 0xFFFFFFFF
    middle = (low >> 32) + (high & 0xFFFFFFFF)
    state[_LIMBS + first + 1] = middle & 0xFFFFFFFF
    state[_LIMBS + first + 2] = (high >> 32) + (middle >> 32)
    return first + 3


@register_jitable
def _split_fraction(mantissa: int, exponent: int, limbs: int, state: Longs) -> None:
    """The part behind the point as limbs, lowest first; the point stands behind the highest."""
    for limb in range(limbs):
        state[_LIMBS + limb] = 0
    if exponent > -53:
        mantissa &= (1 << -exponent) - 1
    shift = 32 * limbs + exponent
    low, high = (mantissa & 0xFFFFFFFF) << shift, (mantissa >> 32) << shift
    state[_LIMBS + 0] = low & 0xFFFFFFFF
    middle = (low >> 32) + (high & 0xFFFFFFFF)
    if limbs > 1:
        state[_LIMBS + 1] = middle & 0xFFFFFFFF
    if limbs > 2:
        state[_LIMBS + 2] = (high >> 32) + (middle >> 32)


@register_jitable
def _round_digits(state: Longs, count: int, point: int, precision: int) -> tuple[int, int]:
    """Keep `precision` digits, half to even, and no zeros behind the last; count and point."""
    if count > precision:
        next_digit = state[_DIGITS_AT + precision]
        has_more = False
        for index in range(precision + 1, count):
            has_more = has_more or state[_DIGITS_AT + index] != 0
        is_odd = state[_DIGITS_AT + precision - 1] & 1 == 1
        count = precision
        if next_digit > 5 or (next_digit == 5 and (has_more or is_odd)):
            index = precision - 1
            while index >= 0 and state[_DIGITS_AT + index] == 9:
                index -= 1
            if index < 0:
                state[_DIGITS_AT] = 1
                return 1, point + 1
            state[_DIGITS_AT + index] += 1
            count = index + 1
    while count > 1 and state[_DIGITS_AT + count - 1] == 0:
        count -= 1
    return count, point


@register_jitable
def _put_digits(out: Bytes, at: int, state: Longs, count: int, point: int, precision: int) -> int:
    """The digits with their point, or with an exponent where that is shorter, as `%g` decides."""
    exponent = point - 1
    if exponent < -4 or exponent >= precision:
        point = 1
    if point <= 0:
        out[at] = ZERO
        out[at + 1] = DOT
        at += 2
        for _ in range(-point):
            out[at] = ZERO
            at += 1
        point = -1
    for index in range(count):
        if index == point:
            out[at] = DOT
            at += 1
        out[at] = ZERO + state[_DIGITS_AT + index]
        at += 1
    for _ in range(point - count):
        out[at] = ZERO
        at += 1
    if exponent < -4 or exponent >= precision:
        out[at] = 101
        out[at + 1] = MINUS if exponent < 0 else 43
        exponent = -exponent if exponent < 0 else exponent
        return put_padded(out, at + 2, exponent, 3 if exponent > 99 else 2)
    return at
