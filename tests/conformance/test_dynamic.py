# SPDX-License-Identifier: Apache-2.0
"""Comparison of the imperative mode with DALI's: expressions give the same values, types, layouts and shapes, or both
fail; cases of operators give the same outputs, and readers the same batches."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from conformance import oracle, report
from conformance.oracle import Bound
from conformance.test_operators import DECLARED
from harness import Column
from penstock.experimental import dynamic as ours

theirs = pytest.importorskip("nvidia.dali.experimental.dynamic")

A = np.arange(6, dtype=np.uint8).reshape(2, 3)
P = np.arange(2 * 5 * 4 * 3, dtype=np.uint8).reshape(2, 5, 4, 3)


def names(ndd):
    """Names used in expressions."""
    return {
        "ndd": ndd,
        "np": np,
        "a": A,
        "T": ndd.as_tensor(A, layout="HW"),
        "B": ndd.as_batch([A, A + 1]),
        "R": ndd.as_batch([np.zeros((2, 3), "f4"), np.ones((3, 2), "f4")], layout="HW"),
        "P": ndd.as_batch(P, layout="HWC"),
        "F": ndd.as_tensor(np.float32([[0.5, -1.25], [2, 7]])),
    }


EXPRESSIONS = """
T; B; R; T.shape; T.dtype; T.layout; B.layout; B.shape; B.ndim; B.batch_size; T.size; T.nbytes; T.itemsize; T.ndim
str(T.device); repr(T.device); str(T); str(B); str(R); repr(ndd.tensor(3)); repr(P); ndd.tensor(3); ndd.tensor(3.5)
ndd.tensor([1, 2]); ndd.tensor([1.0, 2]); ndd.tensor(True); ndd.tensor(np.float64(2)); ndd.tensor(np.int64(2))
ndd.as_tensor([[1, 2], [3, 4]]); ndd.as_tensor(a, dtype=ndd.float32); ndd.as_tensor("abc")
ndd.as_tensor(a, dtype=np.float32); ndd.as_tensor(a, layout="HWC"); ndd.as_tensor(T, layout="WH"); ndd.as_tensor(None)
ndd.as_tensor(F, dtype=ndd.uint8); ndd.as_tensor(np.zeros((4, 4))[::2, ::2]); ndd.as_tensor(np.zeros((2, 2), complex))
ndd.as_batch(a); ndd.as_batch([a, a[0]]); ndd.as_batch([]); ndd.as_batch([], dtype=ndd.uint8); ndd.as_batch([1, 2, 3])
ndd.as_batch(5); ndd.as_batch([[1, 2], [3]]); ndd.as_batch("abc"); ndd.as_batch([T, T]); ndd.as_batch(B) is B
ndd.as_batch([a, a], dtype=ndd.int16, layout="XY"); ndd.batch([a, a]); ndd.Batch(B); ndd.Tensor(a); ndd.as_tensor(B)
ndd.as_tensor(R); ndd.as_tensor(R, pad=True); ndd.as_tensor(P).layout; B[0]; B.select(0); B.select(-1); B.select(5)
B.select("a"); B.tensors[0]; len(B.tensors); B.tensors[-1]; B.tensors[7]; B.slice[0]; B.slice[0, 1:]
B.slice[ndd.as_batch([0, 1])]; B.slice[..., -1]; P.slice[1:4, :, 0]; P.slice[0, 0, 0]; T[0]; T[:, 1]; T[1, 2]; T[-1]
T[5]; T[..., 0]; T[0:2:2]; T[ndd.tensor(1)]; T["a"]; T[1:, ::2]; T + 1; T + 1.5; T + T; T + B; B + 1; B + B; B + R
R * 2; 1 - B; -B; ~B; T == T; T != 1; T < 3; T >= B; F > 0; abs(F); -F; F / 2; T / 2; T // 2; T % 2; T ** 2; T << 1
T & 1; T | 8; T ^ 3; T >> 1; 2 ** T; 7 // (T + 1); 7 % (T + 1); 1.5 * T; T * np.float32(2)
B + ndd.as_tensor([1, 2, 3]); T + [1, 2, 3]; T - np.uint8([[1], [2]]); True & (T > 2); bool(ndd.tensor(1))
bool(ndd.tensor(0)); len(B); T.item(); ndd.tensor(3).item(); F[0, 0].item(); np.asarray(T); T.cpu() is T
T.to_device("cpu") is T; T.evaluate() is T; B.cpu() is B; T.__dlpack_device__()
T.to_device("cpu", force_copy=True) is T; T.torch().tolist(); B.torch().tolist(); R.torch()
R.torch(pad=True).tolist(); T.torch().dtype; B.torch().shape; R.torch(copy=False); T.torch(copy=True).tolist()
ndd.Batch.broadcast(a, 3); ndd.Batch.broadcast(T, 2); ndd.Batch.broadcast(B, 3); ndd.Batch.broadcast(7, 2)
ndd.device("cpu"); ndd.device("mixed"); ndd.device(None); ndd.device("cpu", 0); ndd.device("cpu:0"); ndd.device(3)
ndd.Device("cpu") == ndd.device("cpu"); ndd.Device("cpu").device_type; ndd.Device("cpu").device_id
ndd.Device.type_from_dlpack(1); ndd.Device.default_device_id("cpu"); ndd.Device.CPU; ndd.Device.from_dlpack(T)
ndd.dtype("f32"); ndd.dtype("u8"); ndd.dtype("f16"); ndd.dtype("bfloat16"); ndd.dtype("bool"); ndd.dtype(np.uint8)
ndd.dtype(np.dtype("f4")); ndd.dtype(float); ndd.dtype(int); ndd.dtype(bool); ndd.dtype(None); ndd.dtype("x9")
ndd.dtype(ndd.float32); ndd.dtype(3); ndd.float32 == ndd.dtype("f32"); ndd.float32.name; ndd.float32.bits
ndd.float32.bytes; ndd.uint8.exponent_bits; str(ndd.bfloat16); ndd.bool.bytes; ndd.InterpType; str(ndd.InterpType)
int(ndd.float32.type_id); int(ndd.type_id(ndd.int16)); ndd.DType.parse("f64"); ndd.DType.parse("nope")
ndd.DType.from_fw_type(np.dtype("i2")); [k.name for k in ndd.DType.Kind]; ndd.float16; ndd.bool; ndd.int64; ndd.uint32
[m.name for m in ndd.EvalMode]; ndd.EvalMode.current().name; ndd.EvalMode("eager"); ndd.EvalMode.default.name
ndd.get_num_threads() > 0; ndd.set_num_threads(0); ndd.EvalContext(num_threads=2).num_threads; ndd.stream(stream=None)
ndd.EvalContext(thread_pool=ndd.ThreadPool(2), num_threads=3)
ndd.EvalContext(thread_pool=ndd.ThreadPool(2)).num_threads; ndd.get_current_stream(); ndd.get_default_stream()
ndd.EvalContext.current() is ndd.EvalContext.default(); ndd.resize(T, size=3); ndd.resize(T, siz=3)
ndd.resize(a, size=(3, 3)); ndd.resize(); ndd.resize(T, T); ndd.resize(P, size=ndd.as_batch([[3, 3], [1, 2]])).shape
ndd.resize(P, size=ndd.as_tensor([3, 3])).shape; ndd.resize(P, resize_x=ndd.as_batch([3, 4, 5]))
ndd.resize(P.select(0), resize_x=ndd.as_batch([3, 4])).shape
ndd.resize(P.select(0), resize_x=ndd.as_tensor(3.0)).shape; ndd.resize(P.select(0), size=(3, 3), batch_size=2).shape
ndd.resize(P.select(0), size=[3, 2]).layout; ndd.resize(P, resize_x=3, interp_type="linear")
ndd.cast(T, dtype=ndd.float32); ndd.cast(T); ndd.cast_like(T, F); ndd.copy(T); ndd.copy(B)
ndd.normalize(T, device="xpu"); ndd.zeros(shape=(2,)); ndd.zeros(shape=(2,), batch_size=2)
ndd.ones(shape=[2], dtype=ndd.float32); ndd.full(3, shape=(2,)); ndd.full_like(T, 3); ndd.zeros_like(B)
ndd.ones_like(T); ndd.stack(T, T); ndd.cat(T, B); ndd.cat(B, B, axis=1); ndd.reductions.mean(T); ndd.reductions.sum(B)
ndd.reductions.max(B, axes=0); ndd.reductions.std_dev(F, ndd.reductions.mean(F)); ndd.transforms.rotation(angle=30)
ndd.transforms.rotation(angle=30, batch_size=2); ndd.transforms.scale(scale=(2, 3))
ndd.transforms.combine(ndd.transforms.rotation(angle=30), ndd.transforms.translation(offset=(1, 2))); ndd.math.sin(F)
ndd.math.sqrt(B); ndd.math.clamp(B, 1, 3); ndd.math.min(T, 1); ndd.math.min(1, 2); ndd.math.atan2(F, 2.0)
ndd.math.pow(T, 2); ndd.math.fpow(T, 2); ndd.math.floor(F); ndd.math.abs(F); ndd.math.max(B, T); ndd.math.exp(F)
ndd.math.log2(T + 1); ndd.math.rsqrt(T + 1); ndd.math.tanh(F); ndd.math.cbrt(F); ndd.get_property(P, key="layout")
ndd.per_frame(B); ndd.normalize(B); ndd.transpose(P, perm=[2, 0, 1]); ndd.pad(R)
ndd.flip(P, horizontal=ndd.as_batch([0, 1])); ndd.crop(P, crop=(2, 2)); ndd.crop(P, crop=(9, 9))
ndd.reshape(T, shape=[6]); ndd.reshape(B, rel_shape=[1, -1]); ndd.squeeze(ndd.as_tensor(a[None]), axes=0)
ndd.expand_dims(T, axes=0); ndd.one_hot(ndd.as_batch([1, 0]), num_classes=3)
ndd.lookup_table(T, keys=[1], values=[3.0]); ndd.bb_flip(F)
ndd.brightness_contrast(P, brightness=ndd.as_batch([1.5, 0.5]), contrast=0.9); ndd.hsv(P, hue=30.0)
ndd.random.uniform(batch_size=2, rng=5); ndd.random.uniform(batch_size=2, seed=1); ndd.random.RNG(1)()
ndd.random.RNG(7)(); str(ndd.random.RNG(5).state); ndd.random.RNG("a"); ndd.random.uniform().shape
ndd.random.uniform(batch_size=3).shape; ndd.random.uniform(ndd.zeros(shape=(2, 3))).shape
ndd.random.uniform(range=(0, 1), shape=(3,)).shape; ndd.random.RNG(1).seed; ndd.random.choice(5, batch_size=3).dtype
ndd.random.choice([1, 2, 3], batch_size=3).shape; ndd.random.coin_flip().dtype
ndd.batch_permutation(batch_size=4).shape; ndd.batch_permutation(batch_size=4).dtype; ndd.noise.gaussian(P).shape
ndd.decoders.image(np.zeros(4, np.uint8)); ndd.decoders.image(1); ndd.imread("/nonexistent.jpg"); ndd.split
ndd.arithmetic; ndd.io.file.read(np.frombuffer(b"/dev/null/x", np.uint8)); ndd.external_source; ndd.python_function
ndd.constant; ndd.shapes; ndd.capture.invariant(3); ndd.readers.File(file_rot="x")
next(iter(ndd.readers.File(file_root="/nonexistent").next_epoch(4)))
[type(ndd.nonsilent_region(x)).__name__ for x in (F[0], ndd.as_batch([F[0]]))]
[type(x).__name__ for x in ndd.nonsilent_region(ndd.as_batch([F[0]]))]
type(ndd.segmentation.random_mask_pixel(T)).__name__; type(ndd.bb_flip(F)).__name__
type(ndd.segmentation.random_object_bbox(T)).__name__
type(ndd.random_bbox_crop(ndd.as_tensor(np.float32([[0, 0, 1, 1]])))).__name__
type(ndd.random_crop_generator(ndd.as_tensor(np.int64([4, 5])))).__name__
type(ndd.roi_random_crop(crop_shape=(2, 2), roi_start=(0, 0), roi_shape=(3, 3))).__name__
type(ndd.resize(P, size=3, save_attrs=True)).__name__
np.float64(0.1) * T; np.float32(2) ** F; a - T; (a == T).all(); (np.array([1, 2, 3]) - T).max(); a < T + 1; np.add(T, 1)
np.sqrt(T); np.maximum(T, 3); np.add.reduce(T); np.sum(T); np.abs(F); np.stack([T, T]); np.allclose(T, a)
np.stack(np.divmod(a, T + 1)); np.add(a, T, out=np.zeros_like(a)); np.testing.assert_array_equal(a, T)
""".strip().replace("\n", "; ")

# Deliberate differences, and faults of DALI.
DIFFERS = {
    "ndd.as_tensor(np.zeros((4, 4))[::2, ::2])": "DALI refuses strided arrays; here they are copied",
    "ndd.Batch(B)": "DALI refuses a batch of a batch; as_batch takes one",
    "bool(ndd.tensor(0))": "DALI calls each tensor true",
    "ndd.squeeze(ndd.as_tensor(a[None]), axes=0)": "DALI takes an axis of 0 for none",
}


def told(value):
    """Describes a value in a form common to both modules."""
    kind = type(value).__name__
    if kind in ("Tensor", "Batch"):
        value.evaluate()  # before this, DALI has no layout for slices
    if kind == "Tensor":
        return kind, str(value.dtype), value.layout, value.shape, np.asarray(value)
    if kind == "Batch":
        arrays = [np.asarray(t) for t in value.tensors]
        return kind, str(value.dtype), value.layout, value.shape, *arrays
    return (value if isinstance(value, (int, float, str, bool, list, tuple, type(None), np.ndarray)) else repr(value),)


def outcome(expression, ndd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return told(eval(expression, names(ndd)))
        except (Exception, StopIteration) as e:
            return e


def agree(x, y):
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if x.dtype.kind == "f":
            return x.shape == y.shape and np.allclose(x, y, rtol=2e-6, atol=1e-6, equal_nan=True)
        return np.array_equal(x, y)
    return x == y


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS.split(";") if e.strip()])
def test_expressions(expression):
    have, want = outcome(expression, ours), outcome(expression, theirs)
    if isinstance(want, Exception) or isinstance(have, Exception):
        same = isinstance(want, Exception) and isinstance(have, Exception)
    else:
        same = len(have) == len(want) and all(agree(x, y) for x, y in zip(have, want))
    if expression in DIFFERS:
        assert not same, f"{expression} agrees by now"
        pytest.skip(DIFFERS[expression])
    assert same, f"{expression}: {have!r}, DALI {want!r}"


# Operators ------------------------------------------------------------------------------------------------------------

# One operator of each family and kind of argument. All operators are compared in pipelines.
OPERATORS = (
    *("resize", "crop_mirror_normalize", "brightness_contrast", "color_twist", "rotate", "warp_affine", "slice", "pad"),
    *(
        "normalize",
        "gaussian_blur",
        "reductions.mean",
        "coord_transform",
        "erase",
        "flip",
        "transpose",
        "cast",
        "reshape",
    ),
    *("one_hot", "lookup_table", "transforms.rotation", "transforms.crop", "bb_flip", "paste", "laplacian", "filter"),
)


# Cases in which DALI's imperative mode differs from its own pipelines.
OWN_WAY = {
    "rotate": "size=(9.5,20.4)",  # halves are rounded down if the size is data, as it always is in this mode
    "reshape": "src_dims=[2,0,1],rel_shape=[-1,2,1]",  # its pipelines agree with ours
}


@pytest.mark.parametrize(
    "expression",
    [
        *("T[5]", "T[0][7]", "T[0, 0, 0]", "T == None", "T + None", "ndd.as_batch(ndd.tensor(3))"),
        *("ndd.as_batch([a, a[0]])", "ndd.resize(P, size=[2, 2], batch_size=3)"),
    ],
)
def test_classes_of_errors(expression):
    want = outcome(expression, theirs)
    kind = next(c for c in type(want).__mro__ if c.__module__ == "builtins")
    assert issubclass(kind, Exception) and isinstance(outcome(expression, ours), kind)


def run_ndd(ndd, name, test, case):
    """The outputs as an oracle.Result."""
    samples, extra, columns = test.data(case)
    convert = oracle.dali_value if ndd is theirs else lambda v: v
    try:
        kwargs = {k: convert(v) for k, v in case.kwargs.items()}
        for k, values in columns.items():
            per_frame = isinstance(case.kwargs[k], Column) and case.kwargs[k].per_frame
            kwargs[k] = ndd.as_batch(values, layout="F" + "N" * (values[0].ndim - 1) if per_frame else None)
        x = ndd.as_batch([s for s in samples], layout=case.layout or None)
        function = ndd
        for part in name.split("."):
            function = getattr(function, part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(x, *(ndd.as_batch(e) for e in extra), **kwargs)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        for o in outs:
            o.evaluate()
        return oracle.Result([[np.asarray(t) for t in o.tensors] for o in outs], [o.layout or "" for o in outs])
    except Exception as e:
        return oracle.Result(error=f"{type(e).__name__}: {e}")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    """The same outputs as DALI's function, except for known faults that DALI's pipelines also have."""
    compared = 0
    for test in DECLARED[name]:
        steps = test.steps if test.dali_steps is None else test.dali_steps
        for case in test.cases[:: max(1, len(test.cases) // 6)]:
            if any(part in case.id for part in [*test.dali_differs, OWN_WAY.get(name, "?")]):
                continue
            want = run_ndd(theirs, name, test, case)
            if want.error:
                continue  # rejected cases are listed by the comparison of pipelines
            wrong = oracle.compare(
                want, run_ndd(ours, name, test, case), Bound(steps, max(test.ulps, 4), test.atol), report.Tally(name)
            )
            assert not wrong, f"{case.id}: {wrong}"
            compared += 1
    assert compared, "DALI refuses all cases"


# Readers --------------------------------------------------------------------------------------------------------------

SETTINGS = (
    {},
    {"pad_last_batch": True},
    {"shard_id": 0, "num_shards": 2},
    {"shard_id": 1, "num_shards": 2},
    {"shard_id": 0, "num_shards": 2, "pad_last_batch": True},
    {"shard_id": 1, "num_shards": 2, "stick_to_shard": True},
    {"shard_id": 2, "num_shards": 3, "stick_to_shard": True, "pad_last_batch": True},
)


@pytest.mark.parametrize("batch_size", [3, 7, 10, None])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_epochs_of_readers(settings, batch_size, tmp_path: Path):
    files = []
    for i in range(7):
        files.append(str(tmp_path / f"{i}.bin"))
        Path(files[-1]).write_bytes(bytes([i]))

    def epochs(ndd):
        reader = ndd.readers.File(files=files, **settings)
        found = []
        for _ in range(4):
            steps = reader.next_epoch(batch_size) if batch_size else reader.next_epoch()
            found.append([np.asarray(ndd.as_tensor(data)).ravel().tolist() for data, _ in steps])
        return found, reader.get_metadata()

    assert epochs(ours) == epochs(theirs)
