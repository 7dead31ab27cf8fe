"""Logging in and asking: conversations as generators.

A conversation yields what to do next and is given the server's next packet. Who sends, encrypts and
numbers frames is the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from binlane.client.authentication import (
    CACHING_SHA2_PASSWORD,
    KNOWN_PLUGINS,
    NATIVE_PASSWORD,
    obscure,
    prove,
)
from binlane.client.settings import SslMode
from binlane.errors import PeerError
from binlane.log.codec.packets.commands import encode_query
from binlane.log.codec.packets.flags import Capability
from binlane.log.codec.packets.framing import PAYLOAD_MAX
from binlane.log.codec.packets.handshake import (
    AUTH_MORE_DATA_MARK,
    AUTH_SWITCH_MARK,
    AuthSwitch,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from binlane.log.codec.packets.replies import ErrPacket, is_error, is_ok
from binlane.log.codec.packets.results import UTF8MB4_COLLATION, ReplyReader, ResultSet

GTID_CAPABILITY: Final = 4
"""MARIA_SLAVE_CAPABILITY_GTID: MariaDB sends a dump's events as they stand in the file."""
_CAPABILITIES: Final = (
    Capability.LONG_PASSWORD
    | Capability.LONG_FLAG
    | Capability.PROTOCOL_41
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC
    | Capability.CONNECT_ATTRS
)
_ATTRIBUTES: Final = (("_client_name", "binlane"), ("program_name", "binlane"))
_FAST_AUTH_DONE: Final = b"\x03"
_FULL_AUTH_WANTED: Final = b"\x04"
_REQUEST_PUBLIC_KEY: Final = b"\x02"
_GRANT_HINT: Final = (
    "check the account's name, its host part and the password (of `serve`: password_file); to"
    " replicate it also needs GRANT REPLICATION SLAVE ON *.* on the source"
)
_HINTS: Final = MappingProxyType(
    {
        1045: _GRANT_HINT,
        1130: "the source lets no account in from this host: check the account's host part",
        1227: "the account needs GRANT REPLICATION SLAVE ON *.* on the source; where the files of its"
        " log are asked for also REPLICATION CLIENT, which MariaDB calls BINLOG MONITOR",
        1236: "the source can no longer send its log from there: where its files were purged, or"
        " another server took its place, start anew from what it still has",
        1698: "the account logs in without a password, by its operating system user: use the"
        " server's socket, ?socket=PATH, or give binlane an account of its own",
    }
)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Reply:
    """Send the next packet of the login."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Send the first packet of a command."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class UpgradeToTls:
    """An action: start TLS on the connection."""


Step = Reply | SendCommand | UpgradeToTls
Dialogue = Generator[tuple[Step, ...], bytes, _Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account and the way in which it logs in at a server.

    Attributes:
        peer: The server's address, for messages.
        user: The account's name without a host.
        password: The password, empty if there is none.
        ssl_mode: The rule by which TLS is used.
        is_local: True if the connection is a Unix socket, which nobody listens on.
        seal: Encrypts a password with a server's public key: PEM and data in, bytes out;
            ValueError where the key cannot be used.
    """

    peer: str
    user: str
    password: str
    ssl_mode: SslMode
    is_local: bool
    seal: Callable[[bytes, bytes], bytes]


def log_in(account: Account) -> Dialogue[Greeting]:
    """Log in to the server.

    Raises:
        PeerError: If the server refuses, or wants what binlane cannot do.
    """
    payload = yield ()
    if is_error(payload):
        raise refusal(payload, peer=account.peer, phase="connect")
    greeting = Greeting.decode(payload)
    uses_tls = _uses_tls(account, greeting)
    wanted = _CAPABILITIES & (greeting.capabilities | Capability.LONG_PASSWORD)
    head = SslRequest(
        capabilities=wanted | (Capability.SSL if uses_tls else 0),
        payload_max=PAYLOAD_MAX,
        character_set=UTF8MB4_COLLATION,
    )
    # A challenge for an unknown plugin is answered as for the oldest one; the server then asks
    # for the plugin that the account really has.
    plugin = greeting.plugin if greeting.plugin in KNOWN_PLUGINS else NATIVE_PASSWORD
    response = HandshakeResponse(
        head=head,
        user=account.user,
        auth_response=prove(plugin, account.password, greeting.scramble),
        plugin=plugin,
        attributes=_ATTRIBUTES,
    )
    upgrade: tuple[Step, ...] = (Reply(head.encode()), UpgradeToTls()) if uses_tls else ()
    answer = yield (*upgrade, Reply(response.encode()))
    is_private = uses_tls or account.is_local
    yield from _authenticate(account, answer, greeting.scramble, is_private=is_private)
    return greeting


def _uses_tls(account: Account, greeting: Greeting) -> bool:
    if account.ssl_mode is SslMode.DISABLED or account.is_local:
        return False
    offers = Capability.SSL in greeting.capabilities
    if account.ssl_mode.is_required and not offers:
        raise PeerError(
            f"the server offers no TLS, ssl-mode {account.ssl_mode.value} wants it",
            peer=account.peer,
            phase="login",
            hint="give the server a certificate, or allow ssl-mode=PREFERRED",
        )
    return offers


def _authenticate(
    account: Account, answer: bytes, scramble: bytes, *, is_private: bool
) -> Dialogue[None]:
    while not is_ok(answer):
        if is_error(answer):
            raise refusal(answer, peer=account.peer, phase="login")
        if answer[:1] == bytes((AUTH_SWITCH_MARK,)):
            switch = AuthSwitch.decode(answer)
            scramble = switch.scramble
            _check_plugin(switch.plugin, account)
            answer = yield (Reply(prove(switch.plugin, account.password, scramble)),)
        elif answer[:1] == bytes((AUTH_MORE_DATA_MARK,)):
            answer = yield from _more_data(account, answer[1:], scramble, is_private=is_private)
        else:
            raise PeerError(
                f"a packet that begins with {answer[:4].hex(' ') or 'nothing'} came in the login",
                peer=account.peer,
                phase="login",
            )


def _more_data(
    account: Account, data: bytes, scramble: bytes, *, is_private: bool
) -> Dialogue[bytes]:
    """Answer `caching_sha2_password` where the server does not know the password's hash yet."""
    if data == _FAST_AUTH_DONE:
        return (yield ())
    if data != _FULL_AUTH_WANTED:
        raise PeerError(
            f"the server wants {data[:4].hex(' ')} of {CACHING_SHA2_PASSWORD}",
            peer=account.peer,
            phase="login",
        )
    if is_private:
        return (yield (Reply(account.password.encode() + b"\0"),))
    key = yield (Reply(_REQUEST_PUBLIC_KEY),)
    if is_error(key):
        return key
    try:
        sealed = account.seal(key[1:], obscure(account.password.encode(), scramble))
    except ValueError as error:
        raise PeerError(
            f"the server's public key cannot be used: {error}", peer=account.peer, phase="login"
        ) from None
    return (yield (Reply(sealed),))


def _check_plugin(plugin: str, account: Account) -> None:
    if plugin not in KNOWN_PLUGINS:
        raise PeerError(
            f"the account uses the authentication plugin {plugin!r}; "
            f"binlane knows {' and '.join(KNOWN_PLUGINS)}",
            peer=account.peer,
            phase="login",
            hint=f"give binlane an account of its own: CREATE USER … IDENTIFIED VIA "
            f"{NATIVE_PASSWORD} USING PASSWORD('…')",
        )


def ask(statement: str, *, peer: str) -> Dialogue[ResultSet | None]:
    """Run a statement; give its rows, None where it has none.

    Raises:
        PeerError: If the server refuses it.
    """
    payload = yield (SendCommand(encode_query(statement)),)
    reader = ReplyReader(_CAPABILITIES)
    while True:
        reply = reader.feed(payload)
        if isinstance(reply, ErrPacket):
            raise refusal(payload, peer=peer, phase="query")
        if reply is not None:
            return reply if isinstance(reply, ResultSet) else None
        payload = yield ()


def tell(command: bytes, *, peer: str, phase: str) -> Dialogue[None]:
    """Send a command that is answered by OK.

    Raises:
        PeerError: If it is not.
    """
    answer = yield (SendCommand(command),)
    if not is_ok(answer):
        raise refusal(answer, peer=peer, phase=phase)


def refusal(payload: bytes, *, peer: str, phase: str) -> PeerError:
    """Return the error of a server's ERR packet, with advice on what to do next."""
    error = ErrPacket.decode(payload)
    return PeerError(
        f"the server says: {error.message} [{error.errno}]",
        peer=peer,
        phase=phase,
        errno=error.errno,
        hint=_HINTS.get(error.errno, ""),
    )
