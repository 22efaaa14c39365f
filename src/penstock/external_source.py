# SPDX-License-Identifier: Apache-2.0
"""`external_source` and `ExternalSource` under the path from which programs for DALI also import them."""

from .fn import external_source
from .ops import ExternalSource

__all__ = ["ExternalSource", "external_source"]
