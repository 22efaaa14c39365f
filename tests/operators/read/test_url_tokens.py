# SPDX-License-Identifier: Apache-2.0
"""Buckets of Google and Azure that are read by native code with tokens: of roles, logins and providers."""

import json
import time
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl

import numpy as np
import pytest
from test_url_clouds import environment, google_role  # noqa: F401
from test_url_signed import build, contents, of_native_code, request_for

from cloud_servers import AzureByToken, GoogleServer
from object_server import ObjectServer, serving
from optional_packages import needs
from penstock.core import google_tokens, object_stores, request_limits

pytestmark = needs("obstore")
N = 60
ODD = "c/100% + d~e=f&g ü#1.jpg"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(request_limits, "DEFAULT", request_limits.RequestLimits(read_s=1, hedge_s=0))


def objects():
    return {f"bucket/{i}": np.random.default_rng(i).bytes(3000 + 70_000 * (i % 3)) for i in range(N)}


@pytest.fixture
def google():
    with serving(objects(), GoogleServer) as server:
        server.token = "a-secret-token"
        yield server


@pytest.fixture
def azure():
    with serving(objects(), AzureByToken) as server:
        yield server


def provider(server, lasts_s=3600.0, calls=None):
    def provide():
        if calls is not None:
            calls.append(server.token)
        return {"token": server.token, "expires_at": datetime.now(timezone.utc) + timedelta(seconds=lasts_s)}

    return provide


class LoginServer(ObjectServer):
    """Gives the token for the refresh token of a login."""

    def posted(self, request, body):
        self.form = dict(parse_qsl(body.decode()))
        return 200, json.dumps({"access_token": "a-secret-token", "expires_in": 3599}).encode()


def test_login(google, tmp_path, monkeypatch):
    """The file that `gcloud auth application-default login` writes."""
    login = {"client_id": "me", "client_secret": "a-secret", "refresh_token": "another", "type": "authorized_user"}
    path = tmp_path / "home/.config/gcloud/application_default_credentials.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(login))
    google.objects[f"bucket/{ODD}"] = b"odd"
    with serving({}, LoginServer) as server:
        monkeypatch.setattr(google_tokens, "_LOGIN_URL", f"{server.url}/token")
        pipe = build("gs://bucket", {"base_url": google.url}, names=[*range(N - 1), ODD])
        wanted = [*list(google.objects.values())[: N - 1], b"odd"]
        assert contents(pipe, 20) == 2 * wanted and all(of_native_code(google))
        assert server.form == {**{k: v for k, v in login.items() if k != "type"}, "grant_type": "refresh_token"}
    assert google.refused == 0


def test_role_of_the_machine(google, monkeypatch):
    for name, value in google_role(google).items():
        monkeypatch.setenv(name, value)
    pipe = build("gs://bucket", {"base_url": google.url})
    n_before = len(google.seen)
    assert contents(pipe, 10) == [v for k, v in google.objects.items() if k.startswith("bucket/")]
    service = [h for h in google.seen[n_before:] if h.get("User-Agent") != "penstock"]
    assert len(service) == 1, "one token for all"
    assert service[0]["Metadata-Flavor"] == "Google", "without it Google refuses"
    assert google.refused == 0


def test_provider(google):
    calls = []
    pipe = build("gs://bucket", {"base_url": google.url, "credential_provider": provider(google, calls=calls)})
    assert contents(pipe, 20) == 2 * list(google.objects.values())
    assert all(of_native_code(google)) and google.refused == 0 and 1 <= len(calls) <= 2


def test_tokens_are_renewed_before_they_end(google):
    """Each lasts for less than is left to be safe, so that a batch asks for one when it needs URLs."""
    calls = []
    options = {"base_url": google.url, "credential_provider": provider(google, 5, calls)}
    pipe = build("gs://bucket", options, prefetch_queue_depth=1)
    assert contents(pipe, 10) == list(google.objects.values())
    # Batches that are read ahead may ask together.
    assert len(calls) > 1 and all(of_native_code(google)) and google.refused == 0


def test_a_token_is_not_used_after_its_end(google):
    """Half a minute before it, URLs with it are dropped."""
    options = {"base_url": google.url, "credential_provider": provider(google, 31)}
    pipe = build("gs://bucket", options, batch_size=N, prefetch_queue_depth=1)
    assert contents(pipe, 1) == list(google.objects.values())
    time.sleep(1.5)
    google.token = "another-token"
    assert contents(pipe, 4) == 4 * list(google.objects.values())
    assert google.refused == 0 and all(of_native_code(google))


def test_a_revoked_token(google):
    """The store's client reads the objects by a new one; for a minute the bucket is left to it."""
    options = {"base_url": google.url, "credential_provider": provider(google, 1)}
    pipe = build("gs://bucket", options, batch_size=N, prefetch_queue_depth=1)
    assert contents(pipe, 1) == list(google.objects.values()) and all(of_native_code(google))
    google.token = "another-token"
    assert contents(pipe, 4) == 4 * list(google.objects.values())
    assert pipe.stats()["remote"]["failed"] == 0 and not all(of_native_code(google))


@pytest.mark.parametrize("bad", ["a\r\nHost: b", "a b", "", "ü"])
def test_no_token(google, bad):
    """What is no token gets into no request of native code."""
    given = google_tokens.provider({"credential_provider": lambda: {"token": bad, "expires_at": None}})
    with pytest.raises(ValueError, match="no token has") as caught:
        given()
    assert not bad or bad not in str(caught.value)
    stores = object_stores.Stores({"bearer_token": bad or "a b", "base_url": google.url}, request_limits.DEFAULT)
    assert stores.signed(["gs://bucket/1"]) == ([""], 60), "tried again after a minute"


def test_a_file_of_another_kind(tmp_path):
    """Federated identities: the store's own client says what it can't."""
    (tmp_path / "file.json").write_text(json.dumps({"type": "external_account"}))
    assert google_tokens.provider({"application_credentials": str(tmp_path / "file.json")}) is None
    assert google_tokens.provider({"application_credentials": str(tmp_path / "none.json")}) is None


def azure_options(server, **more):
    own = {"credential_provider": provider(server)}
    return {"account_name": server.account, "endpoint": server.url, **own, **more}


def test_azure(azure):
    """One key signs all URLs of a batch."""
    azure.objects[f"bucket/{ODD}"] = b"odd"
    pipe = build("az://bucket", azure_options(azure), names=[*range(N - 1), ODD], batch_size=20)
    wanted = [*list(azure.objects.values())[: N - 1], b"odd"]
    assert contents(pipe, 6) == 2 * wanted
    assert azure.refused == 0 and 1 <= azure.keys_given <= 3
    assert of_native_code(azure).count(False) == 2, "the name that obstore signs wrongly, twice"


def test_signatures_for_azure(azure):
    stores = object_stores.Stores(azure_options(azure), request_limits.DEFAULT)
    (url,) = stores.signed(["az://bucket/d/e-f_g.1~h/i.JPG"]).urls
    assert azure.refusal(request_for(url)) is None
    assert azure.refusal(request_for(url.replace("bucket/", "bucket2/")))[0] == 403


@pytest.mark.parametrize(
    "at", ["http://example.org", "https://anaccount.example.org/anaccount", "https://anaccount2.blob.core.windows.net"]
)
def test_hosts_for_which_obstore_signs_wrongly(at):
    options = {"account_name": "anaccount", "endpoint": at, "account_key": AzureByToken.key}
    assert object_stores.Stores(options, request_limits.DEFAULT).signed(["az://bucket/x"]) == ([""], 3000)


def test_a_role_that_may_not_sign(azure):
    azure.delegates = False
    pipe = build("az://bucket", azure_options(azure))
    assert contents(pipe, 10) == list(azure.objects.values())
    assert not any(of_native_code(azure)) and azure.refused == 0
