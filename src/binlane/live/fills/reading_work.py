"""Messages between the thread that fills a binlog and the process that reads rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from binlane.binlogs.routing.routing_memory import StoredObject
from binlane.binlogs.seeds.seed_groups import SeedTransaction
from binlane.binlogs.seeds.spool_reading import ReadingLimits, ReadingProgress
from binlane.client.settings import ServerUrl
from binlane.log.codec.format import Format
from binlane.names import TableName
from binlane.positions import Position
from binlane.statements.scope.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingWork:
    """Read all tables of a scope into a folder; done are those that are there already.

    Attributes:
        url: The server and the account.
        password: The password of that account.
        folder: The folder for the rows; made if it is not there.
        scope: The tables that are to be read.
        limits: How the server may be read.
    """

    url: ServerUrl
    password: str
    folder: Path
    scope: Scope
    limits: ReadingLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class GivingWork:
    """Give the rows of a folder as of the end of the staging binlog.

    Attributes:
        url: The server and the account.
        password: The password of that account.
        folder: The folder that holds the rows.
        staging: The folder with the files of the staging binlog.
        files: The sizes of these files, oldest first, up to the place of the rows.
        scope: The tables that were to be read.
        format: The format of the source's events.
    """

    url: ServerUrl
    password: str
    folder: Path
    staging: Path
    files: Mapping[str, int]
    scope: Scope
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRead:
    """All rows are read.

    Attributes:
        high: A position that covers all that was visible while they were read; None without tables.
        refusals: Tables that cannot be had, and why.
    """

    high: Position | None
    refusals: Mapping[TableName, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinitions:
    """The statements that make what the rows are of.

    Attributes:
        databases: SHOW CREATE DATABASE of each.
        tables: SHOW CREATE TABLE of each, in the order in which they are made.
        others: Views, triggers, routines, events and sequences that the source has beside them, or
            had when the reading began.
    """

    databases: Mapping[str, str]
    tables: Mapping[TableName, str]
    others: frozenset[StoredObject] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRefused:
    """Something went wrong.

    Attributes:
        message: The fault in a sentence.
        hint: What somebody can do about it.
        tables: The tables whose reading starts over; none where that does not help.
        starts_over: True if everything is to be read anew: another table has come.
        is_final: True if trying again does not help.
    """

    message: str
    hint: str = ""
    tables: tuple[TableName, ...] = ()
    starts_over: bool = False
    is_final: bool = False


class RowsEnd:
    """All rows were given."""


RowsTold = ReadingProgress | RowsRead | TableDefinitions | SeedTransaction | RowsRefused | RowsEnd
