# SPDX-License-Identifier: Apache-2.0
"""The imperative mode with PyTorch: `nodes` are nodes of torchdata."""
