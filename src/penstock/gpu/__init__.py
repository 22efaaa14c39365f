# SPDX-License-Identifier: Apache-2.0
"""GPU support: CUDA's driver API, memory, kernels compiled at run time, JPEG engines. Depends only on `core`."""
