"""The port's certificate: the one that is given, else one of binlane's own making.

What is made lives in `data_dir/tls`, under the names that MySQL gives its own: a certificate
authority, and a server certificate by it. The latter is made anew when its names or its time are
over; clients that trust the authority go on as before.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from binlane.errors import ConfigError
from binlane.live.gateway.settings import GatewaySettings, TlsMode

TLS_DIRECTORY: Final = "tls"
_VALIDITY: Final = timedelta(days=3650)
_ENDS_SOON: Final = timedelta(days=30)
# Clocks of other machines may be behind this one's.
_BEFORE_NOW: Final = timedelta(days=1)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_COMMON_NAME_MAX: Final = 64
_FILES_HINT: Final = "name PEM files that binlane's account may read"

logger = logging.getLogger(__name__)


def port_context(
    settings: GatewaySettings, data_dir: Path, *, is_told: bool = True
) -> ssl.SSLContext | None:
    """Return the TLS context that clients of the port are shown; None where TLS is off.

    Where no files are given those of `data_dir` are used, and made if they are not there.

    Args:
        settings: The files to use, and if TLS is on.
        data_dir: Holds those of binlane's own.
        is_told: True if the log gets to know which certificate it is.

    Raises:
        ConfigError: If a file cannot be used: it cannot be read, is a key of another certificate,
            or not valid now.
    """
    if settings.tls is TlsMode.OFF:
        return None
    if settings.tls_cert is not None and settings.tls_key is not None:
        context = _context(settings.tls_cert, settings.tls_key)
        if is_told:
            _tell(settings.tls_cert)
        return context
    own = _OwnFiles(data_dir / TLS_DIRECTORY)
    try:
        own.make(_names(settings.address, settings.tls_names))
    except OSError as error:
        raise ConfigError(
            f"no certificate can be made in {own.directory}: {error.strerror or error}",
            key="listen.tls_cert",
            hint='let binlane write there, give tls_cert and tls_key, or set tls = "off"',
        ) from None
    context = _context(own.certificate, own.key)
    if is_told:
        _tell(own.certificate, f"; clients verify it with --ssl-ca={own.ca}")
    return context


def check_given(settings: GatewaySettings) -> None:
    """See that the files which settings name can be used; those that binlane makes it looks after.

    Raises:
        ConfigError: As `port_context`.
    """
    if settings.tls is TlsMode.OFF or settings.tls_cert is None or settings.tls_key is None:
        return
    _context(settings.tls_cert, settings.tls_key)


def _names(address: str, more: Sequence[str]) -> list[str]:
    """Names that clients may call the port by: host names and addresses."""
    names = [socket.gethostname(), *_LOOPBACK]
    host = address.strip("[]")
    if host and not _is_any_address(host) and host not in names:
        names.append(host)
    return list(dict.fromkeys((*names, *map(_as_told, more))))


def _as_told(name: str) -> str:
    """A name as certificates tell it: addresses in their one form."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name


def _is_any_address(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    _check_time(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    # Sessions of databases last: nobody gains by resuming one.
    context.num_tickets = 0
    try:
        # Without a password given OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise ConfigError(
            f"{certificate} and {key} cannot be used together: {reason}",
            key="listen.tls_key",
            hint="give the key that the certificate was made for, as PEM without a passphrase",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read {key}: {error.strerror or error}", key="listen.tls_key", hint=_FILES_HINT
        ) from None
    return context


def _check_time(path: Path) -> None:
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", key="listen.tls_cert", hint=_FILES_HINT
        ) from None
    except ValueError:
        raise ConfigError(
            f"{path} holds no certificate", key="listen.tls_cert", hint=_FILES_HINT
        ) from None
    now, begin, end = _now(), certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > end:
        raise ConfigError(
            f"the certificate {path} ended on {end:%Y-%m-%d}",
            key="listen.tls_cert",
            hint="put a new one there, or leave out tls_cert and tls_key: binlane makes its own",
        )
    if now < begin:
        raise ConfigError(
            f"the certificate {path} begins on {begin:%Y-%m-%d}",
            key="listen.tls_cert",
            hint="is the clock of this machine right?",
        )


def _tell(path: Path, more: str = "") -> None:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    fingerprint = sha256(certificate.public_bytes(Encoding.DER)).digest().hex(":").upper()
    end = certificate.not_valid_after_utc
    logger.info(
        "TLS: certificate %s, valid until %s, SHA-256 %s%s", path, f"{end:%F}", fingerprint, more
    )
    if end - _now() < _ENDS_SOON:
        logger.warning("the certificate %s ends on %s: put a new one there", path, f"{end:%F}")


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Self | None:
        """Read the pair of two files; None where they are no pair that binlane has made."""
        try:
            found = x509.load_pem_x509_certificate(certificate.read_bytes())
            its_key = load_pem_private_key(key.read_bytes(), None)
        except (FileNotFoundError, ValueError, TypeError):
            return None
        if (
            not isinstance(its_key, EllipticCurvePrivateKey)
            or found.public_key() != its_key.public_key()
        ):
            return None
        return cls(found, its_key)

    @property
    def lasts(self) -> bool:
        """True if the certificate is valid, and will be for some time."""
        begin, end = self.certificate.not_valid_before_utc, self.certificate.not_valid_after_utc
        return begin <= _now() < end - _ENDS_SOON

    def names(self) -> frozenset[str]:
        """Host names and addresses that the certificate is valid for."""
        found = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return frozenset(str(name.value) for name in found.value)

    def write(self, certificate: Path, key: Path) -> None:
        """Put it into two files; a crash leaves whole ones, maybe of two pairs."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _replace(key, pem, mode=0o600)
        _replace(certificate, self.certificate.public_bytes(Encoding.PEM), mode=0o644)


@dataclass(frozen=True, slots=True)
class _OwnFiles:
    """The key and certificates that binlane has made for itself.

    Attributes:
        directory: The directory that holds the files.
    """

    directory: Path

    @property
    def ca(self) -> Path:
        """Certificate of the authority."""
        return self.directory / "ca.pem"

    @property
    def certificate(self) -> Path:
        """Certificate of the server."""
        return self.directory / "server-cert.pem"

    @property
    def key(self) -> Path:
        """Key of the server's certificate."""
        return self.directory / "server-key.pem"

    def make(self, names: Sequence[str]) -> None:
        """Make what is not there, or not valid for long or for all names.

        Raises:
            OSError: If it cannot be written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        ca_key = self.directory / "ca-key.pem"
        authority = _Pair.read(self.ca, ca_key)
        server = _Pair.read(self.certificate, self.key)
        if authority is None or not authority.lasts:
            if self.ca.exists():
                logger.warning("%s is made anew: clients that verify need the new one", self.ca)
            authority = _new_authority()
            authority.write(self.ca, ca_key)
        if (
            server is None
            or not server.lasts
            or not server.names().issuperset(names)
            or not _is_issued_by(server, authority)
        ):
            _issue(names, authority).write(self.certificate, self.key)


def _is_issued_by(server: _Pair, authority: _Pair) -> bool:
    try:
        server.certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _new_authority() -> _Pair:
    key = generate_private_key(SECP256R1())
    name = _name(f"binlane on {socket.gethostname()}, certificate authority")
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
    )
    return _Pair(builder.sign(key, SHA256()), key)


def _issue(names: Sequence[str], authority: _Pair) -> _Pair:
    """A server's certificate; it ends with its authority at the latest."""
    key = generate_private_key(SECP256R1())
    signer = authority.certificate
    builder = (
        _builder(_name(names[0]), signer.subject, key, end=signer.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            critical=False,
        )
        .add_extension(
            x509.SubjectAlternativeName(list(map(_general_name, names))),
            critical=False,
        )
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return _Pair(builder.sign(authority.key, SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    *,
    end: datetime | None = None,
) -> x509.CertificateBuilder:
    now = _now()
    latest = now + _VALIDITY
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE_NOW)
        .not_valid_after(latest if end is None else min(end, latest))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_COMMON_NAME_MAX])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _now() -> datetime:
    return datetime.now(UTC)


def _replace(path: Path, data: bytes, *, mode: int) -> None:
    """Write a whole file or none."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
