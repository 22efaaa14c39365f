# SPDX-License-Identifier: Apache-2.0
"""Certificates, expired credentials, and secrets, which are never written anywhere."""

import datetime
import ipaddress
import pickle
import ssl
import time

import pytest

from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage

pytestmark = needs("obstore")
SECRETS = {
    "aws_access_key_id": "AKIA-PLANTED",
    "aws_secret_access_key": "secret-key",
    "aws_session_token": "secret-token",
}


@pytest.fixture
def server():
    storage._connections.clear()
    with serving({"b/x": b"one", "b/y": b"two"}) as s:
        yield s


def build(files, **arguments):
    @pipeline_def(batch_size=len(files), num_threads=2, enable_checkpointing=True, **arguments)
    def pipe():
        return fn.readers.file(files=files)[0]

    return pipe()


def in_bucket(server, *names):
    options = {**SECRETS, "endpoint": server.url, "aws_region": "us-east-1"}
    return build([f"s3://b/{n}" for n in names], storage_options=options)


def certificate(folder):
    """A self-signed certificate for this machine."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "pem").write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    return folder / "pem"


def with_tls(server, folder):
    """Makes the server use TLS. Returns the certificate's file and the URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = certificate(folder)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return file, server.url.replace("http", "https")


@pytest.mark.parametrize("way", ["trusted", "not verified", "bucket"])
def test_https(server, tmp_path, monkeypatch, way):
    file, url = with_tls(server, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))  # which the system's tools for TLS take, too
    options = {
        "trusted": None,
        "not verified": {"client_options": {"allow_invalid_certificates": True}},
        "bucket": {"endpoint": url, **SECRETS, "aws_region": "us-east-1"},
    }[way]
    if way == "not verified":
        monkeypatch.delenv("SSL_CERT_FILE")
    pipe = build(["s3://b/x", "s3://b/y"] if way == "bucket" else [f"{url}/b/x", f"{url}/b/y"], storage_options=options)
    batch = pipe.run()[0]
    assert [bytes(batch.at(i)) for i in range(2)] == [b"one", b"two"]


def test_a_certificate_that_is_not_trusted(server, tmp_path):
    _, url = with_tls(server, tmp_path)
    begin = time.monotonic()
    pipe = build([f"{url}/b/x"])
    with pytest.raises(RuntimeError, match="the server's certificate is not trusted"):
        pipe.run()
    assert time.monotonic() - begin < 60 and pipe.stats()["remote"]["retries"] == 0
    assert not server.seen, "nothing was sent to a server that nobody knows"


def test_an_expired_token(server):
    pipe = in_bucket(server, "x", "y")
    batch = pipe.run()[0]
    assert [bytes(batch.at(i)) for i in range(2)] == [b"one", b"two"]
    assert any("secret-token" in value for h in server.seen for value in h.values()), "else this test says nothing"
    server.fault = lambda path, number: "expired"
    with pytest.raises(RuntimeError, match=r"400 Bad Request \(ExpiredToken\).*credentials") as caught:
        for _ in range(5):
            pipe.run()
    assert "secret" not in str(caught.value) and pipe.stats()["remote"]["retries"] == 0


@pytest.mark.parametrize("fault", ["403", "expired", "404"])
def test_no_credentials_in_anything(server, fault, capfd):
    """Even if the server's response contains them, as with some servers."""
    pipe = in_bucket(server, "x", "y")
    pipe.run()
    server.fault = lambda path, number: fault
    server.answer_with = "".join(SECRETS.values())
    with pytest.raises(RuntimeError) as caught:
        for _ in range(5):
            pipe.run()
    written = [pipe.serialize(), pipe.checkpoint(), pipe.explain(), pipe.stats(), pipe, pipe.errors()]
    written += [caught.value, caught.value.__cause__, caught.value.__context__, *capfd.readouterr()]
    written += [storage._connections, *storage._connections.values()]
    for text in map(repr, written):
        assert not any(secret in text for secret in SECRETS.values()), text
    assert not any(s.encode() in pickle.dumps(str(caught.value)) for s in SECRETS.values())
