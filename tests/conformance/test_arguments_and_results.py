# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of operators in general: kinds of results, numbers of values, constants, aliases. The same
program runs in both libraries."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")


IMAGES = [(np.arange(24 * (i + 1)).reshape(4, 2 * (i + 1), 3) % 251).astype("u1") for i in range(3)]
FRAMES = [np.arange(24, dtype="u1").reshape(2, 2, 2, 3)] * 3


def given(m, samples, **kwargs):
    return m.fn.external_source(source=lambda i: samples, **kwargs)


def images(m):
    return given(m, IMAGES, layout="HWC")


def frames(m):
    return given(m, FRAMES, layout="FHWC")


def numbers(m, *values, dtype="i4"):
    return given(m, [np.array(v, dtype) for v in values])


def floats(m, *values):
    return numbers(m, *values, dtype="f4")


def boxes(m):
    return floats(m, *[[[0.1, 0.1, 0.5, 0.5]]] * 3)


def result(m, define, **kwargs):
    """Values, type and layout per output; for an error, its type."""
    try:
        pipe = m.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)(**kwargs)
        pipe.build()
        runs = [pipe.run() for _ in range(2)]
    except (RuntimeError, ValueError, TypeError, IndexError) as e:
        return "RuntimeError" if isinstance(e, RuntimeError) else type(e).__name__
    return [([np.asarray(o.at(i)).tolist() for i in range(3)], o.dtype.name, o.layout()) for run in runs for o in run]


# Results of calls ----------------------------------------------------------------------------------------------------

CALLS = {
    "reader": lambda m: m.fn.readers.file(files=["x.bin"], labels=[0]),
    "class": lambda m: m.ops.readers.File(files=["x.bin"], labels=[0])(),
    "source": lambda m: m.fn.external_source(source=lambda i: ([np.int32(1)] * 3,), num_outputs=1),
    "boxes": lambda m: m.fn.random_bbox_crop(boxes(m), bbox_layout="xyXY"),
    "crops": lambda m: m.fn.random_crop_generator(np.int64([4, 5])),
    "function": lambda m: m.fn.python_function(images(m), function=lambda a: (a, a), num_outputs=2),
    "one": lambda m: m.fn.flip(images(m)),
    "list of one": lambda m: m.fn.flip([images(m)]),
    "list of two": lambda m: m.fn.flip([images(m), images(m)]),
    "lists of several": lambda m: m.fn.random_bbox_crop([boxes(m), boxes(m)], bbox_layout="xyXY"),
}


def kind(made):
    return (
        [kind(d) for d in made] if isinstance(made, list) else "data" if hasattr(made, "gpu") else type(made).__name__
    )


@pytest.mark.parametrize("call", CALLS)
def test_kinds_of_results(theirs, call):
    import penstock

    kinds = []
    for m in (theirs, penstock):

        def define(m=m):
            kinds.append(kind(CALLS[call](m)))
            return m.types.Constant(1)

        m.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)()
    assert kinds[0] == kinds[1] and kinds[0]


RETURNED = {
    "one": lambda m: m.types.Constant(1),
    "tuple": lambda m: (m.types.Constant(1), 2),
    "array": lambda m: np.arange(3),
    "numbers": lambda m: [1, 2],
    "tuple with numbers": lambda m: (1, [2, 3]),
    "nested": lambda m: (m.types.Constant(1), [m.types.Constant(1)]),
}


@pytest.mark.parametrize("returned", RETURNED)
def test_what_definitions_return(theirs, returned):
    import penstock

    assert result(penstock, lambda: RETURNED[returned](penstock)) == result(theirs, lambda: RETURNED[returned](theirs))


# Numbers of values ----------------------------------------------------------------------------------------------------

AXES = ([0], [1, 0], [1])
VALUES = {
    "slice, axes": lambda m: m.fn.slice(images(m), start=[1], end=[2], axes=numbers(m, *AXES)),
    "slice, start": lambda m: m.fn.slice(
        images(m), start=numbers(m, [1], [0, 1], [1]), end=numbers(m, [2], [2, 2], [4]), axes=numbers(m, *AXES)
    ),
    "slice, rel_start": lambda m: m.fn.slice(
        images(m),
        rel_start=floats(m, [0.5], [0, 0.5], [0.25]),
        shape=numbers(m, [1], [1, 1], [2]),
        axes=numbers(m, *AXES),
    ),
    "slice, rel_end": lambda m: m.fn.slice(
        images(m), rel_end=floats(m, [0.5], [1, 0.5], [0.25]), axes=numbers(m, *AXES)
    ),
    "slice, rel_shape": lambda m: m.fn.slice(
        images(m),
        start=numbers(m, [1], [0, 1], [1]),
        rel_shape=floats(m, [0.5], [1, 0.25], [0.5]),
        axes=numbers(m, *AXES),
    ),
    "slice, negative": lambda m: m.fn.slice(images(m), start=[0], end=[1], axes=numbers(m, [-1], [-3, -1], [0, 1, 2])),
    "slice, axis twice": lambda m: m.fn.slice(images(m), start=[0], end=[1], axes=numbers(m, [0], [1, 1], [0])),
    "slice, no such axis": lambda m: m.fn.slice(images(m), start=[0], end=[1], axes=numbers(m, [0], [1, 3], [0])),
    "slice, too few": lambda m: m.fn.slice(
        images(m), start=numbers(m, [0], [0, 0], [0]), end=numbers(m, [1], [1, 1, 1], [1]), axes=numbers(m, *AXES)
    ),
    "pad, shape": lambda m: m.fn.pad(images(m), axes=numbers(m, *AXES), shape=numbers(m, [5], [8, 6], [6])),
    "pad, align": lambda m: m.fn.pad(images(m), axes=numbers(m, *AXES), align=numbers(m, [5], [4, 3], [4])),
    "pad, one for all": lambda m: m.fn.pad(images(m), axes=numbers(m, *AXES), align=[5]),
    "pad, no axes in a sample": lambda m: m.fn.pad(images(m), axes=numbers(m, [-1], [], [0]), align=[4]),
    "pad, largest": lambda m: m.fn.pad(images(m), axes=numbers(m, *AXES)),
    "slice, one of two": lambda m: m.fn.slice(images(m), shape=numbers(m, [1], [2, 2], [1])),
    "slice, one of two axes": lambda m: m.fn.slice(
        images(m), start=numbers(m, [0], [1, 0], [1]), shape=numbers(m, [1], [1, 2], [1]), axes=[0, 1]
    ),
    "pad, one of two": lambda m: m.fn.pad(images(m), axis_names="WH", shape=numbers(m, [9], [9, 9], [8])),
    "pad, two of three": lambda m: m.fn.pad(images(m), shape=numbers(m, [9, 9, 4], [9, 9], [9, 9, 5])),
    "crop": lambda m: m.fn.crop(images(m), crop=floats(m, [2, 2], [1, 2], [1, 1])),
    "one for all frames": lambda m: m.fn.brightness(
        frames(m), brightness=m.fn.per_frame(floats(m, [2], [3, 1], [1.5]))
    ),
    "one angle for all frames": lambda m: m.fn.rotate(frames(m), angle=m.fn.per_frame(floats(m, [90], [0], [180]))),
    "too many for the frames": lambda m: m.fn.brightness(
        frames(m), brightness=m.fn.per_frame(floats(m, [1, 2, 3], [1], [1]))
    ),
}


@pytest.mark.parametrize("program", VALUES)
def test_numbers_of_values(theirs, program):
    import penstock

    assert result(penstock, lambda: VALUES[program](penstock)) == result(theirs, lambda: VALUES[program](theirs))


def test_numbers_of_values_change_from_batch_to_batch(theirs):
    import penstock

    rng = np.random.default_rng(5)
    axes = [[rng.permutation(3)[: rng.integers(1, 4)].astype("i4") for _ in range(3)] for _ in range(6)]
    axes[2] = axes[4] = [np.int32([1])] * 3

    def of(m):
        def define():
            at = m.fn.external_source(source=lambda i: axes[i % 6])
            end = m.fn.external_source(source=lambda i: [np.ones(len(a), "i4") for a in axes[i % 6]])
            return m.fn.slice(images(m), start=[0], end=end, axes=at), m.fn.pad(images(m), axes=at, align=[4])

        pipe = m.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)()
        pipe.build()
        return [[[np.asarray(o.at(i)).tolist() for i in range(3)] for o in pipe.run()] for _ in axes]

    assert of(penstock) == of(theirs)


# Constants, aliases, names ------------------------------------------------------------------------------------------

OUTSIDE = {
    "array": lambda m: m.fn.cast(np.arange(3), dtype=m.types.FLOAT),
    "number": lambda m: m.fn.cast(3, dtype=m.types.FLOAT),
    "list": lambda m: m.fn.cast([1, 2], dtype=m.types.FLOAT),
    "two": lambda m: m.fn.cat(np.arange(3), np.arange(2)),
    "shape": lambda m: m.fn.reshape(np.arange(6), shape=[2, 3]),
    "class": lambda m: m.ops.Cast(dtype=m.types.FLOAT)(np.arange(3)),
}


@pytest.mark.parametrize("program", OUTSIDE)
def test_constants_of_operators_outside_of_a_definition(theirs, program):
    import penstock

    def of(m):
        node = OUTSIDE[program](m)
        return result(m, lambda: node)

    assert of(penstock) == of(theirs) != "RuntimeError"


NAMES = {
    **{
        f"filter, {border!r}": lambda m, border=border: m.fn.experimental.filter(
            images(m), np.float32([[1, 2, 1], [0, 1, 0], [1, 0, 1]]), border=border
        )
        for border in (
            "101",
            "1001",
            "reflect_101",
            "reflect_1001",
            "reflect101",
            "Reflect1001",
            "clamp",
            "CLAMP",
            "wrap",
            "edge",
            "pad",
        )
    },
    **{
        f"crop, {policy!r}": lambda m, policy=policy: m.fn.crop(images(m), crop=[5, 3], out_of_bounds_policy=policy)
        for policy in ("PAD", "fill", "1001", "101", "reflect1001", "REFLECT101", "trim_to_shape", "error", "trim")
    },
    "erase, both names of axes": lambda m: m.fn.erase(
        images(m), anchor=[0.0, 0.0], shape=[1.0, 2.0], axes=[0, 1], axis_names="WH"
    ),
}


@pytest.mark.parametrize("program", NAMES)
def test_names(theirs, program):
    import penstock

    want = result(theirs, lambda: NAMES[program](theirs))
    ours = result(penstock, lambda: NAMES[program](penstock))
    assert ours == want or (isinstance(ours, str) and isinstance(want, str))  # ours are raised earlier


FORMER = {
    "crop_mirror_normalize": {},
    "crop": {"crop": [2, 2]},
    "rotate": {"angle": 30.0},
    "warp_affine": {"matrix": [1.0, 0, 0, 0, 1, 0]},
}


@pytest.mark.parametrize("operator", FORMER)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_former_and_new_name_at_once(theirs, operator):
    import penstock

    for m in (theirs, penstock):

        def define(m=m):
            return getattr(m.fn, operator)(
                images(m), dtype=m.types.FLOAT, output_dtype=m.types.FLOAT, **FORMER[operator]
            )

        with pytest.raises(
            TypeError, match="got an unexpected 'output_dtype' deprecated argument when 'dtype' was already provided"
        ):
            m.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)()


def test_conditionals_asked_for_at_the_call(theirs):
    import penstock

    def of(m, by_decorator, by_call):
        def define():
            x = numbers(m, 1, 2, 3)
            if x > 1:
                x = x + 10
            return x

        try:
            pipe = m.pipeline_def(
                define, batch_size=3, num_threads=1, device_id=None, enable_conditionals=by_decorator
            )(**({} if by_call is None else {"enable_conditionals": by_call}))
            pipe.build()
            return [int(np.asarray(pipe.run()[0].at(i))) for i in range(3)]
        except TypeError:
            return "TypeError"

    for by_decorator in (False, True):
        for by_call in (None, False, True):
            assert of(penstock, by_decorator, by_call) == of(theirs, by_decorator, by_call)


# Sizes and remainders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["resize_shorter", "resize_longer"])
def test_sizes_that_end_in_a_half(theirs, side):
    import penstock

    shapes = [(64, 41), (41, 64), (37, 53), (100, 99), (41, 41)]
    wanted = [48.5, 20.5, 7.5, 62.5, 100.5, 3.5, 40.5]

    def sizes(m):
        pictures = given(m, [np.zeros((*s, 1), "u1") for s in shapes], layout="HWC", batch=True)
        return tuple(m.fn.resize(pictures, **{side: n}, interp_type=m.types.INTERP_NN) for n in wanted)

    def of(m):
        pipe = m.pipeline_def(lambda: sizes(m), batch_size=len(shapes), num_threads=1, device_id=None)()
        pipe.build()
        return [[tuple(np.asarray(o.at(i)).shape) for i in range(len(shapes))] for o in pipe.run()]

    assert of(penstock) == of(theirs)


REMAINDERS = {
    "of numbers": lambda m: numbers(m, 3, 4, -5) % numbers(m, 2, 3, 3),
    "by a zero": lambda m: numbers(m, 3, 4, 5) % numbers(m, 2, 0, 3),
    "by the constant zero": lambda m: numbers(m, 3, 4, 5) % 0,
    "of a constant by a zero": lambda m: 7 % numbers(m, 2, 0, 3),
    "of floats by zero": lambda m: floats(m, 3, 4, 5) % numbers(m, 2, 2, 3),
}


@pytest.mark.parametrize("program", REMAINDERS)
def test_remainders(theirs, program):
    import penstock

    def of(m):
        found = result(m, lambda: REMAINDERS[program](m))
        return "error" if isinstance(found, str) else found

    assert of(penstock) == of(theirs)


# Signals --------------------------------------------------------------------------------------------------------------

SIGNALS = {
    "windows that do not divide 8192": lambda m: tuple(
        m.fn.nonsilent_region(numbers(m, *[range(40)] * 3), window_length=5)
    ),
    "of floats": lambda m: tuple(m.fn.nonsilent_region(floats(m, *[range(40)] * 3), window_length=5)),
    "an interval that is no multiple": lambda m: tuple(
        m.fn.nonsilent_region(numbers(m, *[range(40)] * 3, dtype="i2"), window_length=5, reset_interval=8)
    ),
    "an interval of no sample": lambda m: tuple(
        m.fn.nonsilent_region(numbers(m, *[range(40)] * 3), window_length=5, reset_interval=0)
    ),
    # 35 - 0.3 * 105 is 3.5 in float and less in double.
    "halves of emphasized integers": lambda m: m.fn.preemphasis_filter(
        numbers(m, *[[27, 35, 14, 25]] * 3, dtype="u1"), preemph_coeff=0.3, dtype=m.types.UINT8
    ),
    "a first integer of many digits": lambda m: m.fn.preemphasis_filter(
        numbers(m, *[[2**30 + 1, 5]] * 3), border="zero", dtype=m.types.INT32
    ),
    "nothing is positive": lambda m: m.fn.to_decibels(floats(m, [-5, -7], [0, 0], [-1, 4])),
    "a reference of zero": lambda m: m.fn.to_decibels(floats(m, [1], [2], [3]), reference=0.0),
}


@pytest.mark.parametrize("program", SIGNALS)
def test_signals(theirs, program):
    import penstock

    ours = [result(m, lambda m=m: SIGNALS[program](m)) for m in (penstock, theirs)]
    if isinstance(ours[1], str):
        assert isinstance(ours[0], str)
    else:
        for (a, *kind), (b, *other) in zip(*ours):
            assert kind == other
            np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-6 if kind[0].startswith("FLOAT") else 0)
