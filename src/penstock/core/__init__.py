# SPDX-License-Identifier: Apache-2.0
"""Base classes and common data structures. Does not depend on any operator."""
