"""The codes of the format: event types, column types, flags, checksum algorithms, flavors."""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import Final


class Flavor(Enum):
    """The dialect of the format: it decides collation ids, GTIDs and the codes above 41."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


class ChecksumAlgorithm(IntEnum):
    """The algorithm byte at the end of a FORMAT_DESCRIPTION event."""

    NONE = 0
    CRC32 = 1
    UNDEFINED = 255


class EventType(IntEnum):
    """Type codes of both flavors, by the names that `cat` prints (events.md §2)."""

    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID_LOG = 33
    ANONYMOUS_GTID_LOG = 34
    PREVIOUS_GTIDS_LOG = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE_LOG = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED_LOG = 42
    LARGE_TRANSACTION_HEADER = 43
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171
    PARTIAL_ROW_DATA = 172


class ColumnType(IntEnum):
    """Column type codes of TABLE_MAP (events.md §5.1)."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    TYPED_ARRAY = 20
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


COUNTED_STRINGS: Final = frozenset(
    {
        ColumnType.STRING,
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.VARCHAR_COMPRESSED,
    }
)
"""Types whose values come behind a length of one or two bytes, by the column's longest value."""

COUNTED_BLOBS: Final = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB_COMPRESSED,
        ColumnType.GEOMETRY,
        ColumnType.VECTOR,
        ColumnType.JSON,
    }
)
"""Types whose values come behind a length of as many bytes as their metadata says."""


ROWS_TYPES: Final = frozenset(
    {
        EventType.WRITE_ROWS_V1,
        EventType.UPDATE_ROWS_V1,
        EventType.DELETE_ROWS_V1,
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.WRITE_ROWS_COMPRESSED_V1,
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        EventType.DELETE_ROWS_COMPRESSED_V1,
        EventType.WRITE_ROWS_COMPRESSED,
        EventType.UPDATE_ROWS_COMPRESSED,
        EventType.DELETE_ROWS_COMPRESSED,
        EventType.PARTIAL_UPDATE_ROWS,
    }
)
"""Types of events that hold rows of a table, of both servers; not those of before their first releases."""


class HeaderFlag(IntFlag):
    """Flags of the common header."""

    BINLOG_IN_USE = 0x0001
    FORCED_ROTATE = 0x0002
    THREAD_SPECIFIC = 0x0004
    SUPPRESS_USE = 0x0008
    UPDATE_TABLE_MAP_VERSION = 0x0010
    ARTIFICIAL = 0x0020
    RELAY_LOG = 0x0040
    IGNORABLE = 0x0080
    NO_FILTER = 0x0100
    MTS_ISOLATE = 0x0200
    ACCEPT_OWN = 0x4000
    SKIP_REPLICATION = 0x8000


class RowsFlag(IntFlag):
    """Flags of a rows event."""

    STMT_END = 0x01
    NO_FOREIGN_KEY_CHECKS = 0x02
    RELAXED_UNIQUE_CHECKS = 0x04
    COMPLETE_ROWS = 0x08
    USE_SQL_FOREIGN_KEY = 0x10
    NO_CHECK_CONSTRAINT_CHECKS = 0x80


class GtidFlag(IntFlag):
    """`flags2` of MariaDB's GTID event."""

    STANDALONE = 1
    GROUP_COMMIT_ID = 2
    TRANSACTIONAL = 4
    ALLOW_PARALLEL = 8
    WAITED = 16
    DDL = 32
    PREPARED_XA = 64
    COMPLETED_XA = 128


class GtidExtraFlag(IntFlag):
    """`flags_extra` of MariaDB's GTID event (10.8+)."""

    MULTI_ENGINE = 1
    START_ALTER = 2
    COMMIT_ALTER = 4
    ROLLBACK_ALTER = 8
    THREAD_ID = 0x10


UNDONE_ALTER: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
"""Phases of an ALTER without effect: only the commit counts, which repeats the statement."""
ALTER_PHASES: Final = UNDONE_ALTER | GtidExtraFlag.COMMIT_ALTER
"""Bits that say that a group is a phase of an ALTER."""
