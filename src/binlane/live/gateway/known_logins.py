"""Greetings and logins of forms that have come before, which are not read again (pure).

All greetings of one source are the same but for the connection's id and the challenge, all logins of one program
but for the answer to the challenge. Forms are few; some more than are kept begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from binlane.log.codec.packets.flags import Capability, ExtendedCapability
from binlane.log.codec.packets.handshake import (
    PROTOCOL_VERSION,
    SCRAMBLE_LENGTH,
    SSL_REQUEST_LENGTH,
    Greeting,
    HandshakeResponse,
)

_FORMS_MAX: Final = 256
_FORM_LENGTH_MAX: Final = 1024
_THREAD: Final = Struct("<I8s")
"""A greeting's fields behind the version: the connection's id and the head of the challenge."""
_FLAGS_LENGTH: Final = 19
"""Bytes between the two parts of the challenge: a zero, then capabilities, character set, status, length."""
_LENGTH_AT: Final = 8
_TAIL_LENGTH: Final = 12
_LENGTH_MAX: Final = 250
"""The longest answer whose length is one byte in either form of a login."""
_HAS_LENGTH: Final = int(Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH_LENENC)

_Key = TypeVar("_Key")
_Form = TypeVar("_Form")


class OfferedGreeting(NamedTuple):
    """A greeting of the source, and the one that the client gets in its place.

    Attributes:
        source: The source's greeting; its connection's id and challenge are those of the first of its form.
        thread_id: The connection's id, as KILL takes it.
        scramble: The challenge itself, 20 bytes.
        offered: Payload of the greeting for the client.
    """

    source: Greeting
    thread_id: int
    scramble: bytes
    offered: bytes


class _GreetingForm(NamedTuple):
    source: Greeting
    flags: bytes


class LoginForm(NamedTuple):
    """A login without the answer to the challenge.

    Attributes:
        user: The account's name without a host.
        plugin: The plugin that answered; empty if the client names none.
        extended: MariaDB's own capabilities that the client wants.
    """

    user: str
    plugin: str
    extended: ExtendedCapability


_greetings: Final[dict[tuple[bytes, bytes, bytes, bool], _GreetingForm]] = {}
_logins: Final[dict[tuple[bytes, bytes], LoginForm]] = {}


def read_greeting(
    payload: bytes, change: Callable[[Greeting], Greeting], *, offers_tls: bool
) -> OfferedGreeting:
    """Read a source's greeting.

    Args:
        payload: Payload of the source's first packet.
        change: Changes capabilities in the greeting, in one way for each value of `offers_tls`.
        offers_tls: True if the client is offered TLS.

    Raises:
        CodecError: If it is no greeting.
    """
    version_end = payload.find(0, 1) + 1
    flags_at = version_end + _THREAD.size
    tail_at = flags_at + _FLAGS_LENGTH
    end = tail_at + _TAIL_LENGTH
    if not version_end or payload[0] != PROTOCOL_VERSION or len(payload) <= end or payload[end]:
        return _read_anew(payload, change)
    flags = payload[flags_at:tail_at]
    if flags[0] or flags[_LENGTH_AT] != SCRAMBLE_LENGTH + 1 or len(payload) > _FORM_LENGTH_MAX:
        return _read_anew(payload, change)
    key = payload[:version_end], flags, payload[end:], offers_tls
    form = _greetings.get(key)
    if form is None:
        anew = _read_anew(payload, change)
        changed = anew.offered[flags_at:tail_at]
        if payload[:flags_at] + changed + payload[tail_at:] == anew.offered:
            _keep(_greetings, key, _GreetingForm(anew.source, changed))
        return anew
    thread_id, head = _THREAD.unpack_from(payload, version_end)
    offered = payload[:flags_at] + form.flags + payload[tail_at:]
    return OfferedGreeting(form.source, thread_id, head + payload[tail_at:end], offered)


def read_login(payload: bytes) -> LoginForm:
    """Read a client's login.

    Raises:
        CodecError: If it is none.
    """
    user_end = payload.find(0, SSL_REQUEST_LENGTH)
    answer_at = user_end + 2
    has_length = int.from_bytes(payload[:4], "little") & _HAS_LENGTH
    if user_end < 0 or not has_length or not answer_at <= len(payload) <= _FORM_LENGTH_MAX:
        return _form_of(payload)
    answer_end = answer_at + payload[answer_at - 1]
    if payload[answer_at - 1] > _LENGTH_MAX or answer_end > len(payload):
        return _form_of(payload)
    key = payload[:answer_at], payload[answer_end:]
    form = _logins.get(key)
    if form is None:
        form = _form_of(payload)
        _keep(_logins, key, form)
    return form


def _read_anew(payload: bytes, change: Callable[[Greeting], Greeting]) -> OfferedGreeting:
    source = Greeting.decode(payload)
    return OfferedGreeting(source, source.thread_id, source.scramble, change(source).encode())


def _form_of(payload: bytes) -> LoginForm:
    login = HandshakeResponse.decode(payload)
    return LoginForm(login.user, login.plugin or "", login.extended_capabilities)


def _keep(forms: dict[_Key, _Form], key: _Key, form: _Form) -> None:
    if len(forms) >= _FORMS_MAX:
        forms.clear()
    forms[key] = form
