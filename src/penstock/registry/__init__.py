# SPDX-License-Identifier: Apache-2.0
"""Creates the functions of `fn` and the classes of `ops` from the operators' classes."""

from .functions import build_classes as build_classes
from .functions import build_functions as build_functions
from .functions import function_of as function_of
from .functions import places as places
