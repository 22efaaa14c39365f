# SPDX-License-Identifier: Apache-2.0
"""What native code needs to read objects of buckets itself: a signed URL for each, or a URL with a token."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from . import google_tokens
from .store_options import endpoint, given_for, is_on, kind_of

_VALID_FOR = timedelta(hours=1)
USED_FOR_S = 50 * 60.0  # a request takes up to five minutes
TRIED_AGAIN_S = 60.0  # after what signs could not be reached
_TO_CONNECT_S = 30
# With these, a request for an object needs headers that a URL can't have.
_IN_HEADERS = ("sse_customer_encryption_key_base64", "s3_express")
_SERVICE_ACCOUNT = {"service_account", "service_account_path", "service_account_key"}
# For Google and Azure, obstore's URLs with any other character name another object, or their signatures are wrong.
_PLAIN = re.compile("[A-Za-z0-9._~/-]+")
# Paths that obstore changes or refuses: one would fail all that are signed with it.
_ODD = re.compile(r"(^|/)\.{0,2}(/|$)")


class Signed(NamedTuple):
    urls: Sequence[str]  # each may be followed by a line feed and a line that the request's head must contain
    used_for_s: float


Signer = Callable[[Sequence[str]], Signed]


def signer(obstore: Any, store: Any, base: str, options: Mapping[str, Any]) -> Signer | None:
    """Returns a function that signs URLs for paths in a bucket ("" where it can't); None if none can be signed on
    this machine, and the store's own client must make the requests. `options` are those of the store, complete."""
    kind, bucket = kind_of(base), base.partition("://")[2]
    given = given_for(kind, options)
    if kind == "s3" and any(given.get(k) for k in _IN_HEADERS):
        return None
    shared = str(given.get("sas_key") or given.get("sas_token") or "").removeprefix("?") if kind == "az" else ""
    if is_on(given, "skip_signature") or shared:
        at = {"s3": _amazon, "gs": _google, "az": _azure}[kind](given, bucket)
        query = f"?{shared}" if shared and not is_on(given, "skip_signature") else ""
        return None if at is None else (lambda paths: Signed([f"{at}/{_quoted(p)}{query}" for p in paths], USED_FOR_S))
    if kind == "az" and not _is_of_account(given):
        return None
    if kind == "gs" and not _has_private_key(given):
        return _with_tokens(_google(given, bucket), google_tokens.provider(given))
    if kind == "gs" and "base_url" in given:
        return None  # obstore signs for Google's own servers, whatever the URL is

    def sign(paths: Sequence[str]) -> Signed:
        # With a token of Azure's, obstore asks once a call for a key that signs.
        plain = [path for path in paths if (kind == "s3" or _PLAIN.fullmatch(path)) and not _ODD.search(path)]
        urls = dict(zip(plain, obstore.sign(store, "GET", plain, _VALID_FOR), strict=True)) if plain else {}
        return Signed([urls.get(path, "") for path in paths], USED_FOR_S)

    return sign


def _with_tokens(at: str, provider: google_tokens.Provider | None) -> Signer | None:
    if provider is None:
        return None

    def sign(paths: Sequence[str]) -> Signed:
        token, ends = provider()
        urls = [f"{at}/{_quoted(path)}\nAuthorization: Bearer {token}" for path in paths]
        return Signed(urls, min(USED_FOR_S, max(ends - time.time() - _TO_CONNECT_S, 1)))

    return sign


def _quoted(path: str) -> str:
    return quote(os.fsencode(path))


# The addresses of buckets that anybody may read, or that have a signature for all of their objects.


def _amazon(given: Mapping[str, Any], bucket: str) -> str:
    region = given.get("region") or given.get("default_region") or "us-east-1"
    is_virtual = is_on(given, "virtual_hosted_style_request")
    own = f"https://{bucket}.s3.{region}.amazonaws.com" if is_virtual else f"https://s3.{region}.amazonaws.com"
    at = endpoint("s3", given, own)
    return at if is_virtual else f"{at}/{bucket}"


def _google(given: Mapping[str, Any], bucket: str) -> str:
    return f"{endpoint('gs', given, 'https://storage.googleapis.com')}/{bucket}"


def _azure(given: Mapping[str, Any], bucket: str) -> str | None:
    account = given.get("account_name")
    if "@" in bucket or not account or is_on(given, "use_emulator") or is_on(given, "use_fabric_endpoint"):
        return None
    return f"{endpoint('az', given, f'https://{account}.blob.core.windows.net')}/{bucket}"


def _is_of_account(given: Mapping[str, Any]) -> bool:
    """Whether the host's name begins with the account's: obstore signs a path without the account otherwise."""
    at = urlsplit(endpoint("az", given))
    is_own = not at.netloc or at.netloc.startswith(f"{given.get('account_name')}.")
    return is_own and not at.path and not is_on(given, "use_emulator")


def _has_private_key(given: Mapping[str, Any]) -> bool:
    """Whether Google's signatures are made on this machine. Without a key, each takes a request to the provider."""
    if _SERVICE_ACCOUNT & given.keys():
        return True
    return (google_tokens.credentials_file(given) or {}).get("type") == "service_account"
