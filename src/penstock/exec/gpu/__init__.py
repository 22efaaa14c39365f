# SPDX-License-Identifier: Apache-2.0
"""GPU stages: copies, chains, decoders, user functions."""
