"""`cat` with `--read-from-remote-server`: which server, and which of its files."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from binlane.binlogs.cat.event_streams import LogFile
from binlane.cli import password_input
from binlane.client.account import account_at
from binlane.client.remote import read_remote
from binlane.client.remote_machine import RemoteEvent, RemoteRequest
from binlane.client.settings import ServerUrl, SslMode
from binlane.errors import CodecError, StoreError
from binlane.log.codec.format import MAGIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.cli.cat_request import CatRequest
    from binlane.client.schema import Definitions

_DEFAULT_PORT: Final = 3306
_UNREACHED_HINT: Final = "check --host and --port, or --socket, and whether the server runs"
_UNTRUSTED_HINT: Final = "name the certificate that signed it: --ssl-ca FILE"
_SERVER_ID_BASE: Final = 0x62000000
_SERVER_ID_RANDOM: Final = 1 << 24


def remote_files(request: CatRequest) -> Iterator[LogFile]:
    """Yield the files that the command line names, one after the other, from its server.

    With `--to-last-log` the last one goes on up to the end of the server's log.

    Raises:
        click.UsageError: If the options of the server contradict each other.
        PeerError: If the server refuses something, or goes away.
    """
    server = _Server(request)
    names = request.files
    for index, name in enumerate(names):
        is_last = index == len(names) - 1
        with closing(server.events(name, is_first=index == 0, is_last=is_last)) as events:
            for file, group in groupby(events, key=attrgetter("file")):
                yield LogFile(
                    name=file,
                    path=file,
                    events=(remote.event for remote in group),
                    is_first=index == 0 and file == name,
                    is_last=is_last,
                )


def write_raw(request: CatRequest) -> None:
    """Write the server's files unchanged; `--result-file` is the prefix of their names.

    Raises:
        StoreError: If a file cannot be written.
        PeerError: If the server refuses something, or goes away.
    """
    server = _Server(request)
    prefix = request.given["result_file"] or ""
    names = request.files
    with ExitStack() as stack:
        for index, name in enumerate(names):
            events = server.events(name, is_first=index == 0, is_last=index == len(names) - 1)
            with closing(events):
                _write_files(events, prefix, stack)


def _write_files(events: Iterator[RemoteEvent], prefix: str, stack: ExitStack) -> None:
    file, out = "", None
    for remote in events:
        if remote.file != file or out is None:
            if out is not None:
                out.close()
            file = remote.file
            out = stack.enter_context(_created(prefix + checked_name(file)))
            out.write(MAGIC)
        try:
            out.write(remote.data)
            out.flush()
        except OSError as error:
            raise _unwritable(out.name, error) from None


def checked_name(file: str) -> str:
    """The name that a server gives a file of its: it must be one, and never leads elsewhere.

    Raises:
        CodecError: If it is a path.
    """
    if not file or "/" in file or "\0" in file or file in {".", ".."}:
        raise CodecError(
            f"the server calls its file {file!r}, which is not a file name",
            hint="only files that --result-file names are written; check which server this is",
        )
    return file


def _created(path: str) -> IO[bytes]:
    try:
        return Path(path).open("wb")
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> StoreError:
    return StoreError(
        f"cannot be written: {error.strerror}", path=path, hint="name another --result-file"
    )


def server_schema(address: str, given: Mapping[str, Any]) -> Definitions:
    """Every table of a server as it defines it, for `--schema`.

    Args:
        address: The URL of the server.
        given: Options that may give the password.

    Raises:
        ConfigError: If the URL is none.
        PeerError: If the server cannot be asked.
    """
    from binlane.client.schema import read_schema  # noqa: PLC0415  # for this option only

    return read_schema(ServerUrl.parse(address, key="--schema"), _password(given))


class _Server:
    """The server that a command line names."""

    def __init__(self, request: CatRequest) -> None:
        self._request = request
        self._given = request.given
        self._url = _url(request.given)
        self._account = account_at(self._url, _password(request.given))

    def events(
        self, name: str, *, is_first: bool, is_last: bool
    ) -> Generator[RemoteEvent, None, None]:
        """Yield the events of a file, and with `--to-last-log` those of the later files."""
        given, selection = self._given, self._request.selection
        goes_on = is_last and (given["to_last_log"] or given["stop_never"])
        kind = (given["remote_kind"] or "").upper()
        remote = RemoteRequest(
            account=self._account,
            file=name,
            position=max(selection.start_position if is_first else 0, len(MAGIC)),
            server_id=self._server_id(),
            waits=is_last and given["stop_never"],
            excluded=selection.exclude_gtids if kind == "BINLOG-DUMP-GTIDS" else None,
        )
        events = read_remote(
            self._url,
            remote,
            bind_address=given["bind_address"],
            hint=_UNREACHED_HINT,
            ca_hint=_UNTRUSTED_HINT,
        )
        with closing(events):
            for event in events:
                if event.file != name and not goes_on:
                    return
                yield event

    def _server_id(self) -> int:
        asked: int | None = self._given["connection_server_id"]
        if asked is not None:
            return asked
        if not self._given["stop_never"]:
            return 0
        return _SERVER_ID_BASE + secrets.randbelow(_SERVER_ID_RANDOM)


def _url(given: Mapping[str, Any]) -> ServerUrl:
    protocol = (given["protocol"] or "").lower()
    if protocol == "socket" and given["socket"] is None:
        raise click.UsageError("--protocol=socket needs --socket PATH")
    is_local = given["socket"] is not None and protocol != "tcp"
    return ServerUrl(
        scheme="mysql",
        user=given["user"] or _own_name(),
        host=given["host"],
        port=given["port"] or _DEFAULT_PORT,
        socket=given["socket"] if is_local else None,
        ssl_mode=_ssl_mode(given),
        ssl_ca=given["ssl_ca"],
        ssl_cert=given["ssl_cert"],
        ssl_key=given["ssl_key"],
    )


def _ssl_mode(given: Mapping[str, Any]) -> SslMode:
    if given["ssl_mode"] is not None:
        return SslMode(given["ssl_mode"].upper())
    if given["ssl"] is False:
        return SslMode.DISABLED
    if given["ssl_verify_server_cert"]:
        return SslMode.VERIFY_IDENTITY
    if given["ssl_ca"] is not None:
        return SslMode.VERIFY_CA
    return SslMode.REQUIRED if given["ssl"] else SslMode.PREFERRED


def _password(given: Mapping[str, Any]) -> str:
    if given["ask_password"]:
        return password_input.asked_for()
    if given["password"] is not None:
        return str(given["password"])
    if given["password_file"] is not None:
        return password_input.from_file(given["password_file"])
    return password_input.from_environment() or ""


def _own_name() -> str:
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return ""
