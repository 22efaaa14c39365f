# SPDX-License-Identifier: Apache-2.0
"""Runs programs written for DALI on penstock.

After `import penstock.as_dali`, `import nvidia.dali` and its submodules return penstock's own modules.
`python -m penstock.as_dali script.py arguments` and `python -m penstock.as_dali -m module arguments` run a program
without changing it. Processes that the program starts are included. Other packages under `nvidia` are not affected.

>>> import penstock.as_dali
>>> import nvidia.dali.fn as fn
>>> from penstock import fn as ours
>>> fn is ours
True
"""

from .finder import install as _install
from .finder import install_in_children as _install_in_children

_install()
_install_in_children()
