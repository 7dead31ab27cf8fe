"""Functions and system variables whose value a replica may not repeat.

Source: `set_stmt_unsafe` in item_create.cc and sql_yacc.yy, and the NOT_IN_BINLOG flags of
sys_vars.cc, of MariaDB 10.11/11.8 and MySQL 9.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from binlane.sql.effects import StatementKind
from binlane.sql.facts import VariableScope

if TYPE_CHECKING:
    from binlane.policy.server import Server
    from binlane.sql.facts import FunctionUse, SystemVariableUse

_UNSAFE_IN_BOTH: Final = frozenset(
    {
        *("FOUND_ROWS", "ROW_COUNT", "SLEEP", "SYSDATE", "LOAD_FILE", "RANDOM_BYTES"),
        *("GET_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS"),
        *("USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_USER"),
        *("UUID", "UUID_SHORT", "VERSION", "MASTER_POS_WAIT"),
    }
)
MARIADB_UNSAFE_FUNCTIONS: Final = _UNSAFE_IN_BOTH | {
    *("MASTER_GTID_WAIT", "BINLOG_GTID_POS", "CURRENT_ROLE"),
    *("SYS_GUID", "UUID_V4", "UUID_V7", "JSON_TABLE"),
    *("NEXTVAL", "LASTVAL"),
}
MYSQL_UNSAFE_FUNCTIONS: Final = _UNSAFE_IN_BOTH | {
    *("AES_ENCRYPT", "AES_DECRYPT", "ICU_VERSION", "RAND"),
    *("SOURCE_POS_WAIT", "WAIT_FOR_EXECUTED_GTID_SET"),
}
_SAFE_VARIABLES: Final = frozenset(
    {
        *("auto_increment_increment", "auto_increment_offset"),
        *("character_set_client", "character_set_connection"),
        *("character_set_database", "character_set_server"),
        *("collation_connection", "collation_database", "collation_server"),
        *("foreign_key_checks", "identity", "last_insert_id", "lc_time_names"),
        *("pseudo_thread_id", "rand_seed1", "rand_seed2", "sql_auto_is_null"),
        *("time_zone", "timestamp", "unique_checks"),
    }
)
MARIADB_SAFE_VARIABLES: Final = _SAFE_VARIABLES | {
    *("check_constraint_checks", "explicit_defaults_for_timestamp", "sql_if_exists"),
    "system_versioning_insert_history",
}
MYSQL_SAFE_VARIABLES: Final = _SAFE_VARIABLES | {
    *("default_collation_for_utf8mb4", "default_table_encryption"),
    *("generated_random_password_length", "immediate_server_version"),
    *("original_commit_timestamp", "original_server_version"),
    *("partial_revokes", "xa_detach_on_prepare"),
}


def is_unsafe_function(use: FunctionUse, kind: StatementKind, server: Server) -> bool:
    """Whether a built-in function makes a statement unsafe.

    Args:
        use: The call.
        kind: Of the statement whose text it stands in. MariaDB takes RAND for safe in INSERT,
            whose seeds are logged, and ROWNUM for unsafe only where rows are changed in place.
        server: Whose functions.
    """
    if use.database is not None:
        return False
    name = use.upper_name
    if not server.is_mariadb:
        return name in MYSQL_UNSAFE_FUNCTIONS
    if name == "RAND":
        return kind is not StatementKind.INSERT
    if name == "ROWNUM":
        return kind in (StatementKind.UPDATE, StatementKind.DELETE)
    return name in MARIADB_UNSAFE_FUNCTIONS


def is_unsafe_variable(use: SystemVariableUse, server: Server) -> bool:
    """Whether reading a system variable makes a statement unsafe: most do, all global ones."""
    if use.scope in (VariableScope.GLOBAL, VariableScope.PERSIST):
        return True
    safe = MARIADB_SAFE_VARIABLES if server.is_mariadb else MYSQL_SAFE_VARIABLES
    return use.name not in safe
