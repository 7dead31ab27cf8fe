"""The output of results: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, cast

from binlane.errors import StoreError, StoreFullError


@contextmanager
def open_output(path: str | None, *, errors: str) -> Iterator[TextIO]:
    """Open a text stream in UTF-8 that keeps line ends as they are.

    Args:
        path: A file, which appears, or is replaced, when the block ends without an error; None for
            standard output.
        errors: The treatment of characters that UTF-8 has not.

    Raises:
        StoreError: If the file cannot be written.
        StoreFullError: If there is no room for it.
    """
    if path is None:
        stdout = sys.stdout
        stdout.reconfigure(encoding="utf-8", errors=errors)  # type: ignore[union-attr]  # a TextIOWrapper
        with _told("standard output"):
            try:
                yield stdout
            finally:
                _flush(stdout)
        return
    target = Path(path)
    if target.exists() and not target.is_file():
        # A pipe or /dev/null: there is nothing to replace.
        with _told(path), target.open("w", encoding="utf-8", errors=errors, newline="\n") as out:
            yield out
        return
    with _told(path), _replaced(target, errors) as out:
        yield out


@contextmanager
def _replaced(target: Path, errors: str) -> Iterator[TextIO]:
    import tempfile  # noqa: PLC0415  # standard output does without

    with tempfile.NamedTemporaryFile(
        "w",
        encoding="utf-8",
        errors=errors,
        newline="\n",
        dir=target.parent,
        prefix=f".{target.name}.",
        delete=False,
    ) as out:
        written = Path(out.name)
        try:
            yield cast("TextIO", out)
            out.flush()
            os.fsync(out.fileno())
            out.close()
            written.chmod(0o666 & ~_umask())
            written.replace(target)
        except BaseException:
            with suppress(OSError):
                out.close()
            written.unlink(missing_ok=True)
            raise


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        is_full = error.errno == errno.ENOSPC
        advice = "make room" if is_full else "name another file"
        raise (StoreFullError if is_full else StoreError)(
            f"the result cannot be written: {error.strerror or error}",
            path=name,
            hint=f"{advice}; the file is there whole or not at all",
        ) from error


def _flush(stdout: TextIO) -> None:
    try:
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        # Bytes that could not be written must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
