# SPDX-License-Identifier: Apache-2.0
"""A cluster of Ray for the tests of this process."""

import os
from importlib import import_module

_TRIES = 3


def start(paths, **arguments):
    """Starts it, with these folders on its processes' path. Ray gives up after 30 s, which a busy machine may need."""
    ray = import_module("ray")
    env = {"env_vars": {"PYTHONPATH": os.pathsep.join(map(str, paths))}}
    for left in reversed(range(_TRIES)):
        try:
            return ray.init(include_dashboard=False, log_to_driver=False, runtime_env=env, **arguments)
        except Exception as e:
            if not left or "timed out during startup" not in str(e):
                raise
            ray.shutdown()
