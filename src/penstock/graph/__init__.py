# SPDX-License-Identifier: Apache-2.0
"""Builds the graph: nodes, tracing and passes. Does not depend on the executor."""
