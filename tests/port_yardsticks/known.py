"""Records in which binlogs differ from a server's log and should not: what is still to be mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KNOWN: Final[Mapping[str, str]] = {
    "ps": "EXECUTE IMMEDIATE in a transaction makes rows of the transaction",
    "tmp_create": "a temporary table in READ COMMITTED, or whose group ends as another kind does",
    "tmp_create_m": "as tmp_create",
    "tmp_create_select": "as tmp_create",
    "ddl_create_replace_select": "CREATE ... SELECT as a text has the group of its rows around it",
    "ddl_create_select_uuid": "as ddl_create_replace_select",
    "ddl_create_select_limit": "as ddl_create_replace_select",
    "ddl_create_select_autoinc": "as ddl_create_replace_select",
    "ddl_or_replace_select": "as ddl_create_replace_select",
    "analyze": "on MySQL a transaction that another statement commits is rows",
    "analyze_nolog": "as analyze",
    "repair": "as analyze",
    "flush_tables": "as analyze",
    "create_db": "as analyze",
    "create_view": "as analyze",
    "ddl_create_m": "as analyze",
    "ddl_create_exists": "as analyze",
    "lock_tables": "as analyze",
    "ins:tg": "MERGE tables on MySQL",
    "ins_unsafe:tg": "as ins:tg",
    "upd:tg": "as ins:tg",
    "del:tg": "as ins:tg",
}
"""By name of a record: what is wrong."""
