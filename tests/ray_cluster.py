# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster for the tests of this process."""

import os
from importlib import import_module

_TRIES = 3


def start(paths, **arguments):
    """Starts the cluster with these folders on the path of its processes. Retries, as a busy machine may exceed Ray's
    limit of 30 s."""
    ray = import_module("ray")
    env = {"env_vars": {"PYTHONPATH": os.pathsep.join(map(str, paths))}}
    for left in reversed(range(_TRIES)):
        try:
            return ray.init(include_dashboard=False, log_to_driver=False, runtime_env=env, **arguments)
        except Exception as e:
            if not left or "timed out during startup" not in str(e):
                raise
            ray.shutdown()
