# SPDX-License-Identifier: Apache-2.0
"""Random numbers: `RNG`, the generator used by calls, and operators that generate random data.

>>> from penstock.experimental import dynamic as ndd
>>> ndd.random.set_seed(1)
>>> ndd.random.uniform(range=[0, 1], batch_size=4).shape
[(), (), (), ()]
"""

from ._rng import RNG, get_default_rng, set_seed

__all__ = ["RNG", "get_default_rng", "set_seed"]
