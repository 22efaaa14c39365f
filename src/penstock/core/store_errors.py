# SPDX-License-Identifier: Apache-2.0
"""Errors of requests to object stores, and whether a retry may help."""

from __future__ import annotations

import errno
import re

from .storage import without_secrets

FOR_GOOD, SERVER_BUSY, NOT_REACHABLE = range(3)  # same values as RemoteFailure in kernels/read/remote_queue.h
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_OUTDATED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired"}  # S3 sends these with status 400
_CHECK = "check the credentials, what they permit, and whether they have expired"
# What to do, by the code in S3's answer.
_ADVICE = {
    "InvalidAccessKeyId": "check the credentials: the server does not know this access key id",
    "SignatureDoesNotMatch": "check the credentials: the secret access key does not belong to the access key id",
    "AccessDenied": "check the credentials: they do not permit this. S3 also answers so about an object that does not "
    "exist, if they do not permit listing the bucket",
}
_OTHER_REGION = "check the region (AWS_REGION, or 'region' in storage_options): the bucket is in another one"
_TOO_SHORT = "it has changed, or its index is that of another file"

# obstore has exception classes for 401, 403, 404 and unsupported operations. All else is GenericError, whose
# information is only in its text: a readable line, then its fields in Rust's debug format. The patterns are compiled
# when needed, to keep `import penstock` fast.
_FIELDS = "\nDebug source:"
_STATUS = r"status code: (\d{3})([^:<\n]*)"
_CODE = r"<Code>(\w+)</Code>"  # in the body of the answer
_KIND = r"HttpError \{\s*kind: (\w+)"
_CAUSE = r'"(Connection refused|dns error|No route to host|Network is unreachable)"'
_NO_RANGES = r"source: (NotPartial|RangeNotSupported)\b"
_CERTIFICATE = r"InvalidCertificate|certificate verify failed"
_REDIRECT = r"inner: BareRedirect\b"  # an answer 301 that does not say where to
_ROLE = r"http://(169\.254\.169\.254|metadata\.google\.internal)/"  # metadata servers, which give machines credentials


class RequestFailed(OSError):
    """`why`: FOR_GOOD, SERVER_BUSY or NOT_REACHABLE."""

    def __init__(self, why: int, reason: str, number: int = errno.EIO):
        super().__init__(number, reason)
        self.why, self.reason = why, reason


class NotFound(RequestFailed, FileNotFoundError):
    """The object does not exist."""

    def __init__(self, reason: str):
        super().__init__(FOR_GOOD, reason, errno.ENOENT)


def failure(e: Exception, during: str = "") -> RequestFailed:
    """Converts an exception of obstore."""
    from obstore import exceptions as known

    line, _, fields = str(e).partition(_FIELDS)
    status, code, kind = re.search(_STATUS, line), re.search(_CODE, line), re.search(_KIND, fields)
    number = int(status[1]) if status else 0
    said = f"{status[1]}{status[2].rstrip()}{f' ({code[1]})' if code else ''}" if status else ""
    if isinstance(e, FileNotFoundError):
        return _not_found(said or "not found", during)
    if re.search(_ROLE, line):
        return RequestFailed(
            FOR_GOOD if 400 <= number < 500 else SERVER_BUSY,
            f"no credentials were found{during}: neither in the environment, nor in files, nor has this machine a "
            "role; for a bucket that everybody may read, see skip_signature",
            errno.EACCES,
        )
    is_refused = isinstance(e, (known.PermissionDeniedError, known.UnauthenticatedError))
    if is_refused or number in (401, 403) or (code and code[1] in _OUTDATED):
        return RequestFailed(
            FOR_GOOD,
            f"the server does not allow it{during}: {said or 'no permission'}; "
            f"{_ADVICE.get(code[1], _CHECK) if code else _CHECK}",
            errno.EACCES,
        )
    if number in (404, 410):  # of a listing, which has no exception class
        return _not_found(said, during)
    if number in _BUSY:
        return RequestFailed(SERVER_BUSY, f"the server answers {said}{during}")
    if number == 416:
        return RequestFailed(FOR_GOOD, f"the object ends before the bytes asked for: {said}; {_TOO_SHORT}")
    if number:
        is_elsewhere = code and code[1] == "AuthorizationHeaderMalformed"
        advice = f"; {_OTHER_REGION}" if is_elsewhere else ""
        return RequestFailed(FOR_GOOD, f"the server answers {said}{during}{advice}")
    if re.search(_REDIRECT, fields):
        return RequestFailed(FOR_GOOD, f"the server redirects{during}, and does not say where to; {_OTHER_REGION}")
    if re.search(_NO_RANGES, fields):
        return RequestFailed(
            FOR_GOOD,
            "the server ignores ranges and sends whole objects only; use a server that has them, or copy the data "
            "with `penstock cp`",
        )
    lasting = known.NotSupportedError, known.InvalidPathError, known.UnknownConfigurationKeyError
    if isinstance(e, (*lasting, NotImplementedError, ValueError)):
        return RequestFailed(FOR_GOOD, f"{first_line(e)}{during}")
    if re.search(_CERTIFICATE, fields):
        return RequestFailed(FOR_GOOD, f"the server's certificate is not trusted{during}: {first_line(e)}")
    if kind and kind[1] == "Connect":
        cause = re.search(_CAUSE, fields)
        return RequestFailed(
            NOT_REACHABLE, f"the server can't be reached{during}: {cause[1] if cause else 'no connection'}"
        )
    if kind and kind[1] == "Timeout":
        return RequestFailed(NOT_REACHABLE, f"the server does not answer in time{during}")
    return RequestFailed(NOT_REACHABLE, f"the answer was cut off{during}: {first_line(e)}")


def _not_found(said: str, during: str) -> NotFound:
    if "(NoSuchBucket)" in said:
        return NotFound(f"there is no such bucket{during}: {said}; check its name, and the endpoint")
    return NotFound(f"there is no such object{during}: {said}")


def too_short(size: int, offset: int, length: int) -> RequestFailed:
    """The object has `size` bytes, and does not contain the ones asked for."""
    return RequestFailed(
        FOR_GOOD, f"the object ends at byte {size}, and {length} bytes from {offset} on were asked for; {_TOO_SHORT}"
    )


def first_line(e: BaseException) -> str:
    """The first line of an error's text, without response bodies and header lists, which may contain secrets."""
    text = str(e).partition("\n")[0].partition(": <")[0]
    return without_secrets(re.sub(r" in [\d.]+(ns|µs|ms|s)\b", "", text))[:200]
