"""Certificates: one that nobody signed, and an organisation's own authority."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl

import pytest

from llmkernel.providers.errors import NetworkError
from tests.unit.providers.support import PROVIDERS, REQUEST, FakeClock, last, make
from tests.wire.scripts import reply
from tests.wire.server import WireServer

x509 = pytest.importorskip("cryptography.x509")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Paths of a self-signed certificate for 127.0.0.1 and of its key."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "wire server")])
    now = dt.datetime.now(dt.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(addresses, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


@pytest.fixture
def tls_server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with WireServer(tls=context) as server:
        yield server


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_unknown_authority_is_named_at_once(name, tls_server, monkeypatch):
    clock = FakeClock()

    with pytest.raises(NetworkError) as caught:
        list(make(name, tls_server, monkeypatch, clock=clock).stream(REQUEST))

    assert "certificate" in caught.value.cause.lower()
    assert "SSL_CERT_FILE" in caught.value.next_step
    assert clock.slept == 0


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_authority_of_ones_own_is_believed(name, tls_server, certificate, monkeypatch):
    tls_server.queue(reply("over TLS"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    assert last(make(name, tls_server, monkeypatch).stream(REQUEST)).text == "over TLS"
