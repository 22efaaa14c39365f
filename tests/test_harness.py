# SPDX-License-Identifier: Apache-2.0
"""Operators with artificial bugs: the harness has to detect each with the right check, and accept the correct
operator."""

import threading
import time

import numpy as np
import pytest

from harness import Case, op_test, per_sample, saturate
from penstock.core.batch import view
from penstock.core.op import Arg, Operator, PerFrame, PerSample, Pointwise
from probes import plant, python_kernel


def _origin(values):
    origin = np.zeros((len(values), 8), "i8")
    origin[:, : values.shape[1]] = values
    return origin


@python_kernel("test/right", [("add", "f4")])
def right(outs, ins, row):
    outs[0][...] = np.clip(ins[0].astype("i4") + round(float(row["add"])), 0, 255)


@python_kernel("test/off_by_one", [("add", "f4")])
def off_by_one(outs, ins, row):
    outs[0][...] = np.clip(ins[0].astype("i4") + round(float(row["add"])) + 1, 0, 255)


@python_kernel("test/one_value_off", [("add", "f4")])
def one_value_off(outs, ins, row):
    right(outs, ins, row)
    if outs[0].size > 100:
        outs[0].flat[-1] ^= 1


@python_kernel("test/behind", [("add", "f4")])
def behind(outs, ins, row):
    right(outs, ins, row)
    if outs[0].size:
        view(outs[0].ctypes.data + outs[0].nbytes, (1,), np.dtype("u1"), None)[...] = 0


@python_kernel("test/leaves_out", [("add", "f4")])
def leaves_out(outs, ins, row):
    outs[0].ravel()[:-1] = np.clip(ins[0].astype("i4") + round(float(row["add"])), 0, 255).ravel()[:-1]


@python_kernel("test/writes_input", [("add", "f4")])
def writes_input(outs, ins, row):
    right(outs, ins, row)
    ins[0][...] = 0


@python_kernel("test/window", [("add", "f4"), ("origin", "i8", 8)])
def window(outs, ins, row):
    part = ins[0][tuple(slice(o, o + s) for o, s in zip(row["origin"], outs[0].shape))]
    outs[0][...] = np.clip(part.astype("i4") + round(float(row["add"])), 0, 255)


class _Add(Pointwise):
    """out = in + add."""

    kernel = "test/right"
    add = PerFrame(float, 0.0)
    factor = PerSample(float, 0.0)
    dtype = Arg(int, None)

    def params(self, a, x, out):
        return {"add": a.add}


def reference(x, add=0.0, factor=0.0):
    return saturate(x.astype("f8") + np.round(add), x.dtype)


ARGS = [{"add": 3.0}, {"add": per_sample(0, 9)}]


def declare(name, **options):
    return op_test(name, reference, **{"layouts": ("HWC", "FHWC"), "args": ARGS, **options})


def check(test, method, cases=None):
    for case in cases or test.declaration.cases:
        with pytest.MonkeyPatch.context() as patch:
            getattr(test(), method)(case, *([patch] if method != "test_faces_and_threads_agree" else []))


def caught(make, method, text, **options):
    with plant(make) as name, pytest.raises(AssertionError, match=text):
        check(declare(name, **options), method)


def test_right_operator_passes():
    def make():
        class Planted(_Add):
            pass

        return Planted

    with plant(make) as name:
        for method in ("test_reference", "test_faces_and_threads_agree", "test_windows"):
            check(declare(name), method)


@pytest.mark.parametrize(
    "path, text",
    [
        ("off_by_one", "sample 0"),
        ("one_value_off", "sample 3"),
        ("behind", "wrote behind its output"),
        ("leaves_out", "sample 0"),
        ("writes_input", "wrote to its input"),
    ],
)
def test_wrong_kernel_is_caught(path, text):
    def make():
        class Planted(_Add):
            kernel = f"test/{path}"

        return Planted

    caught(make, "test_reference", text)


@pytest.mark.parametrize("steps, text", [(0, "sample 0"), (1, "values are off")])
def test_wrong_by_one_is_caught_where_one_step_is_allowed(steps, text):
    def make():
        class Planted(_Add):
            kernel = "test/off_by_one"

        return Planted

    caught(make, "test_reference", text, steps=steps)


def test_a_result_that_changes_from_batch_to_batch_is_caught():
    def make():
        class Planted(_Add):
            def params(self, a, x, out):  # batches may be planned simultaneously, so identify them by their samples
                later = bool(a.n) and (a.random.position[0] > 0 or a.random.epoch[0] > 0)
                return {"add": a.add + later}

        return Planted

    caught(make, "test_reference", "second batch differs", layouts=("HWC",), args=[{"add": 3.0}])


def test_dependence_on_threads_is_caught():
    seen = set()

    @python_kernel("test/by_thread", [("add", "f4")])
    def by_thread(outs, ins, row):
        right(outs, ins, row)
        time.sleep(0.005)  # lets the other threads take samples
        seen.add(threading.get_ident())
        if outs[0].size and len(seen) > 1 and threading.get_ident() == max(seen):
            outs[0].flat[0] ^= 1

    def make():
        class Planted(_Add):
            kernel = "test/by_thread"

        return Planted

    caught(make, "test_faces_and_threads_agree", "gives something else")


def test_wrong_type_is_caught():
    def make():
        class Planted(_Add):
            kernel = "test/window"

            def outputs(self, a, x):
                return x.like(dtype="u2")

        return Planted

    caught(make, "test_reference", "type uint16, expected uint8")


def test_wrong_shape_is_caught():
    def make():
        class Planted(_Add):
            kernel = "test/window"

            def outputs(self, a, x):
                return x.like(shape=x.shape - (x.shape > 8))

        return Planted

    caught(make, "test_reference", "sample 3: shape")


def test_an_argument_taken_from_the_first_sample_is_caught():
    def make():
        class Planted(_Add):
            def params(self, a, x, out):
                return {"add": a.add[0]}

        return Planted

    caught(make, "test_reference", "sample 1")


def test_an_argument_that_works_as_a_constant_only_is_caught():
    def make():
        class Planted(_Add):
            def params(self, a, x, out):
                return {"add": a.add if "add" in self.values and self.values["add"] else 0}

        return Planted

    caught(make, "test_faces_and_threads_agree", "arguments as data gives something else", args=[{"add": 3.0}])


def test_an_argument_that_ignores_its_frames_is_caught():
    def make():
        class Planted(_Add):
            def params(self, a, x, out):
                return {"add": np.full(a.n, a.add[0])}

        return Planted

    caught(make, "test_reference", "sample 0", layouts=("FHWC",), args=[{"add": per_sample(0, 9, frames=True)}])


def test_a_sample_that_depends_on_its_batch_is_caught():
    def make():
        class Planted(_Add):
            def params(self, a, x, out):
                return {"add": a.add + (a.n == 1)}

        return Planted

    caught(make, "test_faces_and_threads_agree", "sample 0 alone")


def test_ops_that_differ_from_fn_are_caught():
    def make():
        class Planted(_Add):
            pass

        return Planted

    with plant(make) as name:
        import penstock

        real = penstock.ops.Planted
        penstock.ops.Planted = lambda **kwargs: real(**{k: v for k, v in kwargs.items() if k != "add"})
        with pytest.raises(AssertionError, match="ops gives something else"):
            check(declare(name), "test_faces_and_threads_agree")


class _Window(_Add):
    """Reads and creates windows correctly."""

    kernel, windowed = "test/window", "HW"

    def params(self, a, x, out):
        return {"add": a.add, "origin": _origin(out.origin - x.origin)}


def test_right_windows_pass():
    def make():
        class Planted(_Window):
            pass

        return Planted

    with plant(make) as name:
        check(declare(name), "test_windows")


def test_ignoring_where_the_input_begins_is_caught():
    def make():
        class Planted(Operator):
            kernel, windowed = "test/window", "HW"
            add = PerFrame(float, 0.0)

            def outputs(self, a, x):
                return x.like()

            def region(self, a, x, out):
                return np.zeros_like(x.shape), np.minimum(out.origin + out.stored, x.shape)

            def params(self, a, x, out):
                return {"add": a.add, "origin": _origin(np.zeros_like(x.shape))}

        return Planted

    caught(make, "test_windows", "beside a windowed consumer")


def test_a_region_too_small_is_caught():
    def make():
        class Planted(Operator):
            kernel = "test/window"
            add = PerFrame(float, 0.0)

            def outputs(self, a, x):
                return x.like()

            def region(self, a, x, out):
                return out.origin, np.maximum(out.stored - (out.stored > 4), 0)

            def params(self, a, x, out):
                return {"add": a.add, "origin": _origin(out.origin - x.origin)}

        return Planted

    with plant(make) as name, pytest.raises(Exception, match="could not broadcast|beside a windowed producer"):
        check(declare(name), "test_windows")


def test_an_error_that_does_not_come_is_caught():
    def make():
        class Planted(_Add):
            pass

        return Planted

    with plant(make) as name, pytest.raises(BaseException, match="DID NOT RAISE"):
        declare(name, errors=[({"add": 1.0}, ValueError, "x")])().test_errors({"add": 1.0}, ValueError, "x")


def test_cases_have_names_of_their_own():
    assert Case("u1", "HWC", {"a": 1.5}).id == "uint8-HWC-a=1.5"
