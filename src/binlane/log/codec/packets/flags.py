"""The protocol's numbers: commands, capabilities, server status."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class Command(IntEnum):
    """First byte of a packet that a client sends after its login."""

    SLEEP = 0x00
    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    FIELD_LIST = 0x04
    CREATE_DB = 0x05
    DROP_DB = 0x06
    REFRESH = 0x07
    SHUTDOWN = 0x08
    STATISTICS = 0x09
    PROCESS_INFO = 0x0A
    CONNECT = 0x0B
    PROCESS_KILL = 0x0C
    DEBUG = 0x0D
    PING = 0x0E
    TIME = 0x0F
    DELAYED_INSERT = 0x10
    CHANGE_USER = 0x11
    BINLOG_DUMP = 0x12
    TABLE_DUMP = 0x13
    CONNECT_OUT = 0x14
    REGISTER_SLAVE = 0x15
    STMT_PREPARE = 0x16
    STMT_EXECUTE = 0x17
    STMT_SEND_LONG_DATA = 0x18
    STMT_CLOSE = 0x19
    STMT_RESET = 0x1A
    SET_OPTION = 0x1B
    STMT_FETCH = 0x1C
    DAEMON = 0x1D
    BINLOG_DUMP_GTID = 0x1E
    RESET_CONNECTION = 0x1F
    STMT_BULK_EXECUTE = 0xFA


class Capability(IntFlag):
    """Protocol parts that both sides must agree on. MariaDB servers do not set LONG_PASSWORD."""

    LONG_PASSWORD = 1 << 0
    FOUND_ROWS = 1 << 1
    LONG_FLAG = 1 << 2
    CONNECT_WITH_DB = 1 << 3
    NO_SCHEMA = 1 << 4
    COMPRESS = 1 << 5
    ODBC = 1 << 6
    LOCAL_FILES = 1 << 7
    IGNORE_SPACE = 1 << 8
    PROTOCOL_41 = 1 << 9
    INTERACTIVE = 1 << 10
    SSL = 1 << 11
    IGNORE_SIGPIPE = 1 << 12
    TRANSACTIONS = 1 << 13
    RESERVED = 1 << 14
    SECURE_CONNECTION = 1 << 15
    MULTI_STATEMENTS = 1 << 16
    MULTI_RESULTS = 1 << 17
    PS_MULTI_RESULTS = 1 << 18
    PLUGIN_AUTH = 1 << 19
    CONNECT_ATTRS = 1 << 20
    PLUGIN_AUTH_LENENC = 1 << 21
    CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22
    SESSION_TRACK = 1 << 23
    DEPRECATE_EOF = 1 << 24
    OPTIONAL_RESULTSET_METADATA = 1 << 25
    ZSTD_COMPRESSION = 1 << 26
    QUERY_ATTRIBUTES = 1 << 27
    MULTI_FACTOR_AUTHENTICATION = 1 << 28
    CAPABILITY_EXTENSION = 1 << 29
    SSL_VERIFY_SERVER_CERT = 1 << 30
    REMEMBER_OPTIONS = 1 << 31


class ExtendedCapability(IntFlag):
    """MariaDB's own capabilities, sent beside the others if LONG_PASSWORD is not set."""

    PROGRESS = 1 << 0
    COM_MULTI = 1 << 1
    STMT_BULK_OPERATIONS = 1 << 2
    EXTENDED_METADATA = 1 << 3
    CACHE_METADATA = 1 << 4
    BULK_UNIT_RESULTS = 1 << 5


class ServerStatus(IntFlag):
    """State of a session after a command."""

    IN_TRANSACTION = 0x0001
    AUTOCOMMIT = 0x0002
    MORE_RESULTS = 0x0008
    NO_GOOD_INDEX_USED = 0x0010
    NO_INDEX_USED = 0x0020
    CURSOR_EXISTS = 0x0040
    LAST_ROW_SENT = 0x0080
    DB_DROPPED = 0x0100
    NO_BACKSLASH_ESCAPES = 0x0200
    METADATA_CHANGED = 0x0400
    QUERY_WAS_SLOW = 0x0800
    PS_OUT_PARAMS = 0x1000
    IN_READ_ONLY_TRANSACTION = 0x2000
    SESSION_STATE_CHANGED = 0x4000
    ANSI_QUOTES = 0x8000


class DumpFlag(IntFlag):
    """Flags of COM_BINLOG_DUMP; 2 has a meaning of its own in either flavor."""

    NON_BLOCK = 0x0001
    SEND_ANNOTATE_ROWS = 0x0002
    HEARTBEAT_V2 = 0x0002
    THROUGH_GTID = 0x0004


NO_CAPABILITIES: Final = Capability(0)
NO_EXTENSIONS: Final = ExtendedCapability(0)
