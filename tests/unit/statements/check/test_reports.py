"""What the reports say of hand-made results."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from binlane.statements.check.findings import CheckedStatement, Kind, findings
from binlane.statements.check.github import GithubReport
from binlane.statements.check.json_lines import JsonReport
from binlane.statements.check.reasons import Judgement
from binlane.statements.check.report import Judged, Report, Tally
from binlane.statements.check.sarif import SarifReport
from binlane.statements.check.text import TextReport, cells, cut, printable, window
from binlane.statements.policy.refusals import Refusal, Why
from binlane.statements.session.report import BinlogResult, StatementResult, Unanalysed
from tests.checked import check
from tests.unit.statements.check.results import (
    UUID_NOTE,
    checked,
    in_rows,
    noted,
    refused,
    unanalysed,
)


def told(
    report: Report, *statements: CheckedStatement, judgement: Judgement | None = None
) -> list[str]:
    """What a report says of statements of a script."""
    judgement = judgement or Judgement()
    tally = Tally(scripts=1, statements=len(statements))
    lines = list(report.begin())
    for statement in statements:
        judged = [
            Judged(finding, judgement.counts(finding))
            for finding in findings(statement)
            if judgement.is_shown(finding)
        ]
        tally.count(judged)
        lines += report.statement("dir/s.sql", statement, judged)
    return lines + list(report.end(tally))


def test_text_of_a_note() -> None:
    assert told(TextReport(), noted()) == [
        "dir/s.sql:3: INSERT INTO t VALUES (1, uuid())",
        "  binlog: logged as statement, unsafe",
        "  note 1592 [unsafe-system-function]: Unsafe statement written to the binary log",
        "    using statement format since BINLOG_FORMAT = STATEMENT. Statement is unsafe",
        "    because it uses a system function that may return a different value on the",
        "    slave",
        "    4 | VALUES (1, uuid())",
        "      |            ^~~~~~ uuid()",
        "  hint: use rows",
        "1 script, 1 statement: 1 unsafe",
    ]


def test_text_of_a_refusal() -> None:
    assert told(TextReport(), refused()) == [
        "dir/s.sql:1: DROP TABLE test.foo, test.v",
        "  binny: refused",
        "  all: not logged, since the statement is refused",
        "  error 1 [partial-write]: [11314] This statement cannot be replicated safely:",
        "    binlogs {binny} do not log both `test`.`foo` and `test`.`bar`",
        "    1 | DROP TABLE test.foo, test.v",
        "      |                      ^~~~~~ test.bar, through view test.v",
        "  hint: ALTER BINLOG 'binny' ADD LOG(`test`.`bar`)",
        "1 script, 1 statement: 1 refused",
    ]


def test_text_of_what_was_not_understood() -> None:
    assert told(TextReport(), unanalysed()) == [
        "dir/s.sql:1: INSERT INTO (a)",
        "  cannot be analysed [not-analysed]: expected a table at '('",
        "    1 | INSERT INTO (a)",
        "      |             ^",
        "1 script, 1 statement: 1 not analysed",
    ]


def test_text_explains() -> None:
    lines = told(TextReport(explain=True), noted())
    assert lines[2:7] == [
        "    1. It writes `d`.`t` (InnoDB).",
        "    2. It is unsafe, and the mode is STATEMENT.",
        "    > Gtid           BEGIN GTID #",
        "    > Query          use `d`; INSERT INTO t VALUES (1, uuid())",
        "    > Xid            COMMIT /* xid=# */",
    ]


def test_text_of_a_stated_error_is_no_finding() -> None:
    error = Refusal(errno=1062, sqlstate="", symbol="", message="", is_stated=True)
    statement = checked("DO 1", StatementResult(error=error, binlogs={"b": BinlogResult()}))
    assert told(TextReport(), statement) == [
        "dir/s.sql:1: DO 1",
        "  fails with error 1062, as the script states",
        "  b: not logged",
        "1 script, 1 statement: all safe",
    ]


def test_text_is_never_wider_than_the_terminal() -> None:
    sql = f"INSERT INTO {'schöne_' * 20}t VALUES ('{'漢字' * 60}', uuid(), '{'x' * 200}')"
    why = Why(what="uuid()", offset=sql.index("uuid"), length=6, hint="h " * 80)
    error = Refusal(errno=1, sqlstate="HY000", symbol="X", message="m " * 90, why=(why,))
    statement = checked(sql, StatementResult(error=error, binlogs={"b": BinlogResult()}))
    for width in (40, 80, 120):
        lines = told(TextReport(width=width), statement)
        assert max(cells(line) for line in lines) <= width
        (source,) = (n for n, line in enumerate(lines) if line.startswith("    1 | "))
        marked = re.search(r"\^~*", lines[source + 1])
        assert marked is not None
        assert marked[0] == "^~~~~~"
        before = lines[source].index("uuid()")
        assert cells(lines[source][:before]) == marked.start()


def test_text_without_what_a_terminal_obeys() -> None:
    statement = checked("DO '\x1b[31m\udcff\u202e'", StatementResult())
    (line, _) = told(TextReport(), statement)
    assert line.endswith(r"DO '\x1b[31m\xff\u202e'")


def test_colors_only_where_asked() -> None:
    assert not any("\x1b" in line for line in told(TextReport(), noted(), refused()))
    coloured = told(TextReport(color=True), noted(), refused())
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured]
    assert coloured != plain
    assert plain == told(TextReport(), noted(), refused())


def test_quiet_text_has_no_summary() -> None:
    assert told(TextReport(is_quiet=True)) == []


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字", 4, "漢字"), ("漢字漢", 4, "漢…")],
)
def test_cut(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected


def test_a_window_shows_the_stretch() -> None:
    text, begin, end = window("a" * 100 + "BC" + "d" * 100, 100, 102, 30)
    assert text[begin:end] == "BC"
    assert cells(text) <= 30
    assert printable("\t") == " "


def test_json_is_as_agreed() -> None:
    (line,) = told(JsonReport(), noted())
    assert json.dumps(json.loads(line), ensure_ascii=False) == line
    assert json.loads(line) == {
        "script": "dir/s.sql",
        "statement": 2,
        "line": 3,
        "sql": "INSERT INTO t\nVALUES (1, uuid())",
        "error": None,
        "notes": [
            {"errno": 1592, "reason": "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION", "message": UUID_NOTE}
        ],
        "binlogs": {
            "binlog": {
                "logged_as": "statement",
                "events": [
                    ["Gtid", "BEGIN GTID #"],
                    ["Query", "use `d`; INSERT INTO t\nVALUES (1, uuid())"],
                    ["Xid", "COMMIT /* xid=# */"],
                ],
            }
        },
    }


def test_json_of_a_refusal() -> None:
    (line,) = told(JsonReport(), refused())
    found = json.loads(line)
    assert found["error"]["errno"] == 1
    assert found["error"]["sqlstate"] == "HY000"
    assert found["error"]["message"].startswith("[11314] ")
    assert found["binlogs"]["all"] == {"logged_as": "none", "events": []}


def test_json_of_what_was_not_understood_is_an_error() -> None:
    (line,) = told(JsonReport(), unanalysed())
    found = json.loads(line)
    assert found["error"]["errno"] == 1064
    assert found["unanalysed"] == {"reason": "expected a table at '('", "line": 1, "column": 13}


def test_json_explains() -> None:
    (line,) = told(JsonReport(explain=True), noted())
    found = json.loads(line)
    assert json.dumps(found, ensure_ascii=False) == line
    assert len(found["binlogs"]["binlog"]["steps"]) == 2
    assert found["why"][0]["what"] == "uuid()"


def sarif(*statements: CheckedStatement, judgement: Judgement | None = None) -> dict[str, Any]:
    log = json.loads("\n".join(told(SarifReport("1.2.3"), *statements, judgement=judgement)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif() -> None:
    run = sarif(noted(), refused(), unanalysed())
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    results = run["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [
        ("unsafe-system-function", "warning"),
        ("partial-write", "error"),
        ("not-analysed", "error"),
    ]
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "dir/s.sql"}
    assert place["region"] == {
        "startLine": 4,
        "startColumn": 12,
        "endLine": 4,
        "endColumn": 18,
    }
    assert run["invocations"][0]["exitCode"] == 2
    assert run["invocations"][0]["executionSuccessful"] is True


def test_sarif_without_results_is_whole() -> None:
    assert sarif()["results"] == []


def test_sarif_of_an_error_that_has_no_rule() -> None:
    error = Refusal(errno=1054, sqlstate="42S22", symbol="ER_BAD_FIELD_ERROR", message="m")
    (result,) = sarif(checked("DO a", StatementResult(error=error)))["results"]
    assert result["ruleId"] == "other-error"
    assert result["properties"]["symbol"] == "ER_BAD_FIELD_ERROR"


def test_sarif_suppresses_what_is_allowed() -> None:
    (result,) = sarif(noted(), judgement=Judgement.of(allow=["unsafe"]))["results"]
    assert result["suppressions"][0]["kind"] == "external"


def test_sarif_names_scripts_that_were_not_read() -> None:
    report = SarifReport("1")
    tally = Tally()
    tally.missed("a b.sql", "cannot be read")
    log = json.loads("".join((*report.begin(), *report.end(tally))))
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    uri = notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%20b.sql"


def test_github() -> None:
    first, second = told(GithubReport(), noted(), refused())
    assert first.startswith(
        "::warning file=dir/s.sql,line=4,endLine=4,col=12,endColumn=17,"
        "title=unsafe-system-function (1592)::Unsafe statement"
    )
    assert first.endswith("%0Abinlogs: binlog%0Auuid()%0Ahint: use rows")
    assert second.startswith("::error file=dir/s.sql,line=1,")


def test_github_escapes() -> None:
    problem = Unanalysed(reason="100% wrong\r\n::error::", offset=0)
    statement = checked("DO 1", StatementResult(unanalysed=problem))
    judged = [Judged(finding, counts=True) for finding in findings(statement)]
    (line,) = GithubReport().statement("a,b:c%.sql", statement, judged)
    assert line.startswith("::error file=a%2Cb%3Ac%25.sql,line=1,")
    assert line.endswith("::100%25 wrong%0D%0A::error::")


def test_github_says_nothing_of_what_is_allowed() -> None:
    assert told(GithubReport(), noted(), judgement=Judgement.of(allow=["unsafe"])) == []


def test_what_made_rows_is_told_where_it_is_denied() -> None:
    assert told(TextReport(), in_rows())[-1] == "1 script, 1 statement: all safe"
    denied = told(TextReport(), in_rows(), judgement=Judgement.of(deny=["unsafe-system-function"]))
    assert denied[2] == (
        "  denied [unsafe-system-function]: Unsafe to log as a statement, logged in rows"
    )
    assert denied[-1] == "1 script, 1 statement: 1 denied"


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("UPDATE t SET n = WHERE n = 1", 1064),
        ("INSERT INTO nowhere VALUES (1)", 1146),
        ("CALL noprocedure()", 1305),
        ("INSERT INTO t SELECT * FROM nowhere", 1146),
    ],
)
def test_json_tells_of_all_that_was_not_analysed(server: str, sql: str, errno: int) -> None:
    (found,) = check(
        sql,
        schema="CREATE DATABASE d; USE d; CREATE TABLE t (n INT);",
        server=server,
    )
    (finding,) = findings(found)
    assert finding.kind is Kind.UNANALYSED
    (line,) = told(JsonReport(), found)
    said = json.loads(line)
    assert said["error"]["errno"] == errno
    assert said["unanalysed"]["reason"] == said["error"]["message"]


def test_the_form_of_binlogs() -> None:
    statements = list(
        check(
            "INSERT INTO t VALUES (1); SET binlog_row_image = 'MINIMAL'; INSERT INTO t VALUES (2)",
            schema="CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY);",
            binlogs="CREATE BINLOG plain; CREATE BINLOG slim ROW_IMAGE='NOBLOB', COMPRESS='ON';",
        )
    )
    lines = told(TextReport(is_quiet=True), statements[0], statements[2])
    assert [line for line in lines if "logged" in line] == [
        "  plain: logged as row",
        "  slim: logged as row (ROW_IMAGE='NOBLOB', COMPRESS='ON')",
        "  plain: logged as row (ROW_IMAGE='MINIMAL')",
        "  slim: logged as row (ROW_IMAGE='MINIMAL', COMPRESS='ON')",
    ]
    first, _, last = (json.loads(line)["binlogs"] for line in told(JsonReport(), *statements))
    assert {"row_image", "compress"}.isdisjoint(first["plain"])
    assert (first["slim"]["row_image"], first["slim"]["compress"]) == ("NOBLOB", "ON")
    assert (last["plain"]["row_image"], last["slim"]["row_image"]) == ("MINIMAL", "MINIMAL")
    assert first["slim"].items() >= first["plain"].items()
