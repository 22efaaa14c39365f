# SPDX-License-Identifier: Apache-2.0
"""Sources for worker processes, which must be importable in spawned processes."""

import os
import time

import numpy as np

from penstock import fn, pipeline_def

METHODS = ["fork", "spawn", "forkserver", "thread"]
PROCESSES = METHODS[:3]


def build(source, method="fork", workers=2, batch_size=4, n_outputs=None, pipe_args=None, **kwargs):
    kwargs = {"parallel": True, "batch": False, **kwargs}

    @pipeline_def(
        batch_size=batch_size, num_threads=1, py_num_workers=workers, py_start_method=method, **(pipe_args or {})
    )
    def pipe():
        out = fn.external_source(source=source, num_outputs=n_outputs, **kwargs)
        return tuple(out) if n_outputs else out

    return pipe()


def values(outputs):
    return [np.array(outputs[0].at(i)).tolist() for i in range(len(outputs[0]))]


def epochs(pipe, n=2):
    """The batches of each epoch."""
    out = []
    for _ in range(n):
        out.append([])
        try:
            while True:
                out[-1].append(values(pipe.run()))
        except StopIteration:
            pipe.reset()
    return out


def numbered(info):
    return np.int32([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


def ten(info):
    if info.idx_in_epoch >= 10:
        raise StopIteration
    return np.int32([info.idx_in_epoch, info.epoch_idx])


def uneven(info):
    time.sleep(0.004 * (info.idx_in_epoch % 3 == 0))
    return np.int32([info.idx_in_epoch])


def growing(info):
    """Samples that grow, unlike the first batches."""
    i = info.idx_in_epoch
    return np.full((i * i * 7 + 1, 3), i % 251, "u1"), np.full(i % 3, i, "f4")


def dense(info):
    return np.full((50, 40, 3), info.idx_in_epoch % 251, "u1")


def three_batches():
    for i in range(3):
        yield [np.int32([i]), np.int32([i, i])]


def whole(info):
    return np.full((3, 2), info.iteration, "f4"), [np.zeros((info.iteration, 2)), np.ones((1, 2))] + [np.ones((2, 2))]


class Raises:
    def __init__(self, at):
        self.at = at

    def __call__(self, info):
        if info.idx_in_epoch == self.at:
            raise OwnError(f"no sample {self.at}", self.at)
        return np.int32([info.idx_in_epoch])


class OwnError(Exception):
    def __init__(self, text, number):
        super().__init__(text, number)
        self.number = number


class Unpicklable(Exception):
    def __init__(self, a, b, c):
        super().__init__("it is no use")


def raises_unpicklable(info):
    raise Unpicklable(1, 2, 3)


class Does:
    """Does something in the worker at one sample, once, as recorded by a file."""

    def __init__(self, at, what, flag):
        self.at, self.what, self.flag = at, what, str(flag)

    def __call__(self, info):
        if info.idx_in_epoch == self.at and not os.path.exists(self.flag):
            open(self.flag, "w").close()
            exec(self.what, {"os": os, "time": time})
        return np.int32([info.idx_in_epoch])


class OfPid:
    def __call__(self, info):
        time.sleep(0.002)
        return np.int64([os.getpid()])


class BadDel:
    def __call__(self, info):
        return Owner(np.int32([info.idx_in_epoch]))

    def __del__(self):
        raise RuntimeError("in __del__ of a source")


class Owner:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __del__(self):
        raise RuntimeError("in __del__ of a sample")


def gives(what):
    return lambda info: what(info)
