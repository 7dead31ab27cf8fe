"""Catalogs as an older binlane left them."""

from __future__ import annotations

import sqlite3


def without_arrivals(connection: sqlite3.Connection) -> None:
    """Take out what version 12 brought, but for its number."""
    connection.execute("ALTER TABLE binlog_seeds DROP COLUMN is_arrival")


def without_cascades(connection: sqlite3.Connection) -> None:
    """Take out what versions 11 and 12 brought, but for their number."""
    without_arrivals(connection)
    connection.execute("ALTER TABLE binlogs DROP COLUMN follows_cascades")


def without_fills(connection: sqlite3.Connection) -> None:
    """Take out what versions 10 to 12 brought, but for their number."""
    without_cascades(connection)
    for table in ("binlog_fills", "binlog_seeds", "seed_source", "seed_block"):
        connection.execute(f"DROP TABLE {table}")


def without_compress(connection: sqlite3.Connection) -> None:
    """Take out what versions 9 to 12 brought, but for their number."""
    without_fills(connection)
    connection.execute("ALTER TABLE binlogs DROP COLUMN is_compressed")


def without_row_image(connection: sqlite3.Connection) -> None:
    """Take out what versions 8 to 12 brought, but for their number."""
    without_compress(connection)
    connection.execute("ALTER TABLE binlogs DROP COLUMN row_image")


def without_incidents(connection: sqlite3.Connection) -> None:
    """Take out what versions 7 to 12 brought, but for their number."""
    without_row_image(connection)
    for column in ("incidents", "unsearched_file", "unsearched_position"):
        connection.execute(f"ALTER TABLE binlogs DROP COLUMN {column}")
