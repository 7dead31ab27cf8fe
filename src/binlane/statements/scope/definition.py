"""A binlog's definition: its name, id, scope, logging mode and row images, and what names are allowed.

Values only; `store` keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from binlane.errors import DefinitionError
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode, RowImage

NAME_LENGTH_MAX: Final = 64
LOG_ID_MAX: Final = 2**63 - 1
NAME_CHARACTERS: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.$-]*")
RESERVED_SUFFIX: Final = re.compile(r"\.(?:[0-9]+|index)\Z")
INTERNAL_NAME: Final = re.compile(r"@[a-z]+-[0-9]+")
"""The name of a binlog that is none of users': of one that keeps changes while rows are read."""
NAME_HINT: Final = (
    f"a name has 1 to {NAME_LENGTH_MAX} of the characters A-Z a-z 0-9 _ - . $, begins with a "
    "letter, digit or _, and does not end in .index or .digits, which its files do"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Definition of one binlog, as CREATE BINLOG gives it.

    Attributes:
        name: Unique name; the binlog's files are `<name>.000001` and so on.
        scope: Scope of the changes that the binlog logs.
        logging_mode: Value of the FORMAT clause: STATEMENT, ROW or MIXED.
        log_id: Identity that survives ALTER BINLOG and tells a binlog from a later one of the
            same name; 1 to 2^63-1.
        row_image: Value of ROW_IMAGE: the columns that row images hold.
        is_compressed: Value of COMPRESS: True if the binlog's files are compressed as the source
            compresses its own.
        follows_cascades: True with FOLLOW CASCADES: rows that foreign keys of outside parents
            change are derived, where they can be.
    """

    name: str
    scope: Scope
    logging_mode: LoggingMode
    log_id: int
    row_image: RowImage = RowImage.FULL
    is_compressed: bool = False
    follows_cascades: bool = False

    def __post_init__(self) -> None:
        """Refuse names that cannot be file names.

        Raises:
            DefinitionError: If the name is not allowed.
        """
        if not is_internal(self.name):
            check_name(self.name)
        assert 0 < self.log_id <= LOG_ID_MAX

    def __hash__(self) -> int:
        """Hash what tells nearly all definitions apart; routing looks some up at each commit."""
        return hash((self.log_id, self.name))


def is_internal(name: str) -> bool:
    """True for the name of a binlog that binlane keeps for itself, which no statement can name."""
    return INTERNAL_NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Refuse a binlog name that could not be the beginning of a file name.

    Raises:
        DefinitionError: If the name is not allowed.
    """
    if not name:
        problem = "is empty"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"has {len(name)} characters"
    elif not NAME_CHARACTERS.fullmatch(name):
        problem = "has characters that are not allowed"
    elif found := RESERVED_SUFFIX.search(name):
        problem = f"ends in {found.group()}"
    else:
        return
    raise DefinitionError(f"incorrect binlog name '{name}': it {problem}", hint=NAME_HINT)


def look_up(name: str, definitions: Mapping[str, Definition]) -> Definition:
    """The definition of a name.

    Args:
        name: Name as the user wrote it.
        definitions: Definitions of all binlogs by name.

    Raises:
        DefinitionError: If no binlog has the name; the message names those that exist.
    """
    definition = definitions.get(name)
    if definition is None:
        raise unknown_binlog(name, definitions)
    return definition


class UnknownBinlogError(DefinitionError):
    """A name that no binlog has.

    Attributes:
        binlog: Name that the user asked for.
    """

    def __init__(self, message: str, *, binlog: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.binlog = binlog


def unknown_binlog(name: str, names: Iterable[str] | None) -> UnknownBinlogError:
    """The error for a name that no binlog has.

    Args:
        name: Name that the user asked for.
        names: Existing names; None if the user must not see them.
    """
    message, hint = f"unknown binlog '{name}'", "names are case-sensitive"
    if names is not None:
        if existing := ", ".join(f"'{other}'" for other in sorted(names)):
            message, hint = (
                f"{message}; the binlogs are {existing}",
                f"{hint}; SHOW BINLOGS lists them",
            )
        else:
            message, hint = f"{message}; there are no binlogs", "make one with CREATE BINLOG"
    return UnknownBinlogError(message, binlog=name, hint=hint)


class DuplicateBinlogError(DefinitionError):
    """CREATE BINLOG of a name that is taken."""


def duplicate_binlog(name: str) -> DuplicateBinlogError:
    """The error for CREATE BINLOG of a name that is taken."""
    return DuplicateBinlogError(
        f"binlog '{name}' exists already",
        hint="change it with ALTER BINLOG, or say CREATE BINLOG IF NOT EXISTS",
    )
