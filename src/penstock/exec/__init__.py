# SPDX-License-Identifier: Apache-2.0
"""Running: stages, chains, queues, threads, statistics. Knows no operator."""
