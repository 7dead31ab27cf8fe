"""JSON text with everything that Python's own encoder cannot say.

DECIMALs keep all their digits as numbers; a FLOAT or DOUBLE that JSON has no number for is a
string; bytes, and text of bytes that mean nothing in their character set (held as lone surrogates),
are `{"base64": …}`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final


class _NotPlainError(Exception):
    """Python's encoder met a value that it cannot write."""


def json_text(value: object) -> str:
    """One line of JSON, without a line end.

    Args:
        value: Mappings, lists, tuples, text, bytes, numbers, DECIMALs, booleans and None.
    """
    try:
        text = _ENCODER.encode(value)
    except (_NotPlainError, ValueError):
        return _encode(value)
    return text if text.isascii() or _is_utf8(text) else _encode(value)


def base64_text(data: bytes) -> str:
    """Return bytes in base64."""
    return base64.b64encode(data).decode()


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64_text(value)}
    raise _NotPlainError(type(value))


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
_SCALAR_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encode(value: object) -> str:
    """As `json_text`, in Python and so many times as slowly."""
    if isinstance(value, Mapping):
        members = (f"{_key(key)}: {_encode(member)}" for key, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_encode, value)) + "]"
    if isinstance(value, str) and not _is_utf8(value):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return _encode({"base64": base64_text(value)})
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return _SCALAR_ENCODER.encode(value)


def _key(key: object) -> str:
    r"""Return a name; bytes that are no text in it are shown as `\\xNN`."""
    text = str(key)
    if not _is_utf8(text):
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _SCALAR_ENCODER.encode(text)
