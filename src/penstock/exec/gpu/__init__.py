# SPDX-License-Identifier: Apache-2.0
"""Stages on the GPU: the session of a pipeline, copies, chains, decoders."""
