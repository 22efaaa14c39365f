# SPDX-License-Identifier: Apache-2.0
"""Separate programs: pipelines that exist when the interpreter exits, or when the process is forked."""

import os
import signal
import subprocess
import sys
import time

from penstock import fn, pipeline_def, types


def run_script(text, *arguments, timeout=60, **kwargs):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONDEVMODE": "0"}
    return subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=timeout, env=env, **kwargs
    )


SCRIPT = """
import sys, time, threading, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
import numpy as np
from penstock import fn, pipeline_def
@pipeline_def(batch_size=4, num_threads=2)
def read():
    return tuple(fn.readers.file(files=sys.argv[1:]))
@pipeline_def(batch_size=4, num_threads=2)
def calls(source):
    return fn.external_source(source=source, background=True)
"""


class TestInterpreterExit:
    def check(self, text, files, seconds=50):
        begin = time.monotonic()
        done = run_script(SCRIPT + text, *files, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
        assert time.monotonic() - begin < seconds

    def test_idle(self, files):
        self.check("pipe = read(); pipe.run(); print('ok')", files)

    def test_built(self, files):
        self.check("pipe = read(); pipe.build(); print('ok')", files)

    def test_busy(self, files):
        self.check("pipe = read(prefetch_queue_depth=50); pipe.run(); pipe.schedule_run(); print('ok')", files)

    def test_with_outputs_alive(self, files):
        self.check("pipe = read(); keep = [pipe.run() for _ in range(5)]; print('ok')", files)

    def test_in_a_cycle(self, files):
        self.check("pipe = read(); pipe.run(); pipe.me = pipe; print('ok')", files)

    def test_many(self, files):
        self.check("pipes = [read() for _ in range(20)]\nfor p in pipes: p.run()\nprint('ok')", files)

    def test_a_callback_that_never_returns(self, files):
        self.check("pipe = calls(lambda i: threading.Event().wait()); pipe.schedule_run(); print('ok')", files)

    def test_a_thread_that_runs_it(self, files):
        text = "pipe = read()\ndef work():\n  while True: pipe.run()\n"
        self.check(text + "threading.Thread(target=work, daemon=True).start(); time.sleep(.3); print('ok')", files)

    def test_after_an_error(self, files):
        text = "pipe = read()\ntry: pipe.run()\nexcept RuntimeError as e: keep = e\nprint('ok')"
        self.check(text, ["/no/such/file"])


class TestFork:
    """os.fork in a process with pipelines; the child's exit code is the result."""

    def child(self, files, text):
        done = run_script(SCRIPT + text, *files)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.split("\n")[:-1]

    BODY = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
def in_child(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
            sys.stdout.flush()
            os._exit(0)
        except BaseException as e:
            print(type(e).__name__, str(e)[:60], flush=True)
            os._exit(1)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print("hangs", flush=True)
def first(pipe):
    print(pipe.run()[1].as_array().ravel().tolist(), flush=True)
"""

    def test_the_child_builds_its_own(self, files):
        text = self.BODY + "pipe = read(); first(pipe)\nin_child(lambda: first(read()))\nfirst(pipe)"
        assert self.child(files, text) == ["[0, 1, 2, 3]", "[0, 1, 2, 3]", "[4, 5, 6, 7]"]

    def test_built_before_and_run_after(self, files):
        text = self.BODY + "pipe = read(); pipe.build()\nin_child(lambda: first(pipe))\nfirst(pipe)"
        assert self.child(files, text) == ["[0, 1, 2, 3]", "[0, 1, 2, 3]"]

    def test_running_before(self, files):
        text = self.BODY + "pipe = read(); first(pipe)\nin_child(lambda: first(pipe))\nfirst(pipe)"
        assert self.child(files, text) == [
            "[0, 1, 2, 3]",
            "RuntimeError this process was forked from one in which the pipeline was r",
            "[4, 5, 6, 7]",
        ]

    def test_busy_while_forking(self, files):
        text = """
pipe = read(prefetch_queue_depth=8)
pipe.run()  # a module that a thread is just importing stays locked in the child for ever, whatever it is
stop = []
def work():
    while not stop: pipe.run()
t = threading.Thread(target=work); t.start()
for _ in range(20):
    in_child(lambda: first(read()))
stop.append(1); t.join()
"""
        assert self.child(files, self.BODY + text) == ["[0, 1, 2, 3]"] * 20

    def test_the_child_ends_normally(self, files):
        text = """
pipe = read(); first(pipe); sys.stdout.flush()
if os.fork() == 0:
    sys.exit(0)
assert os.wait()[1] == 0
first(pipe)
"""
        assert self.child(files, self.BODY + text) == ["[0, 1, 2, 3]", "[4, 5, 6, 7]"]


def test_an_interrupted_script_ends(files):
    script = SCRIPT + "pipe = read()\nprint('on', flush=True)\nwhile True: pipe.run()\n"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout.readline() == "on\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in errors


def test_no_finalizer_takes_an_interrupt(files):
    """Python prints exceptions of a `__del__` and continues, so an interrupt in it would be lost. None runs in the
    thread that requests batches."""

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe_of_readers():
        data, label = fn.readers.file(files=files, random_shuffle=True)
        return fn.cast(data, dtype=types.FLOAT) + 1.0, fn.reinterpret(data, shape=[-1]), label

    pipe, finalizers = pipe_of_readers(), set()
    pipe.run()

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "__del__":
            finalizers.add(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    sys.setprofile(profile)
    try:
        for _ in range(50):
            pipe.run()
    finally:
        sys.setprofile(None)
    assert not finalizers
