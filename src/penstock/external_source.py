# SPDX-License-Identifier: Apache-2.0
"""`external_source` and `ExternalSource` where programs for DALI import them from, too."""

from .fn import external_source
from .ops import ExternalSource

__all__ = ["ExternalSource", "external_source"]
