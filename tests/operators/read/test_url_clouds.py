# SPDX-License-Identifier: Apache-2.0
"""Data sets in Google Cloud Storage and Azure Blob Storage, and the sources of credentials for them and for S3:
environment, files and options."""

import json
from urllib.parse import unquote

import numpy as np
import pytest
from test_by_url import READERS, assert_same, batches

from cloud_servers import AmazonServer, AzureServer, GoogleServer
from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage
from penstock.core.store_options import VARIABLES

pytestmark = needs("obstore")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """An environment without credentials or a settings folder."""
    import os

    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    storage._connections.clear()


@pytest.mark.parametrize("scheme", ["gs", "az"])
@pytest.mark.parametrize("name", READERS)
def test_same_as_files(tmp_path, monkeypatch, name, scheme):
    write, reader, arguments = READERS[name]
    write(tmp_path / "data")
    with serving(kind=GoogleServer if scheme == "gs" else AzureServer) as server:
        server.put_folder(tmp_path / "data", "bucket/some data")
        if scheme == "gs":
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        else:
            monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection(server))
        for order in ({}, {"random_shuffle": True}):
            here, there = arguments(str(tmp_path / "data")), arguments(f"{scheme}://bucket/some data")
            assert_same(batches(reader, **there, **order), batches(reader, **here, **order))
        assert server.asked


def connection(server, **more):
    parts = {"AccountName": server.account, "AccountKey": server.key, "BlobEndpoint": server.endpoint, **more}
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def build(urls, **arguments):
    @pipeline_def(batch_size=len(urls), num_threads=2, enable_checkpointing=True, **arguments)
    def pipe():
        return fn.readers.file(files=urls)[0]

    return pipe()


def contents(pipe):
    batch = pipe.run()[0]
    return [bytes(np.asarray(batch.at(i))) for i in range(len(batch))]


OBJECTS = {"bucket/a b/ü#1.jpg": b"one", "bucket/x": b"two" * 900}


def service_account(server, folder):
    """A file with the private key of a service account; the server has the public key."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization as form

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    server.public_key = key.public_key()
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
    about = {"type": "service_account", "private_key": pem, "private_key_id": "1", "client_email": "me@example.org"}
    (folder / "key.json").write_text(json.dumps(about))
    return str(folder / "key.json")


# For each store: the scheme, and a function from server and folder to environment variables and options.
GOOGLE = {
    "emulator": ("gs", lambda s, _: ({"STORAGE_EMULATOR_HOST": s.url}, {})),
    "emulator without http": ("gs", lambda s, _: ({"STORAGE_EMULATOR_HOST": s.url[7:]}, {})),
    "gcs": ("gcs", lambda s, _: ({"STORAGE_EMULATOR_HOST": s.url}, {})),
    "variables": ("gs", lambda s, _: ({"GOOGLE_BASE_URL": s.url, "GOOGLE_BEARER_TOKEN": token(s)}, {})),
    "options": ("gs", lambda s, _: ({}, {"base_url": s.url, "google_bearer_token": token(s)})),
    "options come first": (
        *(
            "gs",
            lambda s, _: (
                {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"},
                {"base_url": s.url, "bearer_token": token(s)},
            ),
        ),
    ),
    "anybody": ("gs", lambda s, _: ({}, {"base_url": s.url, "skip_signature": True})),
    "service account": (
        *("gs", lambda s, at: ({"GOOGLE_SERVICE_ACCOUNT": service_account(s, at), "GOOGLE_BASE_URL": s.url}, {})),
    ),
    "role of the machine": ("gs", lambda s, _: (google_role(s), {"base_url": s.url})),
    "application credentials": (
        *("gs", lambda s, at: ({"GOOGLE_APPLICATION_CREDENTIALS": service_account(s, at)}, {"base_url": s.url})),
    ),
}


def token(server):
    server.token = "a-secret-token"
    return server.token


def google_role(server):
    """A token from the metadata service of a machine."""
    at = "computeMetadata/v1/instance/service-accounts/default/token"
    server.objects[at] = json.dumps(
        {"access_token": token(server), "expires_in": 3600, "token_type": "Bearer"}
    ).encode()
    server.is_open = lambda path: path == at
    return {"GCE_METADATA_HOST": server.url.removeprefix("http://")}


def in_variables(server):
    return {"AZURE_STORAGE_ACCOUNT_NAME": server.account, "AZURE_STORAGE_ENDPOINT": server.endpoint}


AZURE = {
    "connection string": ("az", lambda s, _: ({"AZURE_STORAGE_CONNECTION_STRING": connection(s)}, {})),
    "connection string with a signature": (
        *(
            "az",
            lambda s, _: (
                {"AZURE_STORAGE_CONNECTION_STRING": connection(s, AccountKey="", SharedAccessSignature=s.sas)},
                {},
            ),
        ),
    ),
    "connection string without a name": (
        *("az", lambda s, _: ({"AZURE_STORAGE_CONNECTION_STRING": connection(s, AccountName="")}, {})),
    ),
    "connection string as option": ("az", lambda s, _: ({}, {"connection_string": connection(s)})),
    "variables": ("az", lambda s, _: ({**in_variables(s), "AZURE_STORAGE_ACCOUNT_KEY": s.key}, {})),
    "variables of az": (
        *(
            "az",
            lambda s, _: (
                {"AZURE_STORAGE_ACCOUNT": s.account, "AZURE_STORAGE_KEY": s.key, "AZURE_ENDPOINT": s.endpoint},
                {},
            ),
        ),
    ),
    "signature": ("az", lambda s, _: ({**in_variables(s), "AZURE_STORAGE_SAS_TOKEN": s.sas}, {})),
    "options": ("az", lambda s, _: ({}, {"account_name": s.account, "account_key": s.key, "endpoint": s.endpoint})),
    "azure": ("azure", lambda s, _: ({"AZURE_STORAGE_CONNECTION_STRING": connection(s)}, {})),
    "abfs": ("abfs", lambda s, _: ({"AZURE_STORAGE_CONNECTION_STRING": connection(s)}, {})),
    "abfss": ("abfss", lambda s, _: ({**in_variables(s), "AZURE_STORAGE_ACCESS_KEY": s.key}, {})),
    "abfss with the account": (
        *(
            "abfss@",
            lambda s, _: ({"AZURE_STORAGE_ENDPOINT": s.endpoint}, {"account_key": s.key, "account_name": s.account}),
        ),
    ),
    "abfss with the account twice": (
        "abfss@",
        lambda s, _: ({**in_variables(s), "AZURE_STORAGE_ACCESS_KEY": s.key}, {}),
    ),
}
AMAZON = {
    "variables": ("s3", lambda s, _: ({"AWS_ENDPOINT_URL": s.url, **KEYS}, {})),
    "s3a": ("s3a", lambda s, _: ({"AWS_ENDPOINT_URL": s.url, **KEYS}, {})),
    "profile": ("s3", lambda s, at: (aws_files(s, at), {})),
    "profile by name": ("s3", lambda s, at: (aws_files(s, at, "work") | {"AWS_PROFILE": "work"}, {})),
    "temporary": ("s3", lambda s, at: (aws_files(s, at, session_token="a-secret-token"), {})),
    "options come first": (
        *(
            "s3",
            lambda s, at: (
                aws_files(s, at, access_key_id="other"),
                {"access_key_id": "AKIA", "secret_access_key": "a-secret-key"},
            ),
        ),
    ),
    "role of the machine": ("s3", lambda s, _: (role(s), {})),
    "variables come before files": ("s3", lambda s, at: (aws_files(s, at, access_key_id="other") | KEYS, {})),
    "other endpoints of the environment": (
        *("s3", lambda s, _: ({"AN_ENDPOINT": "https://127.0.0.1:9", "AWS_ENDPOINT_URL": s.url, **KEYS}, {})),
    ),
}
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "a-secret-key"}


def aws_files(server, folder, profile="default", access_key_id="AKIA", session_token=""):
    """Writes the files and returns the environment variables with their paths."""
    more = f"aws_session_token = {session_token}\n" if session_token else ""
    (folder / "credentials").write_text(
        f"[{profile}]\naws_access_key_id = {access_key_id}\naws_secret_access_key = a-secret-key\n{more}"
    )
    section = profile if profile == "default" else f"profile {profile}"
    (folder / "config").write_text(f"[{section}]\nregion = eu-west-3\nendpoint_url = {server.url}\ns3 =\n  x = 1\n")
    return {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}


def role(server):
    """The server also provides credentials, like the metadata service of a machine."""
    at = "latest/meta-data/iam/security-credentials/"
    server.objects[at] = b"role"
    server.objects[f"{at}role"] = json.dumps(
        {"AccessKeyId": "AKIA", "SecretAccessKey": "a-secret-key", "Token": "t", "Expiration": "2999-01-01T00:00:00Z"}
    ).encode()
    return {"AWS_METADATA_ENDPOINT": server.url, "AWS_ENDPOINT_URL": server.url}


WAYS = [(kind, way) for kind, ways in (("google", GOOGLE), ("azure", AZURE), ("amazon", AMAZON)) for way in ways]
# Keys of Google and Azure sign URLs of their own servers only.
BY_URL = [
    *(("google", way) for way in GOOGLE if way not in ("service account", "application credentials")),
    *(("azure", way) for way in AZURE if way.endswith("signature")),
    *(("amazon", way) for way in AMAZON),
]
SERVERS = {"google": (GoogleServer, GOOGLE), "azure": (AzureServer, AZURE), "amazon": (AmazonServer, AMAZON)}


@pytest.fixture
def store(request, monkeypatch, tmp_path):
    """A server, the URL of its bucket, and options. Sets environment variables and writes files."""
    provider, way = request.param
    server_class, ways = SERVERS[provider]
    with serving(OBJECTS, server_class) as server:
        scheme, settings = ways[way]
        variables, options = settings(server, tmp_path)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        at = "abfss://bucket@anaccount.dfs.core.windows.net" if scheme == "abfss@" else f"{scheme}://bucket"
        yield server, at, options


@pytest.mark.parametrize("store", WAYS, indirect=True, ids=lambda w: "-".join(w))
def test_ways_to_name_a_store(store, request, tmp_path):
    server, at, options = store
    pipe = build([f"{at}/a b/ü#1.jpg", f"{at}/x"], storage_options=options, cache=tmp_path / "cache")
    assert contents(pipe) == list(OBJECTS.values())
    by_native_code = any(h.get("User-Agent") == "penstock" for h in server.seen)
    assert by_native_code == (request.node.callspec.params["store"] in BY_URL)
    assert server.refused == 0
    signed = [f"{h['query']} {h.get('Authorization', h.get('authorization'))}" for h in server.seen]
    signed = [unquote(text) for text in signed if "Signature" in text]
    if at.startswith("s3"):
        assert signed and all("Credential=AKIA/" in value for value in signed)
    if "config" in {p.name for p in tmp_path.iterdir()}:
        assert all("/eu-west-3/s3/" in value for value in signed)


@pytest.mark.parametrize("store", [("google", "options"), ("azure", "options")], indirect=True, ids=["gs", "az"])
@pytest.mark.parametrize("fault, error", [(None, "there is no such object: 404"), ("403", "does not allow it: 403")])
def test_errors(store, fault, error):
    server, at, options = store
    server.fault = lambda path, number: fault if path.endswith("none") else None
    pipe = build([f"{at}/x", f"{at}/none"], storage_options=options)
    with pytest.raises(RuntimeError, match=error) as caught:
        pipe.run()
    assert f"Sample 1 of iteration 0: {at}/none" in str(caught.value) and pipe.stats()["remote"]["retries"] == 0
    for value in map(str, options.values()):
        assert value in (server.url, "anaccount") or value not in f"{caught.value}{pipe.checkpoint()!r}{pipe!r}"


@pytest.mark.parametrize(
    "server_class, at, options",
    [
        (GoogleServer, "gs://bucket", lambda s: {"base_url": s.url, "bearer_token": token(s) + "-of-others"}),
        (GoogleServer, "gs://bucket", lambda s: {"base_url": s.url, "skip_signature": bool(token(s))}),
        (AzureServer, "az://bucket", lambda s: {"connection_string": connection(s, AccountKey="b3RoZXI=")}),
    ],
)
def test_wrong_credentials(server_class, at, options):
    with serving(OBJECTS, server_class) as server:
        pipe = build([f"{at}/x"], storage_options=options(server))
        with pytest.raises(RuntimeError, match="does not allow it: 40[13] .*check the credentials") as caught:
            pipe.run()
        assert "a-secret-token" not in str(caught.value) and "b3RoZXI" not in str(caught.value)


@pytest.mark.parametrize("server_class", [GoogleServer, AzureServer])
def test_an_object_that_changes_between_list_and_read(server_class, tmp_path):
    with serving({f"bucket/c/{i}.jpg": b"%d" % i for i in range(5)}, server_class) as server:
        at, options = (
            ("az", {"connection_string": connection(server)})
            if server_class is AzureServer
            else (*("gs", {"base_url": server.url, "skip_signature": True}),)
        )

        @pipeline_def(batch_size=5, num_threads=2, storage_options=options)
        def pipe():
            return fn.readers.file(file_root=f"{at}://bucket")[0]

        built = pipe()
        built.build()
        server.objects["bucket/c/3.jpg"] = b"!"
        with pytest.raises(RuntimeError, match="has changed since it was found") as caught:
            built.run()
        assert "Sample 3 of iteration 0: " + at + "://bucket/c/3.jpg" in str(caught.value)


def test_containers_of_one_account_are_kept_apart(tmp_path):
    """In abfss://container@account, the container is not a user name to omit."""
    with serving({"b/x": b"one", "bucket/x": b"two"}, AzureServer) as server:
        options = {"endpoint": server.endpoint, "account_key": server.key}
        urls = [f"abfss://{c}@anaccount.dfs.core.windows.net/x" for c in ("b", "bucket")]
        for _ in range(2):
            storage._connections.clear()
            pipe = build(urls, storage_options=options, cache=tmp_path / "cache")
            assert contents(pipe) == [b"one", b"two"]
        assert pipe.stats()["remote"]["bytes"] == 0
        pipe = build([urls[0] + "/none"], storage_options=options)
        with pytest.raises(RuntimeError, match="abfss://b@anaccount.dfs.core.windows.net/x/none"):
            pipe.run()


def test_temporary_credentials_are_read_again(monkeypatch, tmp_path):
    """Login tools write new credentials to the file while a program runs."""
    from datetime import datetime, timezone

    from penstock.core import store_options

    with serving(OBJECTS) as server:
        for name, value in aws_files(server, tmp_path, session_token="first").items():
            monkeypatch.setenv(name, value)
        _, options, _ = store_options.complete("s3://bucket", {})
        provide = options["credential_provider"]
        assert provide()["token"] == "first"
        aws_files(server, tmp_path, session_token="second")
        assert provide()["token"] == "second" and provide()["expires_at"] > datetime.now(timezone.utc)


@pytest.mark.parametrize(
    "text, name, error",
    [
        ("[default]\n", "none", "AWS_PROFILE is 'none', which is in neither ~/.aws/credentials nor ~/.aws/config"),
        ("a-secret-key", "default", "can't be read: it is no file of sections and 'name = value'"),
    ],
)
def test_files_of_profiles_that_do_not_help(monkeypatch, tmp_path, text, name, error):
    (tmp_path / "credentials").write_text(text)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", name)
    with pytest.raises(RuntimeError, match=error) as caught:
        build(["s3://bucket/x"]).run()
    assert "a-secret-key" not in str(caught.value)
