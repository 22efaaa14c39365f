# SPDX-License-Identifier: Apache-2.0
"""Launch planning shared by several kernels; used by `plan` in the Python files next to kernels."""
