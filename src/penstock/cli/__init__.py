# SPDX-License-Identifier: Apache-2.0
"""The command `penstock` (also `python -m penstock`)."""

from .command import main as main
