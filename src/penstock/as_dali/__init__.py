# SPDX-License-Identifier: Apache-2.0
"""Programs written for DALI run on penstock.

After `import penstock.as_dali`, `import nvidia.dali` and all below it give penstock's own modules, the very same
objects. `python -m penstock.as_dali script.py arguments` and `python -m penstock.as_dali -m module arguments` run a
program without changing it. Processes that the program starts are covered too. Other packages under `nvidia` are not
touched.

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
