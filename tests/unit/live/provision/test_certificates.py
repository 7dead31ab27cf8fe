"""The port's certificate: made, kept, made anew, or given."""

from __future__ import annotations

import logging
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from binlane.errors import ConfigError
from binlane.live.gateway.settings import GatewaySettings, TlsMode
from binlane.live.provision import certificates
from binlane.live.provision.certificates import port_context


def _files(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "tls").iterdir()}


def test_off_makes_nothing(tmp_path: Path) -> None:
    assert port_context(GatewaySettings(tls=TlsMode.OFF), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_made_once_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    port_context(GatewaySettings(), tmp_path)
    made = _files(tmp_path)
    assert set(made) == {"ca.pem", "ca-key.pem", "server-cert.pem", "server-key.pem"}
    for name in ("ca-key.pem", "server-key.pem"):
        assert (tmp_path / "tls" / name).stat().st_mode & 0o777 == 0o600
    assert "SHA-256 " in caplog.text
    assert f"--ssl-ca={tmp_path}/tls/ca.pem" in caplog.text
    port_context(GatewaySettings(), tmp_path)
    assert _files(tmp_path) == made


def test_new_address_keeps_the_authority(tmp_path: Path) -> None:
    port_context(GatewaySettings(), tmp_path)
    before = _files(tmp_path)
    port_context(GatewaySettings(address="0.0.0.0"), tmp_path)
    assert _files(tmp_path) == before
    port_context(GatewaySettings(address="10.1.2.3"), tmp_path)
    after = _files(tmp_path)
    assert after["ca.pem"] == before["ca.pem"]
    assert after["server-cert.pem"] != before["server-cert.pem"]


def test_more_names_are_in_a_new_certificate_of_the_same_authority(tmp_path: Path) -> None:
    port_context(GatewaySettings(), tmp_path)
    before = _files(tmp_path)
    settings = GatewaySettings(tls_names=("db.example.com", "*.b.example", "2001:DB8::1"))
    port_context(settings, tmp_path)
    after = _files(tmp_path)
    assert after["ca.pem"] == before["ca.pem"]
    certificate = x509.load_pem_x509_certificate(after["server-cert.pem"])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    told = {str(name.value) for name in names}
    assert {"db.example.com", "*.b.example", "2001:db8::1", "localhost"} <= told
    port_context(settings, tmp_path)
    assert _files(tmp_path) == after


@pytest.mark.parametrize("name", ["", "a b", "über.example", "-x", "a/b", "https://a"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no host name"):
        GatewaySettings(tls_names=(name,))


@pytest.mark.parametrize("lost", ["server-key.pem", "server-cert.pem", "ca-key.pem"])
def test_what_is_lost_is_made_anew(tmp_path: Path, lost: str) -> None:
    port_context(GatewaySettings(), tmp_path)
    before = _files(tmp_path)
    (tmp_path / "tls" / lost).write_text("torn")
    assert port_context(GatewaySettings(), tmp_path) is not None
    after = _files(tmp_path)
    assert (after["ca.pem"] == before["ca.pem"]) is lost.startswith("server")


def _given(data: Path) -> GatewaySettings:
    tls = data / "tls"
    return GatewaySettings(tls_cert=tls / "server-cert.pem", tls_key=tls / "server-key.pem")


def test_given_files(tmp_path: Path) -> None:
    port_context(GatewaySettings(), tmp_path)
    assert port_context(_given(tmp_path), tmp_path / "other") is not None
    assert not (tmp_path / "other").exists()


def test_given_files_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    port_context(GatewaySettings(), one)
    port_context(GatewaySettings(), other)
    settings = _given(one)
    now = certificates._now()
    for moved, said in ((timedelta(days=4000), "ended on"), (timedelta(days=-4000), "begins on")):
        with monkeypatch.context() as patch:
            patch.setattr(certificates, "_now", lambda at=now + moved: at)
            with pytest.raises(ConfigError, match=said):
                port_context(settings, tmp_path)
    shutil.copy(other / "tls/server-key.pem", one / "tls/server-key.pem")
    with pytest.raises(ConfigError, match="cannot be used together") as caught:
        port_context(settings, tmp_path)
    assert caught.value.hint
    (one / "tls/server-key.pem").unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        port_context(settings, tmp_path)
    (one / "tls/server-cert.pem").write_text("text")
    with pytest.raises(ConfigError, match="holds no certificate"):
        port_context(settings, tmp_path)


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("a file")
    with pytest.raises(ConfigError, match="no certificate can be made"):
        port_context(GatewaySettings(), tmp_path)


def test_half_a_pair_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs its key"):
        GatewaySettings(tls_cert=Path("cert.pem"))
