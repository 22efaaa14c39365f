# SPDX-License-Identifier: Apache-2.0
"""What operators are made of. Knows no operator."""
