"""Expressions of SQL, as far as they can be computed without a server.

`compile_expression` reads a text once; the result can be evaluated many times. What it does not
understand, and what only a server knows, evaluates to `UNKNOWN`, never to a guess.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from binlane.session.programs.expression_environment import Compiled, Environment
from binlane.session.programs.expression_reader import ExpressionReader
from binlane.session.programs.values import UNKNOWN, Text, Value
from binlane.sql.cursor import Stopped
from binlane.sql.tokens import SqlSyntaxError, tokenise

_CACHE_SIZE: Final = 4096
_DIGITS_MAX: Final = 18
_PLAIN_STRING: Final = re.compile(r"'[^'\\]{0,1000}'")
"""A literal that is its own value; the many of VALUES would fill the cache."""
_LETTERS_MAX: Final = 20_000
"""Longer expressions are not computed."""


def evaluate(text: str, environment: Environment) -> Value:
    """The value of an expression; what it assigns and calls is done."""
    if text.isdecimal() and text.isascii() and len(text) <= _DIGITS_MAX:
        return int(text)
    if _PLAIN_STRING.fullmatch(text):
        return Text(text[1:-1], environment.collation)
    return compile_expression(text)(environment)


@lru_cache(_CACHE_SIZE)
def compile_expression(text: str) -> Compiled:
    """Read an expression; one that is not understood is unknown."""
    if len(text) > _LETTERS_MAX:
        return _unknown
    try:
        reader = ExpressionReader(list(tokenise(text)))
        compiled = reader.expression()
        reader.cursor.expect_end()
    except (Stopped, SqlSyntaxError):
        return _unknown
    return compiled


def _unknown(_: Environment) -> Value:
    return UNKNOWN
