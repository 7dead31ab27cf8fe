"""Statements read by tests: by the grammars of both servers unless a test says which."""

from __future__ import annotations

from typing import Any

from binlane.statements.sql import reading
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.servers import Dialect


def read(text: str, *, database: str, **dialect: Any) -> StatementFacts:
    """The facts of a statement."""
    return reading.read(text, database=database, dialect=Dialect(**dialect))


def read_expression(text: str, *, database: str) -> StatementFacts:
    """The facts of an expression."""
    return reading.read_expression(text, database=database, dialect=Dialect())


def analyse(text: str, *, database: str, **dialect: Any) -> StatementEffects:
    """What a statement does to named objects."""
    return read(text, database=database, **dialect).effects
