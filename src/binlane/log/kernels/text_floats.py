"""Numbers with a binary point as text, digit for digit as C's printf gives them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from binlane.log.kernels import text_layout as lay
from binlane.log.kernels.text_memory import store_u64
from binlane.log.kernels.text_numbers import (
    DOT,
    FAILED,
    MINUS,
    TENS,
    ZERO,
    number_width,
    put_group,
    put_number,
    put_padded,
)

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_BILLION = 1_000_000_000
_LIMBS = lay.SCRATCH
_DIGITS_AT = lay.SCRATCH + lay.FLOAT_DIGITS
# Bits behind the point that leave room for three digits more.
_BITS_MAX = 56
_HIGH_DIGITS = 9
_LEADING_ZEROS_MAX = 3


@register_jitable
def put_float(out: Bytes, at: int, bits: int, size: int, precision: int, state: Longs) -> int:
    """A FLOAT or DOUBLE as `%.{precision}g` gives it, from the exact value, half to even.

    Args:
        out: The buffer that receives the text.
        at: The text's position in that buffer.
        bits: The bits of the value.
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
    end = _put_usual(out, at, mantissa, -(exponent + shift), precision)
    if end >= 0:
        return end
    count, point = _exact_digits(mantissa, exponent + shift, precision, state)
    count, point = _round_digits(state, count, point, precision)
    return _put_digits(out, at, state, count, point, precision)


@register_jitable
def _put_usual(out: Bytes, at: int, mantissa: int, bits: int, precision: int) -> int:
    """`mantissa / 2**bits` where that is of usual size; FAILED where it is not.

    Digits are split off the fraction without a loss: times ten is times five and one bit less.
    """
    if bits < 0 or bits > _BITS_MAX:
        return FAILED
    whole = mantissa >> bits
    fraction = mantissa & ((1 << bits) - 1)
    if whole == 0:
        count = precision
        bound = 10 * fraction
        while bound >> bits == 0:
            count += 1
            if count > precision + _LEADING_ZEROS_MAX:
                return FAILED
            bound *= 10
    else:
        count = precision - _width(whole)
        if count < 0:
            return FAILED
    high_count = min(count, _HIGH_DIGITS)
    high, fraction, bits = _split_digits(fraction, bits, high_count)
    low, fraction, bits = _split_digits(fraction, bits, count - high_count)
    # To the nearest, half to even.
    last = low if count > high_count else (high if count else whole)
    half = 1 << (bits - 1) if bits else 1
    if fraction > half or (fraction == half and last & 1):
        low += 1
        if low == TENS[count - high_count]:
            low = 0
            high += 1
        if high == TENS[high_count]:
            high = 0
            whole += 1
            if whole == TENS[min(precision, 18)]:
                return FAILED
    at = put_number(out, at, whole)
    if count:
        out[at] = DOT
        at = put_group(out, at + 1, high, high_count)
        rest = count - high_count
        if rest > 8:
            at = put_padded(out, at, low // 100_000_000, rest - 8)
            at = put_padded(out, at, low % 100_000_000, 8)
        elif rest:
            at = put_padded(out, at, low, rest)
        while out[at - 1] == ZERO:
            at -= 1
        if out[at - 1] == DOT:
            at -= 1
    return at


@register_jitable(forceinline=True)
def _width(value: int) -> int:
    """Digits of a number below 10**16."""
    if value < 100_000_000:
        return number_width(value)
    return 8 + number_width(value // 100_000_000)


@register_jitable(forceinline=True)
def _split_digits(fraction: int, bits: int, count: int) -> tuple[int, int, int]:
    """Return the next digits of `fraction / 2**bits` as a number, and the rest."""
    digits = 0
    while count > 0:
        step = min(count, 3)
        fraction *= 125 if step == 3 else (25 if step == 2 else 5)
        if bits > step:
            bits -= step
            digits = digits * TENS[step] + (fraction >> bits)
            fraction &= (1 << bits) - 1
        else:
            digits = digits * TENS[step] + (fraction << (step - bits))
            fraction, bits = 0, 0
        count -= step
    return digits, fraction, bits


@register_jitable
def _put_special(out: Bytes, at: int, mantissa: int) -> int:
    """Write `inf` or `nan`."""
    store_u64(out, at, 0x6E616E if mantissa else 0x666E69)
    return at + 3


@register_jitable
def _exact_digits(mantissa: int, exponent: int, precision: int, state: Longs) -> tuple[int, int]:
    """Write digits of mantissa * 2**exponent from `_DIGITS_AT` on, at least one more than needed.

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
            # The rest is not 0, and lies behind all digits that rounding looks at.
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
    """Drop the zeros before the first digit."""
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
