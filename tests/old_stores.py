"""Catalogs as an older binlane left them."""

from __future__ import annotations

import sqlite3


def without_compress(connection: sqlite3.Connection) -> None:
    """Take out what version 9 brought, but for its number."""
    connection.execute("ALTER TABLE binlogs DROP COLUMN is_compressed")


def without_row_image(connection: sqlite3.Connection) -> None:
    """Take out what versions 8 and 9 brought, but for their number."""
    without_compress(connection)
    connection.execute("ALTER TABLE binlogs DROP COLUMN row_image")


def without_incidents(connection: sqlite3.Connection) -> None:
    """Take out what versions 7 to 9 brought, but for their number."""
    without_row_image(connection)
    for column in ("incidents", "unsearched_file", "unsearched_position"):
        connection.execute(f"ALTER TABLE binlogs DROP COLUMN {column}")
