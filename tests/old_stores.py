"""Catalogs as an older binlane left them."""

from __future__ import annotations

import sqlite3


def without_incidents(connection: sqlite3.Connection) -> None:
    """Take out what version 7 brought, but for its number."""
    for column in ("incidents", "unsearched_file", "unsearched_position"):
        connection.execute(f"ALTER TABLE binlogs DROP COLUMN {column}")
