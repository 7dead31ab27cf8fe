"""Faults that are one table's own, told from those of the target: the others can be landed then.

A fault that stands in the way of all tables (no room, a target or catalog that does not answer, a
lost lease) must never give them up one after the other. So a fault is a table's own only where it
is known to be of such a kind, and where the target, asked just then, can be read and written.
"""

from __future__ import annotations

import errno
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from binlane.errors import ConfigError, CorruptStoreError, StoreError
from binlane.names import TableName
from binlane.tables.landing.target_files import FOLDER, resolve

_OWN_NUMBERS: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
        *(errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),
    }
)
_NUMBER: Final = re.compile(r"(?:errno|os error)[ :]*(\d+)", re.IGNORECASE)
_NO_ROOM: Final = re.compile("no space left|quota|storage limit|file too large", re.IGNORECASE)
_OWN_WORDS: Final = re.compile(
    "no such file|not found|not exist|no_such_key|permission denied|access.?denied|not a directory"
    "|is a directory|file exists|do not fit|invalid|corrupt|malformed|magic bytes|unexpected end"
    "|couldn't deserialize|cannot seek|already exists|conflict|somebody else|its protocol asks",
    re.IGNORECASE,
)
_OWN_NAMES: Final = frozenset(
    {
        *("DeltaError", "DeltaProtocolError", "CommitFailedError", "SchemaMismatchError"),
        *("TableNotFoundError", "CommitFailedException", "NoSuchTableError", "ValidationError"),
        "ValidationException",
        *("NoSuchIcebergTableError", "NoSuchNamespaceError", "BadRequestError", "ForbiddenError"),
        *("TableAlreadyExistsError", "NoSuchIdentifierError", "ResolveError"),
        *("ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError", "ArrowKeyError"),
        "JSONDecodeError",
    }
)
"""Errors of the formats' libraries that are about one table, by their names: not all are installed."""
_PROBE_BYTES: Final = 1 << 20


class UnusableTableError(StoreError):
    """One table of a target cannot be read or written; nothing is known against the others.

    Attributes:
        table: The table that cannot be used.
        is_committed: Whether the change of the table is committed, and only its upkeep failed.
    """

    def __init__(self, message: str, *, table: TableName, path: str) -> None:
        super().__init__(
            message,
            path=path,
            hint="see what is wrong with its directory, and take the table anew by --snapshot",
        )
        self.table = table
        self.is_committed = False


class Faults:
    """Tells whose fault an error is.

    Args:
        into: URI or path of the target.
        fence: Raises if the target is not ours any more.
        ask: Raises if what keeps the tables beside the target, such as a catalog, cannot be used.
        is_read_only: Whether nothing may be written to try it.
    """

    def __init__(
        self,
        into: str,
        fence: Callable[[], None],
        ask: Callable[[], None],
        *,
        is_read_only: bool = False,
    ) -> None:
        self._is_read_only = is_read_only
        self._into = into
        self._fence = fence
        self._ask = ask

    @contextmanager
    def of(self, table: TableName) -> Iterator[None]:
        """Turn faults of work on one table into errors that name it.

        Raises:
            UnusableTableError: In place of an error that is the table's own.
        """
        try:
            yield
        except UnusableTableError:
            raise
        except Exception as error:
            if not is_own(error):
                raise
            self.probe()
            path = error.path if isinstance(error, StoreError) else table.plain
            raise UnusableTableError(_text(error), table=table, path=path) from error

    def probe(self) -> None:
        """See that the target is ours and can be used.

        Raises:
            BinlaneError: If not.
        """
        self._fence()
        self._ask()
        if self._is_read_only:
            return
        filesystem, folder = resolve(f"{self._into}/{FOLDER}")
        path = f"{folder}/probe-{uuid.uuid4().hex}"
        try:
            with filesystem.open_output_stream(path) as stream:
                stream.write(bytes(_PROBE_BYTES))
            with filesystem.open_input_file(path) as stream:
                is_there = stream.size() == _PROBE_BYTES
            filesystem.delete_file(path)
        except OSError as error:
            raise StoreError(
                f"the target cannot be used: {error}",
                path=path,
                hint="check who may write there, and its room",
            ) from error
        if not is_there:
            raise CorruptStoreError("the target does not keep what is written", path=path)


def is_own(error: BaseException) -> bool:
    """True if an error is of a kind that one table can have alone.

    Errors of tasks come from other processes, so the cause is found in their text.
    """
    found: BaseException | None = error
    texts = []
    is_known = False
    while found is not None:
        texts.append(str(found))
        if isinstance(found, OSError) and found.errno not in {None, *_OWN_NUMBERS}:
            return False
        is_known |= type(found).__name__ in _OWN_NAMES
        found = found.__cause__  # not what was being handled when it came
    text = "\n".join(texts)
    numbers = {int(number) for number in _NUMBER.findall(text)}
    if _NO_ROOM.search(text) or not numbers <= _OWN_NUMBERS:
        return False
    if isinstance(error, ConfigError):
        return error.key == "tables"
    if isinstance(error, StoreError):
        # Not those of a lease, of a store of binlogs, or what landing keeps beside the tables.
        is_of_table = type(error) is StoreError and f"/{FOLDER}/" not in error.path
        return is_of_table and (is_known or bool(numbers or _OWN_WORDS.search(text)))
    if isinstance(error, OSError):
        return bool(numbers or error.errno or _OWN_WORDS.search(text))
    # delta-rs raises some of its errors as plain ones, Arrow those of values as ValueError's.
    is_plain = type(error) in {Exception, ValueError, KeyError, UnicodeDecodeError}
    return is_known or is_plain or isinstance(error, pa.ArrowException)


def _text(error: BaseException) -> str:
    message = error.message if isinstance(error, StoreError) else str(error) or type(error).__name__
    return (
        " ".join(message.split())
        .removeprefix("cannot be written: ")
        .removeprefix("cannot be read: ")
    )


_Owner = TypeVar("_Owner", bound="HasFaults")
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class HasFaults(Protocol):
    """An object whose methods are about one table each."""

    faults: Faults


def one_by_one(
    method: Callable[Concatenate[_Owner, TableName, _Given], _Made],
) -> Callable[Concatenate[_Owner, TableName, _Given], _Made]:
    """Have a method raise `UnusableTableError` where an error is the table's own."""

    @wraps(method)
    def wrapped(
        self: _Owner, table: TableName, /, *args: _Given.args, **options: _Given.kwargs
    ) -> _Made:
        with self.faults.of(table):
            return method(self, table, *args, **options)

    return wrapped
