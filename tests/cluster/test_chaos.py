# SPDX-License-Identifier: Apache-2.0
"""Workers and trainers that are killed at random: some seconds of tests/soak/soak_workers.py, and programs that are
resumed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pipelines import exists, pictures, values, wait_until, write_pictures

from modules import ROOT, load

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_and_stopped_with_a_slow_store(tmp_path, seed):
    run, least = load(ROOT / "tests" / "soak" / "soak_workers.py").run, {"SIGKILL": 6, "SIGSTOP": 1, "programs": 3}
    happened = run(tmp_path, 10, seed, every=0.6, least=least)
    assert all(happened[k] >= n for k, n in least.items())


PROGRAM = """
import hashlib, json, os, sys
sys.path[:0] = [{folder!r}]
import numpy as np
from pipelines import pictures, processes, values
files, state, log, workers, n = json.loads(sys.argv[1])
done, checkpoint = json.loads(open(state).read()) if os.path.exists(state) else (0, None)
pipe = pictures(files, random_shuffle=True, workers=workers, checkpoint=checkpoint)
pipe.build()
print(os.getpid(), flush=True)
while done < n:
    digest = hashlib.sha256(b"".join(s.tobytes() for output in values(pipe.run()) for s in output)).hexdigest()
    with open(log, "a") as f:
        f.write(f"{{done}} {{digest}} {{' '.join(map(str, processes(pipe) if workers else []))}}\\n")
    done += 1
    with open(state + ".new", "w") as f:
        json.dump((done, pipe.checkpoint().decode()), f)
    os.replace(state + ".new", state)
pipe.close()
"""


def test_a_trainer_that_is_killed_goes_on_with_other_workers(tmp_path):
    """Batches already returned do not change, and none is missing after the last checkpoint."""
    rng, n = np.random.default_rng(3), 40
    (tmp_path / "pictures").mkdir()
    files, state, log = write_pictures(tmp_path / "pictures"), tmp_path / "state", tmp_path / "log"
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    killed = 0
    for run in range(20):
        given = json.dumps([files, str(state), str(log), run % 4, n])
        with subprocess.Popen([sys.executable, "-c", program, given], stdout=subprocess.PIPE, text=True) as trainer:
            assert int(trainer.stdout.readline()) == trainer.pid
            before = log.read_text() if log.exists() else ""
            while trainer.poll() is None and (log.read_text() if log.exists() else "") == before:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.02))
            if killed < 4 and trainer.poll() is None:
                os.kill(trainer.pid, signal.SIGKILL)
                killed += 1
            trainer.wait(120)
        if trainer.returncode == 0:
            break
        assert trainer.returncode == -signal.SIGKILL
    assert killed >= 3
    lines = [line.split() for line in log.read_text().splitlines() if line.count(" ") >= 1]
    plain = pictures(files, random_shuffle=True)
    for i in range(n):
        expected = hashlib.sha256(b"".join(s.tobytes() for output in values(plain.run()) for s in output))
        made = [line[1] for line in lines if line[0] == str(i)]
        assert 1 <= len(made) <= 2 and set(made) == {expected.hexdigest()}, i
    workers = {int(pid) for line in lines for pid in line[2:]}
    wait_until(lambda: not any(map(exists, workers)))
