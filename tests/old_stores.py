"""Catalogs as an older binlane left them."""

from __future__ import annotations

import sqlite3


def without_row_image(connection: sqlite3.Connection) -> None:
    """Take out what version 8 brought, but for its number."""
    connection.execute("ALTER TABLE binlogs DROP COLUMN row_image")


def without_incidents(connection: sqlite3.Connection) -> None:
    """Take out what versions 7 and 8 brought, but for their number."""
    without_row_image(connection)
    for column in ("incidents", "unsearched_file", "unsearched_position"):
        connection.execute(f"ALTER TABLE binlogs DROP COLUMN {column}")
