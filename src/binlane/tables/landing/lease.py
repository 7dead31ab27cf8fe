"""One driver a target: files in the target, on a disk or in an object store, tell who holds it.

Each holder has an epoch, one more than the holder before it, and a file named by the epoch. A driver
that wants the target writes the file of the next epoch, looks for files of others, and holds the
target if there is none; of several drivers that come at once all that see another step back, and
try again. The store must do no more than list a file that was written. The holder writes its file
again every few seconds; a holder that does not is taken for dead. Before each commit a driver looks
for a higher epoch: if there is one, the driver has lost the target, and commits nothing more.
"""

from __future__ import annotations

import getpass
import json
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pyarrow import fs

from binlane.errors import StoreError, StoreLockedError
from binlane.tables.landing.journal import read_file_whole, write_file_whole
from binlane.tables.landing.target_files import FOLDER, resolve

EXPIRES_S: Final = 30.0
"""A holder that has not written for so long is taken for dead."""
RENEWED_S: Final = 5.0
_CANDIDATE_S: Final = 5.0
_PAUSE_S: Final = (0.02, 0.25)
_CLAIMS: Final = "claims"
_HOLDS: Final = "holds"
_RELEASED: Final = "released"


@dataclass(frozen=True, slots=True, order=True)
class _Claim:
    """A file of somebody who holds the target, wants it or held it."""

    epoch: int
    name: str

    @classmethod
    def new(cls, epoch: int) -> _Claim:
        return cls(epoch, f"{epoch:012}-{uuid.uuid4().hex}.json")


class Lease:
    """The right to commit to one target. Use it as a context manager.

    Args:
        into: URI or path of the target.
        claim: The file by which this process claims the target.

    Attributes:
        epoch: A number that grows from holder to holder.
    """

    def __init__(self, into: str, claim: _Claim) -> None:
        self._into = into
        self._files = _Files(into)
        self._claim = claim
        self._since = time.time()
        self._ended = threading.Event()
        self._heart: threading.Thread | None = None
        self.epoch = claim.epoch

    @classmethod
    def take(cls, into: str, *, is_taking_over: bool = False) -> Lease:
        """Hold a target, or learn who does.

        Args:
            into: URI or path of the target.
            is_taking_over: Whether to take it from a driver that seems to be alive.

        Raises:
            StoreLockedError: If another driver holds it.
            StoreError: If nothing can be written there.
        """
        files = _Files(into)
        while True:
            claims = files.claims()
            contents = [files.read(claim) for claim in claims]
            if any(content is None or _is_candidate(content) for content in contents):
                time.sleep(random.uniform(*_PAUSE_S))  # noqa: S311 - it shall be settled soon
                continue
            holder = _last_holder(contents)
            if holder is not None and not is_taking_over and _is_alive(holder):
                raise _held(into, holder)
            lease = cls(into, _Claim.new(claims[-1].epoch + 1 if claims else 1))
            lease._write(_CLAIMS)
            others = [
                each
                for each in files.claims()
                if each.epoch >= lease.epoch and each != lease._claim
            ]
            if others:
                files.delete(lease._claim)
                time.sleep(random.uniform(*_PAUSE_S))  # noqa: S311 - not at the same time again
                continue
            lease._write(_HOLDS)
            for claim in claims:
                files.delete(claim)
            lease._beat()
            return lease

    def check(self) -> None:
        """Check before a commit that the target is still this holder's.

        Raises:
            StoreLockedError: If another driver has taken the target over.
        """
        for claim in self._files.claims():
            if claim.epoch > self.epoch:
                content = self._files.read(claim) or {}
                raise StoreLockedError(
                    f"{_who(content)} has taken over; this driver has committed nothing since",
                    path=self._into,
                    hint="let it go on; nothing is lost",
                )

    def release(self) -> None:
        """Let others have the target."""
        self._ended.set()
        if self._heart is not None:
            self._heart.join()
        if all(claim.epoch <= self.epoch for claim in self._files.claims()):
            self._write(_RELEASED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _beat(self) -> None:
        self._heart = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._heart.start()

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED_S):
            try:
                if any(claim.epoch > self.epoch for claim in self._files.claims()):
                    self._files.delete(self._claim)
                    return
                self._write(_HOLDS)
            except (OSError, StoreError):
                continue  # a commit will meet the same, and say so

    def _write(self, state: str) -> None:
        content = {
            "state": state,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "user": _user(),
            "place": _place(),
            "began": _process_start(os.getpid()),
            "since": self._since,
            "renewed": time.time(),
        }
        self._files.write(self._claim, content)


class _Files:
    """The files of all who hold a target, want it or held it."""

    def __init__(self, into: str) -> None:
        self._filesystem, root = resolve(into)
        self._folder = f"{root}/{FOLDER}/lease"

    def claims(self) -> list[_Claim]:
        """All of them, those of older epochs first."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        while True:
            try:
                infos = self._filesystem.get_file_info(selector)
            except FileNotFoundError:  # made by another driver while we looked: look again
                continue
            break
        names = [info.base_name for info in infos]
        return sorted(_Claim(int(name[:12]), name) for name in names if name.endswith(".json"))

    def read(self, claim: _Claim) -> dict[str, Any] | None:
        """Return the content of a claim's file; None if the file is gone by now."""
        try:
            content: dict[str, Any] = read_file_whole(
                self._filesystem, f"{self._folder}/{claim.name}"
            )
        except FileNotFoundError:
            return None
        except ValueError:  # the machine lost power while it was written
            return {"state": _RELEASED}
        return content

    def write(self, claim: _Claim, content: Mapping[str, Any]) -> None:
        """Make or replace one."""
        write_file_whole(self._filesystem, f"{self._folder}/{claim.name}", json.dumps(content))

    def delete(self, claim: _Claim) -> None:
        """Delete the lease file, if it exists."""
        try:
            self._filesystem.delete_file(f"{self._folder}/{claim.name}")
        except FileNotFoundError:
            return


def _is_candidate(content: Mapping[str, Any]) -> bool:
    """True if a claim's writer is about to take the target, and not dead."""
    return (
        content["state"] == _CLAIMS
        and _is_process_there(content)
        and time.time() - content["renewed"] < _CANDIDATE_S
    )


def _last_holder(contents: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what the last that held the target wrote, of claims in the order of their epochs.

    One of an older epoch was taken over. It may have written its file once more since: it looks
    for others, and then writes.
    """
    for content in contents[::-1]:
        if content is not None and content["state"] != _CLAIMS:
            return content
    return None


def _is_alive(content: Mapping[str, Any]) -> bool:
    return (
        content["state"] == _HOLDS
        and _is_process_there(content)
        and time.time() - content["renewed"] < EXPIRES_S
    )


def _is_process_there(content: Mapping[str, Any]) -> bool:
    """False only if it ran where we run, and does not any more."""
    if content["place"] != _place():
        return True
    return bool(_process_start(content["pid"]) == content["began"])


def _held(into: str, content: Mapping[str, Any]) -> StoreLockedError:
    age = max(0, round(time.time() - content["renewed"]))
    return StoreLockedError(
        f"{_who(content)} lands here since {_moment(content['since'])}, last seen {age} s ago",
        path=into,
        hint=f"stop it first; if it is gone, wait {EXPIRES_S:.0f} s or use --take-over",
    )


def _who(content: Mapping[str, Any]) -> str:
    return (
        f"process {content.get('pid', '?')} of {content.get('user', '?')} "
        f"on {content.get('host', '?')}"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return str(os.getuid())


def _place() -> str:
    """Return the name of the space in which process numbers are unique: a running kernel and container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode()}"


def _process_start(pid: int) -> str:
    """Return the start time of a process, in the kernel's own unit; empty if it does not run any more."""
    try:
        state, *facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else facts[18]
