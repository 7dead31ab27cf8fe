"""The sign by which the kernels' callers leave a file to the reference decoder."""

from __future__ import annotations


class UnexpectedError(Exception):
    """A kernel has met bytes that it does not support: the reference decoder must read them."""
