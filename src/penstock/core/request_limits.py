# SPDX-License-Identifier: Apache-2.0
"""Limits of requests by URL: timeouts, retries and concurrency."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

_UNITS = {
    "ms": 1e-3,
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "min": 60,
    "minutes": 60,
    "h": 3600,
    "d": 86400,
}
_DURATION = re.compile(r"([\d.]+)\s*([a-z]+)")
_CLIENT = {"connect_timeout": "connect_s", "read_timeout": "read_s", "timeout": "request_s"}
MOST_AT_ONCE = 1024  # requests; each uses a thread
_RETRY = ("max_retries", "retry_timeout")


@dataclass(frozen=True)
class RequestLimits:
    """Times in seconds."""

    connect_s: float = 10.0
    read_s: float = 20.0  # longest time without data from the server
    request_s: float = 300.0  # a whole request
    patience_s: float = 180.0  # for servers that do not answer
    most_tries: int = 8  # attempts for requests that the server temporarily refuses
    hedge_s: float = 2.0  # time without data after which a request is sent a second time; 0: never
    listing_s: float = 0.0  # maximum age of a cached listing
    at_once: int = 256  # concurrent requests per pipeline
    ahead_bytes: int = 256 << 20  # bytes that may be read before their batches are needed


DEFAULT = RequestLimits()


def from_options(options: Mapping[str, Any]) -> tuple[RequestLimits, dict[str, Any]]:
    """Splits `storage_options` into limits, under obstore's names, and other options. Raises TypeError and
    ValueError."""
    rest: dict[str, Any] = dict(options)
    found: dict[str, Any] = {}
    client = dict(rest.pop("client_options", None) or {})
    for name, field in _CLIENT.items():
        if name in client:
            found[field] = _seconds(f"client_options: {name}", client.pop(name))
    if client:
        rest["client_options"] = client
    retry = dict(rest.pop("retry_config", None) or {})
    if "retry_timeout" in retry:
        found["patience_s"] = _seconds("retry_config: retry_timeout", retry.pop("retry_timeout"))
    if "max_retries" in retry:
        n = retry.pop("max_retries")
        if not isinstance(n, int) or n < 0:
            raise ValueError(f"storage_options: max_retries takes an integer of at least 0; got {n!r}")
        found["most_tries"] = n + 1
    if retry:
        raise ValueError(f"storage_options: retry_config takes {', '.join(_RETRY)}; got {', '.join(map(repr, retry))}")
    if "hedge_after" in rest:
        given = rest.pop("hedge_after")
        found["hedge_s"] = 0.0 if given is None else _seconds("hedge_after", given)
    if "listing_age" in rest:
        given = rest.pop("listing_age")
        found["listing_s"] = 0.0 if given is None else _seconds("listing_age", given)
    for name, field in (("requests_at_once", "at_once"), ("read_ahead", "ahead_bytes")):
        if name in rest:
            found[field] = _count(name, rest.pop(name))
    return replace(DEFAULT, **found), rest


def _count(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ValueError(f"storage_options: {name} takes an integer of at least 1; got {given!r}")
    if name == "requests_at_once" and given > MOST_AT_ONCE:
        raise ValueError(f"storage_options: {name} takes at most {MOST_AT_ONCE}; got {given}")
    return given


def _seconds(name: str, given: Any) -> float:
    match = _DURATION.fullmatch(given.strip()) if isinstance(given, str) else None
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    elif isinstance(given, (int, float)) and not isinstance(given, bool):
        seconds = float(given)
    elif match and match[2] in _UNITS and match[1].count(".") <= 1 and match[1] != ".":
        seconds = float(match[1]) * _UNITS[match[2]]
    else:
        raise TypeError(
            f"storage_options: {name} takes seconds, a timedelta or a text as '5s' or '200ms'; got {given!r}"
        )
    if not 0 < seconds < 1e6:
        raise ValueError(f"storage_options: {name} takes a time above 0; got {given!r}")
    return seconds
