from __future__ import annotations

import random
from functools import partial
from itertools import cycle

import pytest

from binlane.statements.sql.script import Part, ScriptReader, statements
from binlane.statements.sql.servers import Dialect


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ;; \n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\nSELECT 2;\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \";\", `;`; x", ["SELECT ';', \";\", `;`", "x"]),
        ("SELECT 'it''s;', 'a\\';b'; x", ["SELECT 'it''s;', 'a\\';b'", "x"]),
        ("a /* ; */; b # ;\n; c -- ;\n; d --;e", ["a /* ; */", "b # ;", "c -- ;", "d --", "e"]),
        ("/*!50001 CREATE TABLE t (a INT) */;", ["/*!50001 CREATE TABLE t (a INT) */"]),
        (
            "a;\nDELIMITER ;;\nCREATE TRIGGER x; y ;;\n delimiter ; \nb;",
            ["a", "CREATE TRIGGER x; y", "b"],
        ),
        ("DELIMITER //\nBEGIN a; END//\nDELIMITER ;", ["BEGIN a; END"]),
        ("a 'never; ends", ["a 'never; ends"]),
        ("a /* never; ends", ["a /* never; ends"]),
        ("SELECT delimiter $$ FROM t; b", ["SELECT delimiter $$ FROM t", "b"]),
        ("a\n;\tb", ["a", "b"]),
    ],
)
def test_statements(script: str, expected: list[str]) -> None:
    assert list(statements(script)) == expected


_PIECES = (
    *("'", '"', "`", "\\", "\\'", ";", ";", ";\n", "\n", " ", "a", "''", "-- ", "--", "-----", "#", "/*"),
    *("*/", "/*!", "DO 1", "SELECT 'a;b'", "use d", "USE e", "source x", "quit", "print", "\\g", "\\c"),
    *("\\p", "delimiter $$", "$$", "DELIMITER ;", "\\d //", "//", "-", "/", "?", "\0", "\ufeff", "@", "é"),
)  # fmt: skip


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_statements_without_comments_are_read_as_all_others(
    flavor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = random.Random(3)
    scripts = ["".join(choice.choices(_PIECES, k=choice.randrange(1, 20))) for _ in range(20_000)]
    dialects = [
        partial(Dialect, flavor=flavor, ansi_quotes=ansi_quotes, no_backslash_escapes=no_escapes)
        for ansi_quotes in (False, True)
        for no_escapes in (False, True)
    ]

    def read() -> list[list[Part]]:
        return [
            list(ScriptReader(script.encode(), dialect).parts())
            for script, dialect in zip(scripts, cycle(dialects), strict=False)
        ]

    found = read()
    monkeypatch.setattr(ScriptReader, "_plain", lambda _: None)
    assert found == read()
