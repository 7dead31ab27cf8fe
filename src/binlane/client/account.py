"""The account that logs in at a server, and its needs outside: certificates and keys."""

from __future__ import annotations

import ssl

from binlane.client.dialogue import Account
from binlane.client.settings import ServerUrl, SslMode
from binlane.errors import ConfigError


def account_at(url: ServerUrl, password: str) -> Account:
    """Return the account that logs in at a server."""
    return Account(
        peer=str(url),
        user=url.user,
        password=password,
        ssl_mode=url.ssl_mode,
        is_local=url.socket is not None,
        seal=seal,
    )


def tls_context(url: ServerUrl) -> ssl.SSLContext:
    """Return the certificates that a connection to a server trusts and shows.

    Raises:
        ConfigError: If a file of certificates cannot be used.
    """
    is_checked = url.ssl_mode in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY)
    try:
        if is_checked or url.ssl_ca is not None:
            context = ssl.create_default_context(cafile=url.ssl_ca)
        else:
            # Reading the machine's certificates takes longer than all else of a connection.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if url.ssl_cert is not None:
            context.load_cert_chain(url.ssl_cert, url.ssl_key)
    except OSError as error:
        raise ConfigError(
            f"the TLS files of {url} cannot be used: {error}",
            key="source.url",
            hint="check ssl-ca, ssl-cert and ssl-key",
        ) from None
    context.check_hostname = url.ssl_mode is SslMode.VERIFY_IDENTITY
    if not is_checked:
        context.verify_mode = ssl.CERT_NONE
    return context


def seal(pem: bytes, data: bytes) -> bytes:
    """Encrypt with a server's public key, as `caching_sha2_password` wants it.

    Raises:
        ValueError: If `pem` is no public key for it.
    """
    # Few logins need it, and Spark's workers need not have it.
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA1  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    key = load_pem_public_key(pem)
    if not isinstance(key, RSAPublicKey):
        raise ValueError("caching_sha2_password takes RSA keys")  # noqa: TRY004 - the peer's fault
    return key.encrypt(data, OAEP(mgf=MGF1(SHA1()), algorithm=SHA1(), label=None))  # noqa: S303
