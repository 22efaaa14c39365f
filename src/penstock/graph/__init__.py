# SPDX-License-Identifier: Apache-2.0
"""Building: nodes, tracing and passes over the graph. Knows no executor."""
