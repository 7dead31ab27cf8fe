"""Greetings and logins of known forms are read as if they were read anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from binlane.errors import CodecError
from binlane.live.gateway import known_logins
from binlane.live.gateway.known_logins import LoginForm, read_greeting, read_login
from binlane.log.codec.packets.flags import Capability, ExtendedCapability, ServerStatus
from binlane.log.codec.packets.handshake import Greeting, HandshakeResponse, SslRequest

_BASE = Capability.PROTOCOL_41 | Capability.PLUGIN_AUTH
_SECURE = _BASE | Capability.SECURE_CONNECTION
_LENENC = _SECURE | Capability.PLUGIN_AUTH_LENENC
_NUMBERS = random.Random(20)

MARIADB = Greeting(
    version="5.5.5-10.11.19-MariaDB",
    thread_id=77,
    auth_data=b"12345678abcdefghijkl\0",
    capabilities=_LENENC | Capability.COMPRESS | Capability.SESSION_TRACK,
    character_set=45,
    status=ServerStatus.AUTOCOMMIT,
    plugin="mysql_native_password",
    extended_capabilities=ExtendedCapability.PROGRESS | ExtendedCapability.COM_MULTI,
)
MYSQL = replace(
    MARIADB,
    version="9.7.4",
    capabilities=MARIADB.capabilities | Capability.LONG_PASSWORD | Capability.SSL,
    plugin="caching_sha2_password",
    extended_capabilities=ExtendedCapability(0),
    reserved=bytes(10),
)
# A challenge that is shorter, and one with a NUL in it, which servers do not send.
SHORT = replace(MARIADB, auth_data=b"12345678abcdefghijk\0\0\0")
WITHOUT_PLUGIN = replace(MARIADB, capabilities=Capability.PROTOCOL_41, plugin="")


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_logins, "_greetings", {})
    monkeypatch.setattr(known_logins, "_logins", {})


def _offered(greeting: Greeting) -> Greeting:
    return replace(
        greeting,
        capabilities=greeting.capabilities & ~Capability.COMPRESS | Capability.SSL,
        extended_capabilities=greeting.extended_capabilities & ~ExtendedCapability.COM_MULTI,
    )


@pytest.mark.parametrize("greeting", [MARIADB, MYSQL, SHORT, WITHOUT_PLUGIN])
def test_greetings_of_one_source(greeting: Greeting) -> None:
    for thread_id in (77, 78, 1 << 31):
        auth_data = _NUMBERS.randbytes(20).replace(b"\0", b"x") + greeting.auth_data[20:]
        now = replace(greeting, thread_id=thread_id, auth_data=auth_data)
        found = read_greeting(now.encode(), _offered, offers_tls=True)
        assert (found.thread_id, found.scramble) == (thread_id, now.scramble)
        assert found.offered == _offered(now).encode()
        assert found.source.capabilities == now.capabilities
        assert found.source.extended_capabilities == now.extended_capabilities
        assert found.source.server_version == now.server_version


def test_a_known_greeting_is_not_decoded_again() -> None:
    read_greeting(MARIADB.encode(), _offered, offers_tls=True)

    def change(greeting: Greeting) -> Greeting:
        raise AssertionError(greeting)

    read_greeting(replace(MARIADB, thread_id=5).encode(), change, offers_tls=True)
    with pytest.raises(AssertionError):
        read_greeting(MARIADB.encode(), change, offers_tls=False)
    with pytest.raises(AssertionError):
        read_greeting(replace(MARIADB, version="8.0").encode(), change, offers_tls=True)


def test_any_bytes_are_read_like_the_first_time() -> None:
    payloads = [greeting.encode() for greeting in (MARIADB, MYSQL)]
    for _ in range(2000):
        data = bytearray(_NUMBERS.choice(payloads))
        for _ in range(_NUMBERS.randint(0, 3)):
            data[_NUMBERS.randrange(len(data))] = _NUMBERS.choice((0, 1, 10, 21, 255))
        payload = bytes(data[: _NUMBERS.choice((len(data), _NUMBERS.randrange(len(data))))])
        found = _outcome(lambda: read_greeting(payload, _offered, offers_tls=True).offered)  # noqa: B023
        assert found == _outcome(lambda: _offered(Greeting.decode(payload)).encode())  # noqa: B023


def _login(capabilities: Capability, **fields: Any) -> HandshakeResponse:
    head = SslRequest(capabilities=capabilities, payload_max=1 << 24, character_set=45)
    given: dict[str, Any] = {"user": "app", "auth_response": b"x" * 20, **fields}
    return HandshakeResponse(head=head, plugin="mysql_native_password", **given)


@pytest.mark.parametrize("capabilities", [_BASE, _SECURE, _LENENC])
def test_logins_that_differ_by_their_answer(capabilities: Capability) -> None:
    for length in (20, 0, 1, 32, 200, 20):
        answer = _NUMBERS.randbytes(length).replace(b"\0", b"x")
        login = _login(capabilities, auth_response=answer)
        assert read_login(login.encode()) == LoginForm(
            "app", "mysql_native_password", ExtendedCapability(0)
        )
    other = _login(capabilities, user="other")
    assert read_login(other.encode()).user == "other"


@pytest.mark.parametrize("length", [250, 251, 255, 300])
def test_long_answers_to_the_challenge(length: int) -> None:
    login = _login(_LENENC, auth_response=b"y" * length)
    assert read_login(login.encode()).plugin == "mysql_native_password"


def test_no_answer_to_a_challenge_is_kept() -> None:
    read_login(_login(_SECURE, auth_response=b"a secret").encode())
    (key,) = known_logins._logins
    assert b"secret" not in b"".join(key)


def test_any_bytes_are_a_login_or_none_like_the_first_time() -> None:
    attributes = (("_os", "Linux"), ("_pid", "12"))
    payloads = [
        _login(_SECURE).encode(),
        _login(_LENENC | Capability.CONNECT_ATTRS, attributes=attributes).encode(),
        _login(_LENENC | Capability.CONNECT_WITH_DB, database="d").encode(),
    ]
    for payload in payloads:
        read_login(payload)
    for _ in range(3000):
        data = bytearray(_NUMBERS.choice(payloads))
        for _ in range(_NUMBERS.randint(0, 3)):
            data[_NUMBERS.randrange(len(data))] = _NUMBERS.choice((0, 1, 20, 250, 252, 255))
        payload = bytes(data[: _NUMBERS.choice((len(data), _NUMBERS.randrange(len(data))))])

        def anew(payload: bytes = payload) -> LoginForm:
            login = HandshakeResponse.decode(payload)
            return LoginForm(login.user, login.plugin or "", login.extended_capabilities)

        assert _outcome(lambda: read_login(payload)) == _outcome(anew)  # noqa: B023


def test_forms_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_logins, "_FORMS_MAX", 3)
    for number in range(20):
        assert read_login(_login(_SECURE, user=f"u{number}").encode()).user == f"u{number}"
        greeting = replace(MARIADB, version=f"10.{number}")
        read_greeting(greeting.encode(), _offered, offers_tls=True)
    long = _login(_SECURE, user="u" * 5000)
    assert read_login(long.encode()).user == "u" * 5000
    assert len(known_logins._logins) <= 3
    assert len(known_logins._greetings) <= 3


def _outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except CodecError as error:
        return type(error)
