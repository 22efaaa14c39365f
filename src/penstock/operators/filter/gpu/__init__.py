# SPDX-License-Identifier: Apache-2.0
"""Filters that are engines of the GPU: imported by pipelines that use them."""
