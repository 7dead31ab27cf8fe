from __future__ import annotations

import pytest

from binlane.sql.script import statements


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
