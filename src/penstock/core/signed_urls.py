# SPDX-License-Identifier: Apache-2.0
"""Signed URLs: with one, native code reads an object of a bucket without the store's credentials."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from .store_options import endpoint, given_for, is_on, kind_of

VALID_FOR = timedelta(hours=1)  # native code uses them for 50 minutes
# With these, a request for an object needs headers that a URL can't have.
_IN_HEADERS = ("sse_customer_encryption_key_base64", "s3_express")
_ACCOUNT_KEYS = {"account_key", "access_key", "master_key"}
_SERVICE_ACCOUNT = {"service_account", "service_account_path", "service_account_key"}
# For Google and Azure, obstore's URLs with any other character name another object, or their signatures are wrong.
_PLAIN = re.compile("[A-Za-z0-9._~/-]+")
# Paths that obstore changes or refuses: one would fail all that are signed with it.
_ODD = re.compile(r"(^|/)\.{0,2}(/|$)")

Signer = Callable[[Sequence[str]], Sequence[str]]


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
        return None if at is None else (lambda paths: [f"{at}/{quote(os.fsencode(path))}{query}" for path in paths])
    if kind == "az" and (not _ACCOUNT_KEYS & given.keys() or _is_emulated(given)):
        return None
    if kind == "gs" and ("base_url" in given or not _has_private_key(given)):
        return None  # obstore signs for Google's own servers, whatever the URL is

    def sign(paths: Sequence[str]) -> Sequence[str]:
        plain = [path for path in paths if (kind == "s3" or _PLAIN.fullmatch(path)) and not _ODD.search(path)]
        urls = dict(zip(plain, obstore.sign(store, "GET", plain, VALID_FOR), strict=True)) if plain else {}
        return [urls.get(path, "") for path in paths]

    return sign


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


def _is_emulated(given: Mapping[str, Any]) -> bool:
    """Whether the account is in the URL's path: obstore signs another path then than such servers check."""
    return is_on(given, "use_emulator") or bool(urlsplit(endpoint("az", given)).path)


def _has_private_key(given: Mapping[str, Any]) -> bool:
    """Whether Google's signatures are made on this machine. Without a key, each takes a request to the provider."""
    if _SERVICE_ACCOUNT & given.keys():
        return True
    path = given.get("application_credentials")
    try:
        with open(os.path.expanduser(str(path)), "rb") as f:
            return json.load(f).get("type") == "service_account"
    except (OSError, ValueError, AttributeError):
        return False
