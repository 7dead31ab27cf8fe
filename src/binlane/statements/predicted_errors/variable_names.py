"""System variables that a statement names and no server has."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from binlane.statements.policy.refusals import Refusal, refusal

_SINGLE_WORDS: Final = frozenset(
    (
        *("autocommit", "basedir", "datadir", "flush", "hostname", "identity", "license", "old"),
        *("port", "profiling", "socket", "timestamp", "tmpdir", "userstat", "version"),
        *("names", "password", "role"),  # SET's own words
    )
)
"""All system variables whose name is one word: those of plugins begin with the plugin's."""


def is_no_variable(name: str) -> bool:
    """Return True if surely no system variable has a name, given in small letters."""
    return name.isidentifier() and "_" not in name and name not in _SINGLE_WORDS


_BEARING: Final = frozenset(
    (
        *("auto_increment_increment", "auto_increment_offset", "autocommit"),
        *("binlog_annotate_row_events", "binlog_direct_non_transactional_updates"),
        *("binlog_format", "binlog_row_image", "binlog_rows_query_log_events"),
        *("character_set_client", "character_set_connection", "character_set_database"),
        *("character_set_server", "collation_connection", "collation_database"),
        *("collation_server", "completion_type", "default_storage_engine"),
        *("default_tmp_storage_engine", "enforce_gtid_consistency"),
        *("explicit_defaults_for_timestamp", "foreign_key_checks", "gtid_domain_id", "gtid_mode"),
        *("gtid_next", "gtid_seq_no", "innodb_autoinc_lock_mode", "insert_id", "last_insert_id"),
        *("lc_time_names", "log_bin_trust_function_creators", "lower_case_table_names"),
        *("old_mode", "pseudo_thread_id", "rand_seed1", "rand_seed2", "server_id"),
        *("skip_replication", "sql_auto_is_null", "sql_generate_invisible_primary_key"),
        *("sql_if_exists", "sql_log_bin", "sql_mode", "sql_notes", "sql_safe_updates"),
        *("storage_engine", "time_zone", "timestamp", "transaction_isolation"),
        *("transaction_read_only", "tx_isolation", "tx_read_only", "unique_checks"),
    )
)
"""Variables that bear on logging, or that scripts set for it."""
_NEIGHBOURS: Final = frozenset(("read_only", "server_uid", "server_uuid"))
"""Other variables of MariaDB 10.11 and MySQL 9.7 whose names are near to one of `_BEARING`."""
_NEAR: Final = 0.85


def unknown_variable(name: str) -> Refusal | None:
    """Return 1193 for a name that no variable has, or that is nearly the name of one in `_BEARING`.

    Other names are not judged unless they are one word: plugins have variables of their own.
    """
    if is_no_variable(name):
        return refusal(1193, name)
    known = _BEARING | _NEIGHBOURS
    if name in known or not name.isidentifier():
        return None
    near = get_close_matches(name, _BEARING, n=1, cutoff=_NEAR)
    if not near:
        return None
    message = f"Unknown system variable '{name}' (is {near[0]} meant?)"
    return Refusal(1193, "HY000", "ER_UNKNOWN_SYSTEM_VARIABLE", message)
