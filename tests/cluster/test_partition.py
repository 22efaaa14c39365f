# SPDX-License-Identifier: Apache-2.0
"""Workers on another machine (a network namespace): batches also arrive while the cable is unplugged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pipelines import write_pictures
from two_machines import possible, two_machines

import penstock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not possible(), reason="needs root, ip and tc, to make network namespaces"),
]
HERE = Path(__file__).parent
PROGRAM = """
import json, sys
from two_machines import workers_on
from pipelines import assert_same, pool_of, pictures, values
from penstock.cluster import worker_pool as pool_module
from penstock.cluster.connection import Streamed
workers_on(sys.argv[2])
pool_module.LATE_SECONDS, pool_module._LATE_TIMES = 1.0, 2  # so that it is soon noticed, also on a busy machine
files = json.loads(sys.argv[1])
plain, crewed = pictures(files, random_shuffle=True), pictures(files, random_shuffle=True, workers=2)
print("built", flush=True)
for line in sys.stdin:  # how many batches to make
    for i in range(int(line)):
        assert_same(values(plain.run()), values(crewed.run()), i)
        assert plain.checkpoint() == crewed.checkpoint()
    members = list(pool_of(crewed).slots)
    connections = [m.link._connection for m in members if m.link is not None]
    wire = sum(c is not None and isinstance(c._incoming, Streamed) for c in connections)
    print(json.dumps({"ready": sum(m.state == "ready" and not m.is_late for m in members), "wire": wire}), flush=True)
crewed.close()
"""


def test_a_cable_that_is_unplugged_and_plugged_in_again(tmp_path):
    files = write_pictures(tmp_path)
    paths = os.pathsep.join([str(Path(penstock.__file__).parents[1]), str(HERE)])
    env = {**os.environ, "PYTHONPATH": paths}
    with two_machines() as machines:
        command = [sys.executable, "-c", PROGRAM, json.dumps(files), machines.worker]
        command = machines.command(machines.trainer, *command)
        with subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as trainer:

            def batches(n):
                trainer.stdin.write(f"{n}\n")
                trainer.stdin.flush()
                line = trainer.stdout.readline()
                assert line, trainer.stderr.read()[-3000:]
                return json.loads(line)

            def until(state):
                for _ in range(100):
                    found = batches(20)
                    if found == state:
                        return
                raise AssertionError(f"{found}, not {state}")

            assert trainer.stdout.readline() == "built\n", trainer.stderr.read()[-3000:]
            until({"ready": 2, "wire": 2})
            machines.cable("down")
            assert batches(20)["ready"] == 0  # made by the trainer
            machines.cable("up")
            until({"ready": 2, "wire": 2})
            trainer.stdin.close()
            assert trainer.wait(60) == 0, trainer.stderr.read()[-3000:]
