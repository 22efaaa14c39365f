# SPDX-License-Identifier: Apache-2.0
"""Local replacements for S3, Google Cloud Storage (XML interface) and Azure blob storage: paged listings, ranges, ETags
and errors. Requests must be signed correctly; by header, S3's need only name the key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from object_server import CHANGED, ObjectServer, etag


def signed_text(request: BaseHTTPRequestHandler, vendor: str) -> str:
    """What the signature in a URL's query is one of, as in "Create a signed AWS API request" of Amazon's documentation
    and in "V4 signing process with your own program" of Google's."""
    parts = urlsplit(request.path)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    names = query[f"X-{vendor}-SignedHeaders"].split(";")
    pairs = sorted((quote(k, "~"), quote(v, "~")) for k, v in query.items() if k != f"X-{vendor}-Signature")
    lines = [request.command, parts.path, "&".join(f"{k}={v}" for k, v in pairs)]
    lines += [*(f"{n}:{request.headers[n].strip()}" for n in names), "", ";".join(names), "UNSIGNED-PAYLOAD"]
    scope = query[f"X-{vendor}-Credential"].partition("/")[2]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return "\n".join([query[f"X-{vendor}-Algorithm"], query[f"X-{vendor}-Date"], scope, digest])


class AmazonServer(ObjectServer):
    secrets: dict[str, str] = {"AKIA": "a-secret-key"}  # by access key id
    status_of_refusals = 403

    def refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes] | None:
        query = dict(parse_qsl(urlsplit(request.path).query))
        if "X-Amz-Signature" not in query:
            return None
        user, *scope = query["X-Amz-Credential"].split("/")
        key = f"AWS4{self.secrets.get(user)}".encode()
        for part in [*scope, signed_text(request, "Amz")]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        wrong = b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        return None if key.hex() == query["X-Amz-Signature"] else (self.status_of_refusals, wrong)


class GoogleServer(ObjectServer):
    """Requests need the token, or one signed by the key of a service account, or a URL signed by it. If neither is set,
    all requests are allowed."""

    token: str | None = None
    public_key: Any = None
    is_open: Callable[[str], bool] = staticmethod(lambda path: False)  # for public paths

    def refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes] | None:
        if (self.token is None and self.public_key is None) or self.is_open(self.path_of(urlsplit(request.path).path)):
            return None
        given = request.headers.get("Authorization", "")
        query = dict(parse_qsl(urlsplit(request.path).query))
        if self.public_key and "X-Goog-Signature" in query:
            signature = bytes.fromhex(query["X-Goog-Signature"])
            return None if is_signature(signature, signed_text(request, "Goog"), self.public_key) else (403, b"")
        if not given:
            return 401, b"<Error><Code>AuthenticationRequired</Code></Error>"
        token = given.removeprefix("Bearer ")
        if token == self.token or (self.public_key and is_signed(token, self.public_key)):
            return None
        return 403, b"<Error><Code>AccessDenied</Code></Error>"


def is_signature(signature: bytes, text: str, key: Any) -> bool:
    """Whether this is the signature of a text (RSA, SHA-256) for the public key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    try:
        key.verify(signature, text.encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def is_signed(token: str, key: Any) -> bool:
    """Whether a JSON web token has a valid signature for the public key."""
    text, _, signature = token.rpartition(".")
    if not is_signature(base64.urlsafe_b64decode(signature + "=="), text, key):
        return False
    head = json.loads(base64.urlsafe_b64decode(text.partition(".")[0] + "=="))
    return head["alg"] == "RS256"


class AzureServer(ObjectServer):
    """One account, with containers in its path. Requests are signed by its key or have its shared access signature."""

    account = "anaccount"
    key = base64.b64encode(b"the key of the account").decode()
    sas = "sv=2023-11-03&sp=rl&sig=a%2Bsignature"

    @property
    def endpoint(self) -> str:
        return f"{self.url}/{self.account}"

    def path_of(self, path: str) -> str:
        return unquote(path).lstrip("/").removeprefix(f"{self.account}/")

    def refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes] | None:
        query = dict(parse_qsl(urlsplit(request.path).query))
        expected = dict(parse_qsl(self.sas))
        if all(query.get(k) == v for k, v in expected.items()):
            return None
        if request.headers.get("Authorization") == self.signature(request):
            return None
        if "sig" in query and query["sig"] == self.url_signature(request, query):
            return None
        return 403, b"<?xml version='1.0'?><Error><Code>AuthenticationFailed</Code></Error>"

    def signature(self, request: BaseHTTPRequestHandler) -> str:
        """As in "Authorize with Shared Key" of Azure's documentation."""
        parts, headers = urlsplit(request.path), request.headers
        names = ["Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date"]
        names += ["If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"]
        lines = [request.command, *(headers.get(n, "") for n in names)]
        lines = ["" if (n, v) == ("Content-Length", "0") else v for n, v in zip(["", *names], lines, strict=True)]
        own = sorted((k.lower(), v.strip()) for k, v in headers.items() if k.lower().startswith("x-ms-"))
        lines += [f"{k}:{v}" for k, v in own]
        lines.append(f"/{self.account}{parts.path}")
        lines += [f"{k}:{v}" for k, v in sorted((k.lower(), v) for k, v in parse_qsl(parts.query))]
        digest = hmac.new(base64.b64decode(self.key), "\n".join(lines).encode(), hashlib.sha256).digest()
        return f"SharedKey {self.account}:{base64.b64encode(digest).decode()}"

    def url_signature(self, request: BaseHTTPRequestHandler, query: dict[str, str]) -> str:
        """As in "Create a service SAS" of Azure's documentation, version 2020-12-06 and later."""
        path = self.path_of(urlsplit(request.path).path)
        names = ["sp", "st", "se", "", "si", "sip", "spr", "sv", "sr", "snapshot", "ses"]
        names += ["rscc", "rscd", "rsce", "rscl", "rsct"]
        lines = [query.get(name, "") if name else f"/blob/{self.account}/{path}" for name in names]
        digest = hmac.new(base64.b64decode(self.key), "\n".join(lines).encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def is_listing(self, query: dict[str, list[str]]) -> bool:
        return query.get("comp") == ["list"]

    def listing(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        # A listing may begin at a name, inclusive; `page` begins after a name.
        start = query.get("marker") or [name[:-1] for name in query.get("startFrom", []) if self.starts_after] or [""]
        page, folders, more = self.page(bucket, prefix, delimiter, start[0])
        blobs = "".join(
            f"<Blob><Name>{escape(k)}</Name><Properties><Last-Modified>{CHANGED}</Last-Modified>"
            f"<Etag>{escape(etag(self.objects[f'{bucket}/{k}']))}</Etag>"
            f"<Content-Length>{len(self.objects[f'{bucket}/{k}'])}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for k in page
        )
        blobs += "".join(f"<BlobPrefix><Name>{escape(f)}</Name></BlobPrefix>" for f in folders)
        marker = escape(page[-1]) if more else ""
        return (
            f"<?xml version='1.0' encoding='utf-8'?><EnumerationResults ContainerName='{bucket}'>"
            f"<Prefix>{escape(prefix)}</Prefix><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()


class AzureByToken(AzureServer):
    """Requests need the token, or a signature by the key that it gives."""

    account = "127"  # obstore signs rightly for hosts that begin with the account's name
    token = "a-secret-token"
    delegated_key = base64.b64encode(b"the key of a user").decode()
    delegates = True  # whether the role allows to get such a key

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.keys_given = 0

    def has_token(self, request: BaseHTTPRequestHandler) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self.token}"

    def posted(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if "comp=userdelegationkey" not in request.path or not self.has_token(request) or not self.delegates:
            return 403, b"<Error><Code>AuthorizationPermissionMismatch</Code></Error>"
        self.keys_given += 1
        return 200, (
            "<?xml version='1.0' encoding='utf-8'?><UserDelegationKey><SignedOid>an-object</SignedOid>"
            "<SignedTid>a-tenant</SignedTid><SignedStart>2026-11-28T00:00:00Z</SignedStart>"
            "<SignedExpiry>2999-01-01T00:00:00Z</SignedExpiry><SignedService>b</SignedService>"
            f"<SignedVersion>2020-02-10</SignedVersion><Value>{self.delegated_key}</Value></UserDelegationKey>"
        ).encode()

    def refusal(self, request: BaseHTTPRequestHandler) -> tuple[int, bytes] | None:
        query = dict(parse_qsl(urlsplit(request.path).query))
        if self.has_token(request) or ("sig" in query and query["sig"] == self.url_signature(request, query)):
            return None
        return 403, b"<?xml version='1.0'?><Error><Code>AuthenticationFailed</Code></Error>"

    def url_signature(self, request: BaseHTTPRequestHandler, query: dict[str, str]) -> str:
        """As in "Create a user delegation SAS" of Azure's documentation, version 2020-12-06 to 2024-11-04."""
        path = self.path_of(urlsplit(request.path).path)
        names = ["sp", "st", "se", "", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid"]
        names += ["sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"]
        lines = [query.get(name, "") if name else f"/blob/{self.account}/{path}" for name in names]
        digest = hmac.new(base64.b64decode(self.delegated_key), "\n".join(lines).encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()
