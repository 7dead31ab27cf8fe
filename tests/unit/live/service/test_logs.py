"""Lines of the log, as text, for the journal, and as JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from binlane.live.service.logs import (
    JournalFormatter,
    JsonFormatter,
    LogFormat,
    LogLevel,
    LogSettings,
    is_journal,
    log_to,
)


def record(level: int, text: str, *values: object, **named: object) -> logging.LogRecord:
    logger = logging.getLogger("binlane.test")
    return logger.makeRecord(logger.name, level, "file", 1, text, values, None, extra=named)


def test_json_is_one_object_a_line() -> None:
    made = record(logging.WARNING, "two\nlines of %r", "ß", binlog="orders", peer="::1:5")
    line = JsonFormatter().format(made)
    assert "\n" not in line
    fields = json.loads(line)
    at = fields.pop("timestamp")
    assert at.endswith("Z")
    assert abs((datetime.fromisoformat(at) - datetime.now(UTC)).total_seconds()) < 60
    assert fields == {
        "level": "warning",
        "logger": "binlane.test",
        "message": "two\\nlines of 'ß'",
        "binlog": "orders",
        "peer": "::1:5",
    }


def test_json_has_stacks_and_whatever_a_field_is() -> None:
    made = record(logging.ERROR, "failed", path=Path("/x"))
    try:
        int("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    fields = json.loads(JsonFormatter().format(made))
    assert fields["path"] == "/x"
    assert fields["exception"].endswith("'why'")


def test_a_field_does_not_hide_what_every_line_has() -> None:
    made = record(logging.INFO, "text", timestamp="never", logger="mine")
    fields = json.loads(JsonFormatter().format(made))
    assert fields["logger"] == "binlane.test"
    assert fields["timestamp"] != "never"


@pytest.mark.parametrize(
    ("level", "prefix"),
    [
        (logging.CRITICAL, "<2>"),
        (logging.ERROR, "<3>"),
        (logging.WARNING, "<4>"),
        (logging.INFO, "<6>"),
        (logging.DEBUG, "<7>"),
    ],
)
def test_each_line_for_the_journal_has_its_priority(level: int, prefix: str) -> None:
    made = failing(record(level, "one"), ValueError("two"))
    lines = JournalFormatter("%(message)s").format(made).split("\n")
    assert lines[0] == f"{prefix}one"
    assert lines[-1] == f"{prefix}    ValueError: two"
    assert all(line.startswith(prefix) for line in lines)


def failing(made: logging.LogRecord, error: Exception) -> logging.LogRecord:
    made.exc_info = type(error), error, None
    return made


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize("own", ["20", "<3>"])
def test_nobody_begins_a_line_of_the_log(
    root: None, tmp_path: Path, form: LogFormat, own: str
) -> None:
    forged = "x\n<0>2026-01-01 00:00:00,000 ERROR binlane: all is lost\r\x1b[2J\u2028\x85"
    with (tmp_path / "log").open("w+", encoding="utf-8", newline="") as stream:
        status = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"} if own == "<3>" else {}
        log_to(stream, LogSettings(format=form), environ)
        error = ValueError(forged)
        logging.getLogger("binlane.test").error(
            "%s", forged, extra={"user": forged}, exc_info=error
        )
        stream.seek(0)
        log = stream.read()
    assert set(log) & set("\r\x1b\u2028\x85") == set()
    lines = log.removesuffix("\n").split("\n")
    if form is LogFormat.JSON:
        (line,) = lines
        found = json.loads(line)
        assert (
            found["message"]
            == found["user"]
            == "x\\n" + forged[2:].replace("\r\x1b[2J\u2028\x85", "\\r\\x1b[2J\\u2028\\x85")
        )
        assert not set(found["exception"]) & set("\r\x1b\u2028\x85")
        return
    assert lines[0].startswith(own)
    # The stack below it is no record, whatever it says.
    assert all(line.removeprefix("<3>").startswith("    ") for line in lines[1:])
    assert len(lines) > 1


def test_the_journal_is_told_by_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        status = os.fstat(stream.fileno())
        name = f"{status.st_dev}:{status.st_ino}"
        assert is_journal(stream, {"JOURNAL_STREAM": name})
        assert not is_journal(stream, {"JOURNAL_STREAM": f"{name}1"})
        assert not is_journal(stream, {})
    assert not is_journal(io.StringIO(), {"JOURNAL_STREAM": name})


@pytest.fixture
def root() -> Iterator[None]:
    before, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:], logging.root.level = before, level


@pytest.mark.parametrize(("level", "told"), [(LogLevel.DEBUG, 3), (LogLevel.WARNING, 1)])
@pytest.mark.parametrize("form", LogFormat)
def test_level_and_form_can_change(
    root: None, tmp_path: Path, level: LogLevel, told: int, form: LogFormat
) -> None:
    stream = io.StringIO()
    log_to(io.StringIO(), LogSettings(level=LogLevel.ERROR), {})
    log_to(stream, LogSettings(level=level, format=form), {})
    for number in (logging.DEBUG, logging.INFO, logging.WARNING):
        logging.getLogger("binlane.test").log(number, "told")
    lines = stream.getvalue().splitlines()
    assert len(lines) == told
    assert all(line.startswith("{") == (form is LogFormat.JSON) for line in lines)
