"""The options of mariadb-binlog and mysqlbinlog that change the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from binlane.log.codec.types import Flavor


class Base64Output(Enum):
    """The choice of events that become BINLOG statements, which servers run: `--base64-output`."""

    AUTO = "auto"
    """Rows and the file's format: what replaying needs."""
    NEVER = "never"
    """No event; a rows event is an error, since without BINLOG the text would lose it."""
    DECODE_ROWS = "decode-rows"
    """No event; rows are only there as comments, with `verbose`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """Options of the text; the defaults are the official tools'.

    Attributes:
        verbose: 0 BINLOG statements only; 1 and more add pseudo-SQL for each row; 2 and more add
            each column's type.
        base64_output: The choice of events that become BINLOG statements.
        short_form: Statements only: no comments, no rows.
        hexdump: Every event's bytes as a comment.
        print_table_metadata: The columns of each TABLE_MAP as a comment.
        print_row_count: MariaDB: `# Number of rows: N` behind each statement's rows.
        print_row_event_positions: MariaDB: `# at N` before each event.
        skip_annotate: MariaDB: ANNOTATE_ROWS events are left out.
        skip_gtids: MySQL: leave out GTIDs, so that a server gives new ones.
        disable_log_bin: The client that runs the text does not log it.
        idempotent: MySQL: rows that exist already, or not any more, are no error.
        require_row_format: MySQL: the client refuses statements that row format has not; any in
            the log are an error.
        set_charset: Character set of the client that runs the text.
        rewrite_databases: Names of databases to print, by those in the log.
        load_directory: Directory of the files of LOAD DATA, which the text names; the system's
            directory for temporary files by default.
        starts_inside: MariaDB: the first file is not read from its beginning; without BINLOG statements
            its FORMAT_DESCRIPTION is left out then.
        restores_ids: MariaDB: the client gets its own server id and domain back behind the text, as
            some of what would have set them may be left out.
        flavor: Dialect to print; by default that of each file.
    """

    verbose: int = 0
    base64_output: Base64Output = Base64Output.AUTO
    short_form: bool = False
    hexdump: bool = False
    print_table_metadata: bool = False
    print_row_count: bool = True
    print_row_event_positions: bool = True
    skip_annotate: bool = False
    skip_gtids: bool = False
    disable_log_bin: bool = False
    idempotent: bool = False
    require_row_format: bool = False
    set_charset: str | None = None
    rewrite_databases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    load_directory: Path | None = None
    starts_inside: bool = False
    restores_ids: bool = False
    flavor: Flavor | None = None

    @property
    def prints_base64(self) -> bool:
        """True if rows become BINLOG statements."""
        return self.base64_output is Base64Output.AUTO and not self.short_form


@dataclass(slots=True, kw_only=True)
class Progress:
    """The state of a text between two events.

    Attributes:
        row_heads: MariaDB: first lines of the rows events of a statement that has not ended.
        row_bodies: Rows events of that statement in base64, with their TABLE_MAPs.
        row_comments: Comments with the rows of that statement.
        row_count: MariaDB: number of rows of that statement.
        values: MySQL: values that the next statement is told before it.
        has_gtid: MySQL: True if a GTID came.
        awaits_begin: MySQL: True if no statement came behind the GTID.
        in_transaction: MySQL: True if a transaction has begun and not ended.
        in_payload: MySQL: True if events of a payload came whose end was not told.
        server_version: MySQL: version of the server that the transaction was committed on; 0 if
            unknown.
    """

    row_heads: list[str] = field(default_factory=list)
    row_bodies: list[str] = field(default_factory=list)
    row_comments: list[str] = field(default_factory=list)
    row_count: int = 0
    values: list[str] = field(default_factory=list)
    has_gtid: bool = False
    awaits_begin: bool = False
    in_transaction: bool = False
    in_payload: bool = False
    server_version: int = 0
