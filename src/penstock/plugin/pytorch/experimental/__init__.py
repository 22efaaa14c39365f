# SPDX-License-Identifier: Apache-2.0
"""Modules whose interface may still change."""

from . import proxy as proxy
