# SPDX-License-Identifier: Apache-2.0
"""Where a sample came from."""


class SourceName(str):
    """The whole path, as errors say it; `given` is the name that the user and DALI know it by."""

    given: str

    def __new__(cls, path: str, given: str) -> "SourceName":
        self = super().__new__(cls, path)
        self.given = given
        return self


def given_name(source: str) -> str:
    """What `source_info` says of a source: a file's name relative to `file_root`, if it was read with one."""
    return source.given if isinstance(source, SourceName) else source
