"""The logging of `serve` and its two forms: lines for people, or one JSON object a line.

Whatever a peer said is in there: nothing of it begins a line, or does anything on a terminal
(`visible`). What is of several lines, such as a stack, is indented.

A call may name what it is about, `extra={"binlog": …}`; JSON has that as fields of their own. Names
in use: `binlog`, `peer`, `user`, `gtid`, `setting`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Final, TextIO

from binlane.visible import visible

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_JOURNAL_TEXT: Final = "%(levelname)s %(name)s: %(message)s"
_JOURNAL: Final = "JOURNAL_STREAM"
_INDENT: Final = "    "
# syslog(3)'s numbers, the least severe first.
_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4))
_PRIORITY_INFO: Final = 6
_PRIORITY_DEBUG: Final = 7
SysExcInfo = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)
_OF_EVERY_RECORD: Final = frozenset(
    vars(logging.makeLogRecord({})) | {"message": "", "asctime": "", "taskName": ""}
)


class LogLevel(Enum):
    """The least severe messages that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """As `logging` has it."""
        return logging.getLevelNamesMapping()[self.name]


class LogFormat(Enum):
    """The form of a line."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The section `[log]`.

    Attributes:
        level: The least severe that is logged.
        format: The form of a line.
    """

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.TEXT


def log_to(stream: TextIO, settings: LogSettings, environ: Mapping[str, str]) -> None:
    """Send the logging of all parts somewhere, and nowhere else; may be called again.

    Args:
        stream: The stream that gets the log, usually standard error.
        settings: The level and form of the log.
        environ: Says whether systemd's journal reads standard error.
    """
    handler = logging.StreamHandler(stream)
    if settings.format is LogFormat.JSON:
        handler.setFormatter(JsonFormatter())
    elif is_journal(stream, environ):
        handler.setFormatter(JournalFormatter(_JOURNAL_TEXT))
    else:
        handler.setFormatter(TextFormatter(TEXT))
    logging.basicConfig(level=settings.level.number, handlers=[handler], force=True)


def log_to_stderr(settings: LogSettings, environ: Mapping[str, str]) -> None:
    """As `log_to`, with this process's standard error."""
    log_to(sys.stderr, settings, environ)


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """True if systemd's journal reads a stream, which the journal names by device and inode."""
    named = environ.get(_JOURNAL)
    if not named:
        return False
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return named == f"{status.st_dev}:{status.st_ino}"


class TextFormatter(logging.Formatter):
    """A record as a line for people, a stack below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's own name
        """The line."""
        record.message = visible(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: SysExcInfo) -> str:  # noqa: N802  # likewise
        """A stack, none of whose lines begins as a record does."""
        return "\n".join(_INDENT + visible(line) for line in _lines(super().formatException(ei)))


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """`timestamp` (UTC, RFC 3339), `level`, `logger`, `message`, what the call named, `exception`."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "timestamp": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": visible(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _OF_EVERY_RECORD and name not in fields:
                fields[name] = visible(value) if isinstance(value, str) else value
        if record.exc_info:
            stack = _lines(self.formatException(record.exc_info))
            fields["exception"] = "\n".join(map(visible, stack))
        return json.dumps(fields, ensure_ascii=False, default=str)


class JournalFormatter(TextFormatter):
    """Lines that the journal gives the record's priority; it notes the time itself."""

    def format(self, record: logging.LogRecord) -> str:
        """Each line begins with the priority, also those of a traceback."""
        prefix = f"<{_priority(record.levelno)}>"
        return "\n".join(prefix + line for line in _lines(super().format(record)))


def _lines(text: str) -> list[str]:
    """The lines of a text that line feeds end, and nothing else that may look like an end."""
    return text.split("\n")


def _priority(level: int) -> int:
    for least, number in _PRIORITIES:
        if level >= least:
            return number
    return _PRIORITY_INFO if level >= logging.INFO else _PRIORITY_DEBUG
