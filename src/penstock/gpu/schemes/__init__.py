# SPDX-License-Identifier: Apache-2.0
"""What launches of several kernels have in common; `plan` in the Python files beside kernels calls it."""
