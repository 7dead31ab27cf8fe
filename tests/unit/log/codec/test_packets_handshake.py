from __future__ import annotations

import pytest

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.packets.flags import (
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.handshake import (
    AuthSwitch,
    Greeting,
    HandshakeResponse,
    SslRequest,
    is_ssl_request,
)

# Sent by MariaDB 10.11.19, by its command line client 10.11 and by PyMySQL 1.2.4.
MARIADB_GREETING = bytes.fromhex(
    "0a352e352e352d31302e31312e31392d4d6172696144422d302b646562313275312d6c6f6700"
    "06000000224722713450737100fef7080200ff81150000000000001d000000606e266f21535c577c2f6f63"
    "006d7973716c5f6e61746976655f70617373776f726400"
)
MARIADB_LOGIN = bytes.fromhex(
    "84a2bf000000100021000000000000000000000000000000000000001d0000007500146fd6cdf80785ed93ad"
    "42207132cdc203f2b3a26f6d7973716c5f6e61746976655f70617373776f7264007e035f6f73054c696e7578"
    "0c5f636c69656e745f6e616d650a6c69626d617269616462045f70696404343539370f5f636c69656e745f76"
    "657273696f6e06332e332e3230095f706c6174666f726d067838365f36340c70726f6772616d5f6e616d6505"
    "6d7973716c0c5f7365727665725f686f7374093132372e302e302e31"
)
PYMYSQL_LOGIN = bytes.fromhex(
    "05a23a00ffffff002d00000000000000000000000000000000000000000000007500144c472649687f1e77dd"
    "ef560143b3d0f02a2544d56d7973716c5f6e61746976655f70617373776f726400350c5f636c69656e745f6e"
    "616d650770796d7973716c0f5f636c69656e745f76657273696f6e05312e322e34045f706964043435343030"
)[:-1]


def test_a_mariadb_greeting() -> None:
    greeting = Greeting.decode(MARIADB_GREETING)
    assert greeting.version == "5.5.5-10.11.19-MariaDB-0+deb12u1-log"
    assert greeting.server_version == "10.11.19-MariaDB-0+deb12u1-log"
    assert greeting.thread_id == 6
    assert greeting.scramble == b'"G"q4Psq`n&o!S\\W|/oc'
    assert greeting.plugin == "mysql_native_password"
    assert greeting.status == ServerStatus.AUTOCOMMIT
    assert Capability.PLUGIN_AUTH in greeting.capabilities
    assert Capability.LONG_PASSWORD not in greeting.capabilities
    assert Capability.SSL not in greeting.capabilities
    assert ExtendedCapability.CACHE_METADATA in greeting.extended_capabilities
    assert greeting.encode() == MARIADB_GREETING


def test_a_mysql_greeting_has_no_extended_capabilities() -> None:
    greeting = Greeting(
        version="9.7.4",
        thread_id=8,
        auth_data=b"a" * 20 + b"\0",
        capabilities=Capability(0xDFFFFFFF),
        character_set=255,
        status=ServerStatus.AUTOCOMMIT,
        plugin="caching_sha2_password",
        reserved=bytes(10),
    )
    assert Greeting.decode(greeting.encode()) == greeting
    assert greeting.server_version == "9.7.4"


def test_another_protocol_is_no_greeting() -> None:
    with pytest.raises(UnsupportedError, match="protocol version 72") as caught:
        Greeting.decode(b"HTTP/1.1 400 Bad Request")
    assert "MariaDB or MySQL" in caught.value.hint


@pytest.mark.parametrize("login", [MARIADB_LOGIN, PYMYSQL_LOGIN])
def test_logins_of_real_clients_are_encoded_back(login: bytes) -> None:
    response = HandshakeResponse.decode(login)
    assert response.user == "u"
    assert response.plugin == "mysql_native_password"
    assert len(response.auth_response) == 20
    assert response.database is None
    assert response.encode() == login


def test_what_clients_say_of_themselves() -> None:
    mariadb, pymysql = map(HandshakeResponse.decode, (MARIADB_LOGIN, PYMYSQL_LOGIN))
    assert mariadb.attributes is not None
    assert ("_client_name", "libmariadb") in mariadb.attributes
    assert mariadb.extended_capabilities == ExtendedCapability(0x1D)
    assert pymysql.attributes is not None
    assert ("_client_version", "1.2.4") in pymysql.attributes
    assert pymysql.extended_capabilities == NO_EXTENSIONS


@pytest.mark.parametrize(
    "capabilities",
    [
        Capability.PROTOCOL_41,
        Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION,
        Capability.PROTOCOL_41 | Capability.PLUGIN_AUTH_LENENC | Capability.CONNECT_WITH_DB,
    ],
)
def test_every_form_of_the_answer_to_the_challenge(capabilities: Capability) -> None:
    head = SslRequest(capabilities=capabilities, payload_max=1 << 24, character_set=45)
    database = "shop" if Capability.CONNECT_WITH_DB in capabilities else None
    response = HandshakeResponse(head=head, user="ü", auth_response=b"proof", database=database)
    assert HandshakeResponse.decode(response.encode()) == response


def test_a_tls_request_is_the_head_of_a_login() -> None:
    capabilities = Capability.PROTOCOL_41 | Capability.SSL
    request = SslRequest(capabilities=capabilities, payload_max=1 << 24, character_set=45)
    payload = request.encode()
    assert len(payload) == 32
    assert is_ssl_request(payload)
    assert SslRequest.decode(payload) == request
    assert not is_ssl_request(MARIADB_LOGIN)


def test_clients_before_4_1_cannot_log_in() -> None:
    with pytest.raises(UnsupportedError, match=r"older than MySQL 4\.1"):
        HandshakeResponse.decode(b"\x01\x00\x00\x00\x01root\x00")


def test_a_change_of_plugin() -> None:
    payload = b"\xfecaching_sha2_password\0" + b"s" * 20 + b"\0"
    switch = AuthSwitch.decode(payload)
    assert (switch.plugin, switch.scramble) == ("caching_sha2_password", b"s" * 20)
    assert switch.encode() == payload
    assert AuthSwitch.decode(b"\xfe").plugin == "mysql_old_password"


def test_a_cut_greeting_is_an_error() -> None:
    for length in range(1, len(MARIADB_GREETING) - len("mysql_native_password") - 1):
        with pytest.raises(CodecError):
            Greeting.decode(MARIADB_GREETING[:length])
