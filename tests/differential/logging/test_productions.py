"""Each production of the parser has a drawing in a night's sessions of the grammar.

It needs no server: what a drawn text takes, the parser itself tells. What a server then takes of it,
the night's run says (`python -m tests.differential.logging … --from grammar`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import pytest

from binlane.statements.policy.server import Server
from binlane.statements.sql.servers import Dialect
from tests.differential.logging import grammar
from tests.differential.logging.productions import Productions
from tests.differential.logging.sessions import VERSIONS
from tests.differential.logging.sources import VARIETIES

_NEVER_RUN: Final = {
    r"forms: (SHUTDOWN|RESTART): ": "it would end the server",
    r"forms: RESET: (MASTER|BINARY LOGS|TO number)": "it would forget the log that is read",
}
_READ_OTHERWISE: Final = {
    r"forms: SET: ": "MariaDB has no resource groups; the reader of SET tells",
    r"calls: JSON_DUALITY_OBJECT: ": "only in the view that it is for",
    r"calls: (WEIGHT_STRING|levels?|direction): ": "of MariaDB and old MySQLs",
    r"calls: joined: ,": "`LIMIT 1, 1` is read as two items",
    r"forms: connection: number": "MariaDB takes any expression, which is read first",
    r"forms: attribute: (COLLATE|COMPRESSED|serial)": "the type takes it first",
    r"forms: (nullity: NULL|privileged_option|charset_value|table_option: =)": "another way is it, too",
    r"forms: (declaration|opened|fetch|direction|return|value_parameter|function_parameters): ": (
        "of sql_mode ORACLE, or of the other server's bodies"
    ),
    r"forms: (other_key_option|package_characteristic): ": "of versions that are not run",
    r"rows: LOAD: load_option": "MySQL's, whose text MariaDB does not read",
    r"types: (charset_compressed|national_text|needed_size|plain_type|scale): ": "the same",
}
_NO_READERS: Final = (
    r"literals: (__\w+__|_count|_literals?|_rows|told|row|read_run|read_rows_run): ",
    r"parser: (statement_texts|_skip_statement|_may_hold_statements|parse_body|parse_expression): ",
    r"queries: _run_in_row: |forms: (_alone|_literal|_one_of|_prepared): |accounts: _by_words: ",
)
"""Long values as runs, the ends of statements in a packet, and what makes readers."""
_READERS_LEAST: Final = 0.90


@cache
def _drawn(flavor: str) -> tuple[frozenset[str], frozenset[str]]:
    """The productions of a server, and those that a night draws."""
    server = Server.parse(VERSIONS[flavor])
    dialect = Dialect(flavor=flavor, version=server.version)
    known, found = Productions(dialect), set[str]()
    drawing = grammar.Grammar(dialect)
    for turn, variety in enumerate(VARIETIES):
        for seed, targets in enumerate(grammar.sessions(drawing, size=4)):
            texts = grammar.script(drawing, targets, seed + turn * 1000, variety).texts
            found.update(*(taken for _, taken in known.of_session(texts)))
    return known.all, frozenset(found)


def _is_way(name: str) -> bool:
    return re.search(r"\(\d+\)$", name) is None


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_each_way_of_the_grammar_is_drawn(flavor: str) -> None:
    known, drawn = _drawn(flavor)
    excused = re.compile("|".join((*_NEVER_RUN, *_READ_OTHERWISE)))
    missing = [name for name in known - drawn if _is_way(name) and not excused.match(name)]
    assert not missing, "\n".join(sorted(missing))


@pytest.mark.slow
def test_readers_that_are_code_are_run_whole() -> None:
    """By one of the servers; branches for other versions and modes are left."""
    known, drawn = (
        frozenset().union(*parts) for parts in zip(_drawn("mariadb"), _drawn("mysql"), strict=True)
    )
    no_readers = re.compile("|".join(_NO_READERS))
    branches = {name for name in known if not _is_way(name) and not no_readers.match(name)}
    share = len(branches & drawn) / len(branches)
    assert share >= _READERS_LEAST, "\n".join(sorted(branches - drawn))
