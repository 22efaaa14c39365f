# SPDX-License-Identifier: Apache-2.0
"""Runs the user's data sources: in this thread, in worker processes, or in worker threads."""
