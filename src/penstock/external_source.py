# SPDX-License-Identifier: Apache-2.0
"""`external_source` and `ExternalSource`, under another import path of DALI programs."""

from .fn import external_source
from .ops import ExternalSource

__all__ = ["ExternalSource", "external_source"]
