# SPDX-License-Identifier: Apache-2.0
"""Settings that the providers' own tools read from the environment and from files, but obstore does not: AWS profiles,
Azure's connection strings and command line variables, and the emulator of Google's storage."""

from __future__ import annotations

import configparser
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

_KINDS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"} | dict.fromkeys(("az", "azure", "abfs", "abfss"), "az")
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_", "storage_")}
_ENDPOINTS = {"s3": ("endpoint", "endpoint_url", "endpoint_url_s3"), "gs": ("base_url",), "az": ("endpoint",)}
_REREAD = timedelta(minutes=5)  # interval for rereading temporary credentials of a profile
# Prefixes of environment variables that change which store is used.
VARIABLES = ("AWS_", "GOOGLE_", "AZURE_", "AZURITE_", "STORAGE_EMULATOR_HOST", "SERVICE_ACCOUNT", "GCE_METADATA_")


def complete(url: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any], bool]:
    """From a bucket's URL and the user's options, returns the URL and options for obstore, and whether the store is
    accessed without TLS. Options override environment variables, which override files. Raises ValueError."""
    kind, rest = kind_of(url), url.partition("://")[2]
    given = given_for(kind, options)
    found = {"s3": _amazon, "gs": _google, "az": _azure}[kind](given, rest)
    options = {k: v for k, v in options.items() if _short(kind, k) != "connection_string"}
    options = {**{k: v for k, v in found.items() if k not in given}, **options}
    if "@" in rest:  # abfs://container@account.dfs.core.windows.net: obstore rejects it together with an account name
        options = {k: v for k, v in options.items() if _short("az", k) not in ("account", "account_name")}
    given = given | options
    is_plain = any(str(given.get(name, "")).startswith("http://") for name in _ENDPOINTS[kind])
    if kind == "az":
        is_plain |= is_on(given, "use_emulator")
    return f"gs://{rest}" if kind == "gs" else url, options, is_plain


def _short(kind: str, name: str) -> str:
    name = name.lower()
    for prefix in _PREFIXES[kind]:
        name = name.removeprefix(prefix)
    return name


def kind_of(url: str) -> str:
    """The provider of a bucket: "s3", "gs" or "az"."""
    return _KINDS[url.partition("://")[0]]


def is_on(given: Mapping[str, Any], name: str) -> bool:
    return str(given.get(name, "")).lower() in ("true", "1", "yes", "on")


def endpoint(kind: str, given: Mapping[str, Any], otherwise: str = "") -> str:
    """The address of the store, without a slash at the end; `otherwise` if none is given."""
    found = next((given[name] for name in _ENDPOINTS[kind] if given.get(name)), otherwise)
    return str(found).rstrip("/")


def given_for(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options and environment variables of a provider, under their common names."""
    variables = {k: v for k, v in os.environ.items() if k.lower().startswith(_PREFIXES[kind][0])}
    return {_short(kind, k): v for k, v in {**variables, **options}.items()}


# Amazon -------------------------------------------------------------------------------------------------------------


def _amazon(given: Mapping[str, Any], _: str) -> dict[str, Any]:
    """Reads the profile in ~/.aws/credentials and ~/.aws/config."""
    named = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    name = named or "default"
    profile = _profile(name)
    has_keys = {"access_key_id", "web_identity_token_file", "skip_signature", "credential_provider"} & given.keys()
    if named and not profile and not has_keys:
        raise ValueError(f"AWS_PROFILE is {named!r}, which is in neither ~/.aws/credentials nor ~/.aws/config")
    found: dict[str, Any] = {}
    if not {"region", "default_region"} & given.keys() and "region" in profile:
        found["region"] = profile["region"]
    if not set(_ENDPOINTS["s3"]) & given.keys() and "endpoint_url" in profile:
        found["endpoint"] = profile["endpoint_url"]
    if has_keys:
        return found
    if "aws_session_token" in profile:
        found["credential_provider"] = _temporary(name)
    elif "aws_access_key_id" in profile:
        found["access_key_id"] = profile["aws_access_key_id"]
        found["secret_access_key"] = profile.get("aws_secret_access_key", "")
    elif {"role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"} & profile.keys():
        try:
            from boto3 import Session  # type: ignore[import-untyped, unused-ignore]
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ImportError:
            raise ValueError(
                f"the AWS profile {name!r} gets its credentials from a role, a login or a program, which takes boto3: "
                "pip install boto3"
            ) from None
        found["credential_provider"] = Boto3CredentialProvider(Session(profile_name=name))
    return found


def _profile(name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        path = os.path.expanduser(os.environ.get(variable) or file)
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, "utf-8")
        except (configparser.Error, UnicodeDecodeError):  # the exception texts contain lines of the file
            raise ValueError(f"{path} can't be read: it is no file of sections and 'name = value'") from None
        if parser.has_section(section):
            found |= {k: v.strip() for k, v in parser.items(section)}
    return found


def _temporary(name: str) -> Callable[[], dict[str, Any]]:
    """Returns a function that rereads credentials, as login tools write new ones to the file."""

    def credentials() -> dict[str, Any]:
        profile = _profile(name)
        return {
            "access_key_id": profile.get("aws_access_key_id", ""),
            "secret_access_key": profile.get("aws_secret_access_key", ""),
            "token": profile.get("aws_session_token"),
            "expires_at": datetime.now(timezone.utc) + _REREAD,
        }

    return credentials


# Google -------------------------------------------------------------------------------------------------------------


def _google(given: Mapping[str, Any], _: str) -> dict[str, Any]:
    host = os.environ.get("STORAGE_EMULATOR_HOST", "")
    if not host or "base_url" in given:
        return {}
    at = host if "://" in host else f"http://{host}"
    credentials = {"bearer_token", "service_account", "service_account_path", "service_account_key"}
    anonymous = {} if credentials & given.keys() else {"skip_signature": "true"}
    return {"base_url": at.rstrip("/"), **anonymous}


# Azure --------------------------------------------------------------------------------------------------------------

_KEYS = {"account_key", "access_key", "master_key", "key", "sas_key", "sas_token", "token", "client_id"}
_OTHER_WAYS = {"skip_signature", "credential_provider", "use_emulator", "use_azure_cli", "identity_endpoint"}


def _azure(given: Mapping[str, Any], rest: str) -> dict[str, Any]:
    """Reads a connection string, the variables of `az`, and whether the user is logged in by `az login`."""
    text = str(given.get("connection_string") or "")
    parts = dict(p.split("=", 1) for p in text.split(";") if "=" in p)
    found: dict[str, Any] = {}
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        return {"use_emulator": "true"}
    if "account" in given:
        found["account_name"] = given["account"]
    if "key" in given:
        found["account_key"] = given["key"]
    if parts:
        account = parts.get("AccountName") or found.get("account_name", "")
        scheme, suffix = parts.get("DefaultEndpointsProtocol", "https"), parts.get("EndpointSuffix", "core.windows.net")
        found["endpoint"] = (parts.get("BlobEndpoint") or f"{scheme}://{account}.blob.{suffix}").rstrip("/")
        if not account:  # derived from the endpoint
            host, _, path = found["endpoint"].partition("://")[2].partition("/")
            account = path or host.partition(".")[0]
        found["account_name"] = account
        for name, option in (("AccountKey", "account_key"), ("SharedAccessSignature", "sas_key")):
            if name in parts:
                found[option] = parts[name].removeprefix("?")
    has_keys = (_KEYS | _OTHER_WAYS) & given.keys() or {"account_key", "sas_key"} & found.keys()
    if not has_keys and os.path.exists(os.path.expanduser("~/.azure/azureProfile.json")) and shutil.which("az"):
        found["use_azure_cli"] = "true"
    return found
