# SPDX-License-Identifier: Apache-2.0
"""The GPU: CUDA's driver API, memory, kernels compiled at run time, JPEG engines. Knows `core` only."""
