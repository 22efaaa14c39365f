# SPDX-License-Identifier: Apache-2.0
"""Filters that use engines of the GPU; imported only by pipelines that use them."""
