# SPDX-License-Identifier: Apache-2.0
"""Tokens for Google's storage, where no private key is at hand that signs URLs: of the machine's role, of a login by
`gcloud auth application-default login`, given by the user, or of the user's own provider."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

_LOGIN_URL = "https://oauth2.googleapis.com/token"
_FILE = "~/.config/gcloud/application_default_credentials.json"
_OF_MACHINE = "/computeMetadata/v1/instance/service-accounts/default/token"
_TIMEOUT_S = 10
_EARLY_S = 60  # before its end a token is no longer used: a request with it may wait for a connection


class Token(NamedTuple):
    text: str
    ends: float  # by time.time()


Provider = Callable[[], Token]


def provider(given: Mapping[str, Any]) -> Provider | None:
    """Returns a function that returns a token that can be used for a minute at least; None if only the store's own
    client can get one. `given` are the store's options under their common names."""
    if given.get("bearer_token"):
        text = str(given["bearer_token"])
        return lambda: Token(_checked(text), math.inf)
    own = given.get("credential_provider")
    if own is not None:
        return _kept(lambda: _of_provider(own))
    login = credentials_file(given)
    if login is None:
        return _kept(_of_machine)
    return _kept(lambda: _of_login(login)) if login.get("type") == "authorized_user" else None


def credentials_file(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The application's default credentials: None if there is no file of them, {} if it can't be read."""
    path = given.get("application_credentials")
    try:
        with open(os.path.expanduser(str(path or _FILE)), "rb") as f:
            found = json.load(f)
        return found if isinstance(found, dict) else {}
    except FileNotFoundError:
        return {} if path else None
    except (OSError, ValueError):
        return {}


def _kept(get: Provider) -> Provider:
    lock, kept = threading.Lock(), Token("", 0.0)

    def token() -> Token:
        nonlocal kept
        with lock:
            if kept.ends - _EARLY_S <= time.time():
                kept = get()
            return kept

    return token


def _checked(text: str) -> str:
    if not re.fullmatch("[!-~]+", text):  # a line feed would begin another header
        raise ValueError("the token contains characters that no token has")
    return text


def _of_provider(own: Callable[[], Any]) -> Token:
    found = own()
    ends: datetime | None = found["expires_at"]
    return Token(_checked(found["token"]), math.inf if ends is None else ends.timestamp())


def _of_machine() -> Token:
    """From the metadata service, as in "Authenticate workloads" of Google Cloud's documentation."""
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    request = urllib.request.Request(f"http://{host}{_OF_MACHINE}", headers={"Metadata-Flavor": "Google"})  # noqa: S310
    return _asked(request)


def _of_login(login: Mapping[str, Any]) -> Token:
    """By its refresh token, as in section 6 of RFC 6749."""
    names = ("client_id", "client_secret", "refresh_token")
    form = {"grant_type": "refresh_token", **{name: login[name] for name in names}}
    return _asked(urllib.request.Request(_LOGIN_URL, urlencode(form).encode()))


def _asked(request: urllib.request.Request) -> Token:
    # No proxy: with one, native code makes no requests, and a metadata service is not behind one.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
        found = json.load(answer)
    return Token(_checked(found["access_token"]), time.time() + float(found["expires_in"]))
