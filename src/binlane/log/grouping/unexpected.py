"""The sign by which the kernels' callers leave a file to the reference decoder."""

from __future__ import annotations


class UnexpectedError(Exception):
    """The kernels meet what they are not made for: the reference decoder has to look at it."""
