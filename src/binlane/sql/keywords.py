"""Words that queries and expressions are told apart by. Values only."""

from __future__ import annotations

from typing import Final

QUERY_WORDS: Final = frozenset(("SELECT", "WITH", "TABLE", "VALUES"))
"""What a query begins with, unless it is in parentheses."""

SET_OPERATIONS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT"))

JOIN_WORDS: Final = frozenset(
    ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "STRAIGHT_JOIN", "NATURAL", "FULL")
)

END_WORDS: Final = frozenset(
    (
        *("FROM", "INTO", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "FETCH"),
        *("PROCEDURE", "WINDOW", "ON", "USING", "RETURNING", "SET", "WITH", "SELECT", "OFFSET"),
        *("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "STRAIGHT_JOIN", "NATURAL"),
        *("UNION", "EXCEPT", "INTERSECT", "VALUES", "TABLE"),
        *("INSERT", "UPDATE", "DELETE", "REPLACE", "CALL", "CREATE", "DROP", "ALTER"),
    )
)
"""Outside of parentheses an expression ends before them, unless they are called as functions."""

CALLED_END_WORDS: Final = frozenset(("LEFT", "RIGHT", "INSERT", "REPLACE", "VALUES"))
"""End words that are functions before a parenthesis."""

CLAUSE_WORDS: Final = frozenset(
    (
        *("FROM", "FOR", "ORDER", "LIMIT", "OFFSET", "USING", "ON", "SET", "WITH", "RETURNING"),
        *("GROUP", "WINDOW"),
    )
)
"""End words that may stand in the parentheses of a function or window: TRIM(x FROM y)."""

NO_FUNCTIONS: Final = frozenset(
    (
        *("AND", "OR", "XOR", "NOT", "IN", "ANY", "SOME", "ALL", "EXISTS", "BETWEEN", "LIKE"),
        *("RLIKE", "REGEXP", "SOUNDS", "ESCAPE", "DIV", "IS", "NULL", "TRUE", "FALSE", "UNKNOWN"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "AS", "BY", "DISTINCT", "DISTINCTROW", "UNIQUE"),
        *("BINARY", "COLLATE", "INTERVAL", "ROW", "OVER", "OF", "MATCH", "AGAINST", "COLUMNS"),
        *("SEPARATOR", "WHERE", "HAVING", "RETURN", "DEFAULT", "PARTITION", "PATH", "ASC", "DESC"),
        *("RANGE", "ROWS", "GROUP", "ROLLUP", "ON", "USING", "VARCHAR", "DECIMAL", "DEC", "FIXED"),
        *("NUMERIC", "FLOAT", "DOUBLE", "REAL", "INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT"),
        *("MEDIUMINT", "VARBINARY", "NCHAR", "NVARCHAR", "BIT", "DATETIME", "ENUM", "SET", "TEXT"),
        *("BLOB", "SIGNED", "UNSIGNED", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT"),
        *("SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE", "LATERAL", "QUALIFY"),
        *("SQL_CALC_FOUND_ROWS", "DO", "KEY", "CHECK", "ALWAYS", "STORED", "VIRTUAL", "VALUES"),
    )
)
"""Words before a parenthesis that call nothing."""

CALLS_WITHOUT_PARENTHESES: Final = frozenset(
    (
        *("CURRENT_USER", "CURRENT_ROLE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"),
        *("LOCALTIME", "LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"),
    )
)

CLAUSE_GROUPS: Final = frozenset(("OVER", "AGAINST", "COLUMNS", "GROUP", "AS"))
"""Words before parentheses, calling nothing, that hold clauses."""

SEQUENCE_FUNCTIONS: Final = frozenset(("NEXTVAL", "SETVAL", "LASTVAL"))

ORACLE_SEQUENCE_MEMBERS: Final = frozenset(("NEXTVAL", "CURRVAL"))
"""`sequence.nextval` of sql_mode ORACLE."""

NO_ALIASES: Final = frozenset(
    (
        *("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "FETCH", "PROCEDURE", "ON"),
        *("USING", "RETURNING", "SET", "WITH", "SELECT", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT"),
        *("STRAIGHT_JOIN", "NATURAL", "UNION", "EXCEPT", "INTERSECT", "VALUES", "INTO", "FROM"),
        *("USE", "FORCE", "IGNORE", "PARTITION", "TABLESAMPLE", "AS", "AND", "OR"),
        *("KEY", "INDEX", "CASCADE", "RESTRICT", "BEFORE"),
    )
)
"""Words that are no alias of a table without AS."""

RESERVED: Final = frozenset(
    (
        *(
            "SELECT",
            "WITH",
            "TABLE",
            "VALUES",
            "FROM",
            "WHERE",
            "GROUP",
            "HAVING",
            "ORDER",
            "LIMIT",
        ),
        *("FOR", "LOCK", "PROCEDURE", "ON", "USING", "SET", "JOIN", "INNER", "CROSS", "LEFT"),
        *("RIGHT", "STRAIGHT_JOIN", "NATURAL", "UNION", "INTO", "USE", "FORCE", "IGNORE", "AS"),
        *("PARTITION", "AND", "OR", "NOT", "IN", "IS", "NULL", "KEY", "INDEX", "CASCADE", "CASE"),
        *("RESTRICT", "INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "WHEN"),
        *("THEN", "ELSE", "DISTINCT", "BETWEEN", "LIKE", "EXISTS", "BY", "TO", "DEFAULT", "IF"),
        *("LOAD", "CALL", "GRANT", "REVOKE", "TRIGGER", "UNIQUE", "PRIMARY", "FOREIGN", "CHECK"),
        *("CONSTRAINT", "COLLATE", "INTERVAL"),
    )
)
"""Words that every server refuses as a table's name without quotes."""

SELECT_OPTIONS: Final = frozenset(
    (
        *("ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT"),
        *("SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE"),
        "SQL_CALC_FOUND_ROWS",
    )
)

EXPORT_WORDS: Final = frozenset(
    (
        *("FIELDS", "COLUMNS", "TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED", "BY", "LINES"),
        *("STARTING", "CHARACTER", "SET", "CHARSET", "FORMAT"),
    )
)
"""What stands behind INTO OUTFILE 'file'."""

ALTER_ACTIONS: Final = frozenset(
    (
        *("ADD", "ALTER", "CHANGE", "MODIFY", "DROP", "RENAME", "DISABLE", "ENABLE", "ORDER"),
        *("CONVERT", "DISCARD", "IMPORT", "FORCE", "LOCK", "ALGORITHM", "WITH", "WITHOUT"),
        *("PARTITION", "REMOVE", "REORGANIZE", "COALESCE", "ANALYZE", "CHECK", "OPTIMIZE"),
        *("REBUILD", "REPAIR", "TRUNCATE", "EXCHANGE", "SECONDARY_LOAD", "SECONDARY_UNLOAD"),
        *("UPGRADE", "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHARACTER", "CHARSET"),
        *("CHECKSUM", "COLLATE", "COMMENT", "COMPRESSION", "CONNECTION", "DATA", "DEFAULT"),
        *("DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE", "ENGINE_ATTRIBUTE", "INDEX", "INSERT_METHOD"),
        *("KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD"),
        *("ROW_FORMAT", "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "START"),
        *("STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE"),
        *("TABLE_CHECKSUM", "TRANSACTIONAL", "TYPE", "UNION", "CHAR"),
    )
)
"""What an action of ALTER TABLE begins with, options of the table among them."""
