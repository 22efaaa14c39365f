"""Operators for penstock. Importing this module adds them to penstock.fn and penstock.ops."""

import os

from penstock import plugin_manager

# Before the operators: their kernels are found in it.
plugin_manager.load_library(os.path.join(os.path.dirname(__file__), "libmy_effects.so"))

from .gain import Gain as Gain  # noqa: E402
