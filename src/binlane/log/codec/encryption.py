"""Encrypted binlogs: the keys, the events that announce encryption, and the ciphers.

MariaDB encrypts every event behind a START_ENCRYPTION event by itself and leaves its length
readable; MySQL puts the whole file behind a header of 512 bytes. Where events begin in a stream is
not known here, see `grouping.decryption`. Secrets are never part of a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self

from binlane.errors import CodecError, ConfigError, UnsupportedError
from binlane.log.codec.buffer import Reader
from binlane.log.codec.format import Format

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher

Decrypt = Callable[[bytes, bytes], bytes]
"""Takes initialization vector and bytes, gives as many."""

OPTION: Final = "--encryption-keys"
BINLOG_KEY_ID: Final = 1
"""MariaDB's key for everything that is no table."""
MYSQL_HEADER_LENGTH: Final = 512

_NONCE_LENGTH: Final = 12
_BLOCK_LENGTH: Final = 16
_LENGTH_OFFSET: Final = 9
_KEY_LENGTHS: Final = (16, 24, 32)
_KEY_LINE: Final = re.compile(r"(\d+)\s*;\s*([0-9A-Fa-f]+)")
_SCHEME: Final = 1
_MYSQL_VERSION: Final = 1
_PASSWORD_LENGTH: Final = 32
_KEY_ID_FIELD, _PASSWORD_FIELD, _IV_FIELD = 1, 2, 3
_FILE_KEY_LENGTH, _FILE_NONCE_LENGTH = 32, 8
_FORMATS_HINT: Final = (
    "give MariaDB's file_key_management file (lines `ID;HEXKEY`) or MySQL's component_keyring_file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """Keys that encrypted binlogs may need.

    Attributes:
        mariadb: Key by id, of 16, 24 or 32 bytes.
        mysql: Replication key by its id in the keyring, of 32 bytes.
    """

    mariadb: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    mysql: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse a key file; its content shows which server's form it has.

        Args:
            data: MariaDB's file_key_management file or MySQL's component_keyring_file.

        Raises:
            ConfigError: If it is neither, or holds what is no key.
        """
        if data.startswith(b"Salted__"):
            raise _refused(
                "the key file is itself encrypted with a password",
                hint="decrypt it first: openssl enc -d -aes-256-cbc -md sha1"
                " -pass file:PASSWORD_FILE -in FILE -out KEYS",
            )
        if data.startswith(b"Keyring file version:"):
            raise _refused(
                "the key file is of MySQL's old keyring_file plugin",
                hint="migrate it to component_keyring_file: mysqld"
                " --keyring-migration-to-component",
            )
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise _refused("the key file is no text") from None
        if text.lstrip().startswith("{"):
            return cls(mysql=_component_keys(text))
        return cls(mariadb=_key_lines(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEncryptionEvent:
    """MariaDB: all events behind this one are encrypted.

    Attributes:
        scheme: The scheme of the encryption: 1.
        key_version: The version of key 1.
        nonce: 12 bytes; with an event's position they are its initialization vector.
    """

    scheme: int
    key_version: int
    nonce: bytes

    @classmethod
    def decode(cls, reader: Reader, format_: Format) -> Self:
        """Read the three fields."""
        del format_
        return cls(scheme=reader.u8(), key_version=reader.u32(), nonce=reader.take(_NONCE_LENGTH))

    def encode(self, format_: Format) -> bytes:
        """Exact inverse."""
        del format_
        return bytes((self.scheme,)) + self.key_version.to_bytes(4, "little") + self.nonce


class EventCipher(Enum):
    """The mode in which MariaDB encrypts events; the key plugin sets it, and no log names it."""

    CBC = "AES_CBC"
    CTR = "AES_CTR"


def mariadb_decryptor(
    event: StartEncryptionEvent, keys: KeyRing | None, cipher: EventCipher
) -> Callable[[bytes, int], bytes]:
    """Return the decryptor of the events behind a START_ENCRYPTION.

    Returns:
        A function of an event's bytes and its position in the file; its result is as long.

    Raises:
        UnsupportedError: If the scheme is unknown, or the key that it needs is not there.
    """
    if event.scheme != _SCHEME:
        raise UnsupportedError(f"encryption scheme {event.scheme} is unknown; 1 is known")
    if keys is None:
        raise UnsupportedError(
            f"the file is encrypted by MariaDB from here on, with key {BINLOG_KEY_ID}",
            hint=f"give its file_key_management file: {OPTION} FILE",
        )
    key = keys.mariadb.get(BINLOG_KEY_ID)
    if key is None:
        raise UnsupportedError(
            f"the file is encrypted by MariaDB from here on, with key {BINLOG_KEY_ID}, "
            f"which the key file lacks; it has {_listed(keys)}",
            hint=f"give the key file of the server that wrote the log: {OPTION} FILE",
        )
    decrypt = _cbc_decryptor(key) if cipher is EventCipher.CBC else _ctr_decryptor(key)
    nonce = event.nonce

    def decrypt_event(data: bytes, position: int) -> bytes:
        # The length takes the place of four encrypted bytes, which take that of the timestamp.
        hidden = data[4:9] + data[:4] + data[13:]
        plain = decrypt(nonce + (position & 0xFFFFFFFF).to_bytes(4, "little"), hidden)
        return plain[5:9] + plain[:5] + data[9:13] + plain[9:]

    return decrypt_event


def mysql_decryptor(header: bytes, keys: KeyRing | None) -> Callable[[bytes], bytes]:
    """Return the decryptor of the bytes behind the header of a file that MySQL encrypted.

    Args:
        header: The first 512 bytes of the file.
        keys: None if the user gave none.

    Returns:
        A function that takes piece after piece and gives as many bytes.

    Raises:
        CodecError: If the header is damaged.
        UnsupportedError: If its version is unknown, or the key that it needs is not there.

    Source: MySQL 9.7 sql/rpl_log_encryption.cc.
    """
    key_id, password, vector = _mysql_header(header)
    if keys is None:
        raise UnsupportedError(
            f"the file is encrypted by MySQL with the key {key_id}",
            hint=f"give the server's component_keyring_file: {OPTION} FILE",
        )
    key = keys.mysql.get(key_id)
    if key is None:
        raise UnsupportedError(
            f"the file is encrypted by MySQL with the key {key_id}, which the key file lacks; "
            f"it has {_listed(keys)}",
            hint=f"give the keyring of the server that wrote the log: {OPTION} FILE",
        )
    import hashlib  # noqa: PLC0415  # few files need it

    from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR  # noqa: PLC0415  # as above

    file_password = _aes(key, CBC(vector)).decryptor().update(password)
    secret = hashlib.sha512(file_password).digest()
    nonce = secret[_FILE_KEY_LENGTH : _FILE_KEY_LENGTH + _FILE_NONCE_LENGTH]
    counter = nonce.ljust(_BLOCK_LENGTH, b"\0")
    return _aes(secret[:_FILE_KEY_LENGTH], CTR(counter)).decryptor().update


def _mysql_header(header: bytes) -> tuple[str, bytes, bytes]:
    """Key id, encrypted file password and initialization vector."""
    reader = Reader(header, 4, len(header))
    version = reader.u8()
    if version != _MYSQL_VERSION:
        raise UnsupportedError(f"version {version} of MySQL's encryption is unknown; 1 is known")
    fields: dict[int, bytes] = {}
    while reader.remaining and (code := reader.u8()):
        if code == _KEY_ID_FIELD:
            fields[code] = reader.take(reader.u8())
        elif code == _PASSWORD_FIELD:
            fields[code] = reader.take(_PASSWORD_LENGTH)
        elif code == _IV_FIELD:
            fields[code] = reader.take(_BLOCK_LENGTH)
        else:
            raise CodecError(f"field {code} of the encryption header is unknown")
    if len(fields) != 3:
        raise CodecError(
            "the encryption header lacks the key's id, the file's password or the vector",
            hint="the file is damaged here: fetch it again from its source",
        )
    key_id = fields[_KEY_ID_FIELD].decode("utf-8", "backslashreplace")
    return key_id, fields[_PASSWORD_FIELD], fields[_IV_FIELD]


def _aes(key: bytes, mode: Any) -> Cipher[Any]:
    from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: PLC0415  # few files need it
    from cryptography.hazmat.primitives.ciphers.algorithms import AES  # noqa: PLC0415  # as above

    return Cipher(AES(key), mode)


# One cipher for all events, since making one takes longer than to decrypt a small event.
def _cbc_decryptor(key: bytes) -> Decrypt:
    """CBC over whole blocks; the rest is combined with the encrypted vector."""
    from cryptography.hazmat.primitives.ciphers.modes import ECB  # noqa: PLC0415  # few files need it

    cipher = _aes(key, ECB())  # noqa: S305  # CBC is made of it here
    encrypt, decrypt = cipher.encryptor().update, cipher.decryptor().update

    def decrypt_cbc(vector: bytes, data: bytes) -> bytes:
        length = len(data)
        rest = length % _BLOCK_LENGTH
        whole = length - rest
        blocks = decrypt(data[:whole]) + data[whole:]
        mask = (vector + data)[:whole] + encrypt(vector)[:rest]
        number = int.from_bytes(blocks, "little") ^ int.from_bytes(mask, "little")
        return number.to_bytes(length, "little")

    return decrypt_cbc


def _ctr_decryptor(key: bytes) -> Decrypt:
    from cryptography.hazmat.primitives.ciphers.modes import CTR  # noqa: PLC0415  # few files need it

    context = _aes(key, CTR(bytes(_BLOCK_LENGTH))).decryptor()

    def decrypt_ctr(vector: bytes, data: bytes) -> bytes:
        context.reset_nonce(vector)
        return context.update(data)

    return decrypt_ctr


def _key_lines(text: str) -> dict[int, bytes]:
    """MariaDB's file: `ID;HEXKEY` a line, comments behind `#`."""
    keys: dict[int, bytes] = {}
    for number, line in enumerate(text.split("\n"), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        found = _KEY_LINE.fullmatch(content)
        if found is None:
            raise _refused(f"line {number} of the key file is not `ID;HEXKEY`")
        keys[int(found[1])] = _key(found[2], f"line {number} of the key file", _KEY_LENGTHS)
    if not keys:
        raise _refused("the key file holds no keys")
    return keys


def _component_keys(text: str) -> dict[str, bytes]:
    """MySQL's file: JSON with a list of elements, whose data is in hexadecimal digits."""
    import json  # noqa: PLC0415  # few files need it

    try:
        elements = json.loads(text)["elements"]
        named = {each["data_id"]: each["data"] for each in elements if each["data_type"] == "AES"}
    except (ValueError, KeyError, TypeError):
        raise _refused("the key file is no JSON of component_keyring_file") from None
    return {
        name: _key(data, f"element {name} of the key file", _KEY_LENGTHS)
        for name, data in named.items()
        # Beside each server's keys stands the number of its newest one, under the same type.
        if isinstance(name, str) and re.search(r"_\d+$", name)
    }


def _key(text: object, place: str, lengths: tuple[int, ...]) -> bytes:
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        key = b""
    if len(key) not in lengths:
        raise _refused(f"{place} holds no key of 128, 192 or 256 bits in hexadecimal digits")
    return key


def _listed(keys: KeyRing) -> str:
    names = [*(f"key {number}" for number in sorted(keys.mariadb)), *sorted(keys.mysql)]
    return ", ".join(names) or "none"


def _refused(message: str, *, hint: str = _FORMATS_HINT) -> ConfigError:
    return ConfigError(message, key=OPTION, hint=hint)
