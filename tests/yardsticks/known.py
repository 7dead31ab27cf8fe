"""Recorded decisions that cannot be told from the text and the stated outcome, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DATA: Final[Mapping[str, Mapping[str, str]]] = {"mariadb": {}, "mysql": {}}
"""By flavor and name of the records: what only the recording's own circumstances explain."""


def expected_mismatches(flavor: str) -> frozenset[str]:
    """Names of the records of a flavor that may differ."""
    return frozenset(DATA[flavor])
