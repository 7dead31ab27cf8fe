"""The exception tree: one class for each kind of failure, split by who must act.

    BinlaneError
    ├─ CodecError(offset)              the bytes are wrong
    │  ├─ TruncatedError               they end too early
    │  ├─ ChecksumError                they were changed
    │  └─ UnsupportedError             they are right, but of a kind that cannot be read
    ├─ StatementError(errno, sqlstate) the client must change its SQL; becomes an ERR packet as it is
    │  ├─ UnsafeStatementError         [11314]: PartialWriteError, DependencyError,
    │  │                               PartialTransactionError, TriggerError, LoadDataError,
    │  │                               UnjudgedError
    │  ├─ NotLoggableError             no logging format fits (seed 002)
    │  └─ DefinitionError              an unknown, duplicate or malformed binlog definition
    ├─ PeerError(peer, phase)          a server, client or replica broke the protocol or went away
    ├─ StoreError(path)                CorruptStoreError, StoreFullError, StoreLockedError
    ├─ SchemaChangedError              a stream's columns are no longer its table's
    └─ ConfigError(key)                a setting that cannot be used

Every class renders its own text; `hint` says what the operator does next. Nothing here imports
from the rest of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

HINT_ERRNO: Final = 1105
"""The number of notes that say what to do next: the servers' own for what has no number."""


class Diagnostic(NamedTuple):
    """A line of SHOW WARNINGS.

    Attributes:
        level: One of `Error`, `Warning` and `Note`.
        errno: The number that the servers give it.
        text: The text that the servers give it.
    """

    level: str
    errno: int
    text: str


class BinlaneError(Exception):
    """Base of all errors that binlane raises on purpose.

    Attributes:
        hint: The reader's next step; empty where there is nothing to do.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel between processes, whatever their constructors ask for."""
        return _unpickled, (type(self), self.args), dict(self.__dict__)


def _unpickled(kind: type[BinlaneError], arguments: tuple[object, ...]) -> BinlaneError:
    return kind.__new__(kind, *arguments)


class CodecError(BinlaneError):
    """Bytes that do not follow their format.

    Attributes:
        offset: Byte offset of the fault in the buffer that was decoded.
        file: The file that held them, as the user named it; None until a reader knows it.
        position: Position of the first byte of the faulty event in `file`, in bytes.
    """

    def __init__(self, message: str, *, offset: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.offset = offset
        self.file: str | None = None
        self.position: int | None = None

    def at(self, file: str, position: int) -> Self:
        """Say where the bytes came from, unless a reader closer to them already has."""
        if self.file is None:
            self.file, self.position = file, position
        return self

    def __str__(self) -> str:
        if self.file is None:
            return self.message
        return f"{self.message} ({self.file}:{self.position})"


class TruncatedError(CodecError):
    """The bytes end before the value does."""


class ChecksumError(CodecError):
    """The CRC32 of an event does not match its bytes."""


class UnsupportedError(CodecError):
    """Well-formed bytes of a kind that cannot be decoded, such as an encrypted file without its key."""


class StatementError(BinlaneError):
    """A statement that is refused; becomes a MySQL ERR packet as it is.

    Attributes:
        errno: Server error number, 1 to 65535.
        sqlstate: The state in five characters.
        diagnostics: The lines that SHOW WARNINGS lists of it; nothing for its message and its hint.
    """

    def __init__(
        self,
        message: str,
        *,
        errno: int = 1,
        sqlstate: str = "HY000",
        hint: str = "",
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.errno = errno
        self.sqlstate = sqlstate
        self.diagnostics = tuple(diagnostics)

    @property
    def listed(self) -> tuple[Diagnostic, ...]:
        """The lines of SHOW WARNINGS."""
        if self.diagnostics:
            return self.diagnostics
        hint = (Diagnostic("Note", HINT_ERRNO, self.hint),) if self.hint else ()
        return (Diagnostic("Error", self.errno, self.message), *hint)


class SourceDownError(StatementError):
    """A statement that needs the source, which cannot be asked now.

    It has the number of a server that goes down (1053), at which replicas and clients come again.
    """

    def __init__(self, message: str, *, hint: str = "see whether the source runs") -> None:
        super().__init__(message, errno=1053, sqlstate="08S01", hint=hint)


class UnsafeStatementError(StatementError):
    """A statement that some binlog could not replicate safely: error 1 with code [11314]."""

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"[11314] This statement cannot be replicated safely: {reason}", hint=hint)


class PartialWriteError(UnsafeStatementError):
    """A statement writes both inside and outside of a binlog's scope (seed 000)."""


class DependencyError(UnsafeStatementError):
    """A statement reads, outside of a binlog's scope, what it needs to write inside (seed 000)."""


class PartialTransactionError(UnsafeStatementError):
    """A transaction writes both inside and outside of a binlog's scope (seed 000)."""


class TriggerError(UnsafeStatementError):
    """A trigger meets a binlog that is scoped by tables and logs statements (seed 000)."""


class LoadDataError(UnsafeStatementError):
    """LOAD DATA would go into a scoped binlog as a statement (seed 000)."""


class UnjudgedError(UnsafeStatementError):
    """A statement's effect is not known, so that some binlog may not have it as it must."""


class NotLoggableError(StatementError):
    """No logging format that the mode allows fits all engines involved (seed 002)."""


class DefinitionError(StatementError):
    """A binlog definition that is unknown, duplicate or malformed."""


class PeerError(BinlaneError):
    """A server, client or replica broke the protocol, refused us or went away.

    Attributes:
        peer: The address of the peer, such as `mariadb://binlane@127.0.0.1:3306`.
        phase: The work that was going on, such as `handshake` or `dump`.
        errno: The peer's own error number, where it sent one.
    """

    def __init__(
        self, message: str, *, peer: str, phase: str, errno: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.peer = peer
        self.phase = phase
        self.errno = errno

    def __str__(self) -> str:
        return f"{self.message} ({self.peer}, {self.phase})"


class StoreError(BinlaneError):
    """A data directory or a file in it that cannot be used.

    Attributes:
        path: The path of that file or directory.
    """

    def __init__(self, message: str, *, path: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path

    def __str__(self) -> str:
        return f"{self.message} ({self.path})"


class CorruptStoreError(StoreError):
    """The store holds something that binlane did not write, or lacks something that it wrote."""


class StoreFullError(StoreError):
    """The file system has no room."""


class SchemaChangedError(BinlaneError):
    """The columns of a stream are no longer those of its table: it is to be started again."""


class StoreLockedError(StoreError):
    """Another process owns the data directory."""


class ConfigError(BinlaneError):
    """A setting that cannot be used.

    Attributes:
        key: The setting, such as `listen.port`.
        others: The other errors, where all was looked at.
    """

    def __init__(
        self, message: str, *, key: str, hint: str = "", others: Sequence[ConfigError] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.others = tuple(others)

    def __str__(self) -> str:
        return f"{self.message} ({self.key})"
