# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines: stages, chains, queues, threads, statistics. Does not depend on any operator."""
