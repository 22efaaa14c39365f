# SPDX-License-Identifier: Apache-2.0
"""Iterators for training frameworks. Only the module of a framework imports that framework."""
