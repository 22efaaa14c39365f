# SPDX-License-Identifier: Apache-2.0
"""`schedule_run`, `share_outputs`, `release_outputs`, `outputs`, `empty` and `reset` in many orders: the same batches,
the same exceptions, and as many calls of the user's code, after each step, in both libraries."""

import random
import warnings

import numpy as np
import pytest

LENGTH = 5  # batches, or for the reader samples, in an epoch
ROWS = [np.full((2, 1), i, "i4") for i in range(LENGTH)]
# Orders of steps. Each letter is one, see `Run.step`.
ORDERS = {
    "until it is empty": "s" + "ehl" * 8,
    "one request for each batch": "s" + "hlse" * 9,
    "requested after each": "shl" * 9 + "ehle",
    "several at once": "sssse" + "hle" * 8 + "sse" + "hle" * 5,
    "without release": "s" + "ohe" * 4 + "sesoh",
    "released twice, and before anything": "lseellhllellse",
    "nothing requested": "ehleohs" + "hle" * 5,
    "after the end": "shl" * 7 + "ehlsehlsohle",
    "reset at the end": ("s" + "hls" * 7 + "er") * 3 + "sehle",
    "reset as soon as it is empty": ("s" + "hls" * 5 + "r") * 2 + "seh",
    "reset twice": "s" + "hls" * 7 + "rrehs" + "ehle" * 3,
    "reset at first": "r" + "shle" * 3,
}
RUNS = {"run": "RRReRRReRRR", "run, then what is left": "RRRe" + "hle" * 4 + "h", "reset": "RRRRRRrRRRRRRRReR"}


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as dali

    import penstock

    return dali, penstock


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = [tmp_path_factory.mktemp("files") / f"{i}.bin" for i in range(LENGTH)]
    for p in paths:
        p.write_bytes(b"data")
    return [str(p) for p in paths]


class Run:
    """A pipeline of one library. The user's code counts its calls in `calls`."""

    def __init__(self, lib, source, files, **kwargs):
        self.calls, self.files = 0, files
        kwargs = {"batch_size": 2, "num_threads": 1, "device_id": None, "prefetch_queue_depth": 2, **kwargs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the older executor
            if source == "iter_setup":
                self.pipe = self._of_a_class(lib, kwargs)
            else:
                self.pipe = lib.pipeline_def(lambda: getattr(self, source)(lib), **kwargs)()
            self.pipe.build()
        self.pipe.enable_api_check(False)

    def _of_a_class(self, lib, kwargs):
        run = self

        class Pipe(lib.Pipeline):
            def __init__(self):
                super().__init__(**kwargs)
                self.input = lib.ops.ExternalSource()

            def define_graph(self):
                self.fed = self.input()
                return self.fed

            def iter_setup(self):
                run.calls += 1
                if run.calls % (LENGTH + 1) == 0:
                    raise StopIteration
                self.feed_input(self.fed, ROWS[run.calls % (LENGTH + 1) - 1])

        return Pipe()

    def reader(self, lib):
        return lib.fn.readers.file(files=self.files, labels=list(range(LENGTH)))[1]

    def callable(self, lib):
        def source(i):
            self.calls += 1
            if i == LENGTH:
                raise StopIteration
            return ROWS[i]

        return lib.fn.external_source(source=source)

    def per_sample(self, lib):
        def source(info):
            self.calls += 1
            if info.iteration == LENGTH:
                raise StopIteration
            return np.int32([info.idx_in_epoch])

        return lib.fn.external_source(source=source, batch=False)

    def iterable(self, lib):
        return lib.fn.external_source(source=ROWS)

    def iterable_that_raises(self, lib):
        return lib.fn.external_source(source=ROWS, cycle="raise")

    def iterable_without_end(self, lib):
        return lib.fn.external_source(source=ROWS, cycle="quiet")

    def reader_and_callable(self, lib):
        return self.reader(lib) * 10 + self.callable(lib)

    def constant(self, lib):
        return lib.types.Constant(7)

    def step(self, letter):
        pipe = self.pipe
        how = {"s": pipe.schedule_run, "l": pipe.release_outputs, "r": pipe.reset, "e": pipe.empty}
        try:
            if letter in how:
                result = how[letter]()
            else:
                (out,) = {"h": pipe.share_outputs, "o": pipe.outputs, "R": pipe.run}[letter]()
                result = np.array(out.as_array()).ravel().tolist()
        except (StopIteration, RuntimeError) as e:
            result = type(e).__name__
        return letter, result, self.calls

    def steps(self, letters):
        return list(map(self.step, letters))


SOURCES = ["callable", "per_sample", "iterable", "iterable_that_raises", "iterable_without_end", "iter_setup"]
ENDLESS = ("reader", "constant", "iterable_without_end")


def orders_for(source, waits_for_release=False):
    # Within an epoch, `reset` is ours only: in DALI it has no effect.
    left_out = ["reset"] if source in ENDLESS else []
    # DALI's older executors wait forever if too many batches are requested, or not released.
    left_out += ["release", "several", "nothing"] if waits_for_release else []
    return {name: text for name, text in ORDERS.items() if not any(word in name for word in left_out)}


def compare(libs, source, files, orders, **kwargs):
    for name, letters in orders.items():
        theirs, ours = (Run(lib, source, files, **kwargs).steps(letters) for lib in libs)
        assert ours == theirs, name


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("source", ["reader", "constant", "reader_and_callable", *SOURCES])
def test_orders(libs, files, source, depth):
    compare(libs, source, files, orders_for(source), prefetch_queue_depth=depth)


@pytest.mark.parametrize("source", ["reader", "callable", "iter_setup"])
@pytest.mark.parametrize("exec_dynamic", [True, False])
def test_executors(libs, files, source, exec_dynamic):
    compare(libs, source, files, orders_for(source, not exec_dynamic), exec_dynamic=exec_dynamic)


@pytest.mark.parametrize("source", ["reader", "callable", "iter_setup"])
def test_batches_made_on_request(libs, files, source):
    how = dict(exec_pipelined=False, exec_async=False, prefetch_queue_depth=3)
    compare(libs, source, files, orders_for(source, True), **how)


@pytest.mark.parametrize("source", ["reader", "callable", "iterable_that_raises", "iter_setup"])
def test_run_and_empty(libs, files, source):
    for depth in (1, 2, 4):
        orders = RUNS if source != "reader" else {k: v for k, v in RUNS.items() if k != "reset"}
        compare(libs, source, files, orders, prefetch_queue_depth=depth)


@pytest.mark.parametrize("source", ["reader", "callable", "iterable_that_raises"])
def test_random_orders(libs, files, source):
    draw = random.Random(source)
    for _ in range(20):
        letters = "".join(draw.choice(["s", "s", "hl", "hl", "o", "e"]) for _ in range(30))
        compare(libs, source, files, {letters: letters}, prefetch_queue_depth=draw.randint(1, 4))


def in_a_worker(info):
    if info.iteration == 3:
        raise StopIteration
    return np.int32([info.idx_in_epoch])


@pytest.mark.parametrize("depth", [1, 2])
def test_sources_in_workers(libs, depth):
    """`empty` knows the end of a source that a worker calls."""

    def of(lib):
        def define():
            return lib.fn.external_source(source=in_a_worker, batch=False, parallel=True)

        run = object.__new__(Run)
        run.calls = 0
        how = dict(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth, py_num_workers=1)
        run.pipe = lib.pipeline_def(define, **how, py_start_method="spawn")()
        run.pipe.build()
        return run.steps(("s" + "hlse" * 4 + "hl" + "er") * 2)

    theirs, ours = map(of, libs)
    assert ours == theirs
