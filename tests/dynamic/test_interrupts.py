# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C interrupts running work of the imperative mode."""

import subprocess
import sys
import textwrap

PROGRAM = """
    import os, signal, threading, time
    import numpy as np
    from penstock.experimental import dynamic as ndd

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
    np.asarray(ndd.as_batch([np.zeros((8, 8, 3), "u1")]).tensors[0])
    images = ndd.as_batch([np.zeros((64, 64, 3), "u1")] * 3000)
    told = []

    def interrupt():
        time.sleep(0.3)
        told.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    begin = time.monotonic()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        for _ in range(50):
            np.asarray(ndd.resize(images, size=[400, 400]).tensors[-1])
    except KeyboardInterrupt:
        print(time.monotonic() - told[0])
"""


def test_an_interrupt_does_not_wait_for_the_work():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout, f"exit status {done.returncode}: {done.stderr}"
    assert float(done.stdout) < 0.2, done.stderr
