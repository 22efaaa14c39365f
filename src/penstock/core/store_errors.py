# SPDX-License-Identifier: Apache-2.0
"""What went wrong with a request to an object store, and whether it is worth asking again."""

from __future__ import annotations

import errno
import re

from .storage import without_secrets

FOR_GOOD, SERVER_BUSY, NOT_REACHABLE = range(3)  # as RemoteFailure in kernels/read/remote_queue.h
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_OUTDATED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired"}  # which S3 answers as 400

# obstore has classes for 401, 403, 404 and what a store can't do. All else is one class, GenericError, without fields:
# what it knows is only in the text, first a line for people, and then its fields as Rust writes them out. The patterns
# are compiled when they are needed, as `import penstock` has to be quick.
_FIELDS = "\nDebug source:"
_STATUS = r"status code: (\d{3})([^:<\n]*)"
_CODE = r"<Code>(\w+)</Code>"  # in the body of the answer
_KIND = r"HttpError \{\s*kind: (\w+)"
_CAUSE = r'"(Connection refused|dns error|No route to host|Network is unreachable)"'
_NO_RANGES = r"source: (NotPartial|RangeNotSupported)\b"
_CERTIFICATE = r"InvalidCertificate|certificate verify failed"
_ROLE = r"http://(169\.254\.169\.254|metadata\.google\.internal)/"  # where machines get credentials


class RequestFailed(OSError):
    """`why`: FOR_GOOD, SERVER_BUSY or NOT_REACHABLE."""

    def __init__(self, why: int, reason: str, number: int = errno.EIO):
        super().__init__(number, reason)
        self.why, self.reason = why, reason


class NotFound(RequestFailed, FileNotFoundError):
    """There is no such object."""

    def __init__(self, reason: str):
        super().__init__(FOR_GOOD, reason, errno.ENOENT)


def failure(e: Exception, during: str = "") -> RequestFailed:
    """What an exception of obstore means."""
    from obstore import exceptions as known

    line, _, fields = str(e).partition(_FIELDS)
    status, code, kind = re.search(_STATUS, line), re.search(_CODE, line), re.search(_KIND, fields)
    number = int(status[1]) if status else 0
    said = f"{status[1]}{status[2].rstrip()}{f' ({code[1]})' if code else ''}" if status else ""
    if isinstance(e, FileNotFoundError):
        return NotFound(f"there is no such object{during}: {said or 'not found'}")
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
            f"the server does not allow it{during}: {said or 'no permission'}; check the credentials, and whether they "
            "have expired",
            errno.EACCES,
        )
    if number in (404, 410):  # of a listing, for which there is no class
        return NotFound(f"there is no such object{during}: {said}")
    if number in _BUSY:
        return RequestFailed(SERVER_BUSY, f"the server answers {said}{during}")
    if number:
        return RequestFailed(FOR_GOOD, f"the server answers {said}{during}")
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


def first_line(e: BaseException) -> str:
    """Without the bodies of answers and lists of headers, which may have secrets in them."""
    text = str(e).partition("\n")[0].partition(": <")[0]
    return without_secrets(re.sub(r" in [\d.]+(ns|µs|ms|s)\b", "", text))[:200]
