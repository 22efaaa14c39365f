# SPDX-License-Identifier: Apache-2.0
"""Base of the operators that multiply and add: out = mul * in + add."""

from ._value import ValueOperator


class Linear(ValueOperator, abstract=True):
    layouts = ("FHWC", "DHWC", "HWC")
    kernel = "color/linear"
