# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX inside of pipelines."""

import threading

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from penstock import fn, pipeline_def  # noqa: E402
from penstock.pipeline import PipelineError  # noqa: E402
from penstock.plugin import jax as dax  # noqa: E402
from penstock.plugin.jax.fn import jax_function  # noqa: E402

PICTURES = np.arange(2 * 3 * 4 * 3, dtype="u1").reshape(2, 3, 4, 3)


def outputs(define, batch_size=2, **kwargs):
    return pipeline_def(define, batch_size=batch_size, num_threads=1, **kwargs)().run()


def pictures(dtype="u1"):
    return fn.external_source(source=lambda i: PICTURES.astype(dtype) + i, layout="HWC")


def test_is_found_where_dali_has_it():
    assert dax.fn.jax_function is jax_function


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: jax.jit(jax.vmap(lambda x: f(x[None])[0]))])
def test_plain_compiled_and_mapped(transform):
    flip = jax_function(transform(lambda images: images[:, :, ::-1, :]))
    image, flipped = outputs(lambda: (lambda x: (x, flip(x)))(pictures()))
    assert (flipped.as_array() == PICTURES[:, :, ::-1]).all() and flipped.layout() == "HWC"
    assert (image.as_array() == PICTURES).all()
    assert flipped.dtype == image.dtype


def test_several_outputs_and_layouts():
    def parts(images):
        return images.astype("f4").mean((1, 2)), images[..., 0], images

    kept = outputs(lambda: jax_function(parts, num_outputs=3)(pictures()))
    assert [x.layout() for x in kept] == ["", "", ""]
    named = outputs(lambda: jax_function(parts, num_outputs=3, output_layouts=("C", "HW", "HWC"))(pictures()))
    assert [x.layout() for x in named] == ["C", "HW", "HWC"]
    np.testing.assert_allclose(named[0].as_array(), PICTURES.mean((1, 2)), rtol=1e-6)
    assert (named[1].as_array() == PICTURES[..., 0]).all()
    one = jax_function(lambda a, b: (a + b, a - b), num_outputs=2, output_layouts="HWC")
    total, difference = outputs(lambda: one(pictures("i4"), pictures("i4")))
    assert total.layout() == difference.layout() == "HWC"
    assert (total.as_array() == 2 * PICTURES.astype("i4")).all() and not difference.as_array().any()


def test_between_other_operators():
    @jax_function
    @jax.jit
    def posterize(images):
        return images // 64 * 64

    (x,) = outputs(lambda: fn.flip(posterize(fn.flip(pictures()))))
    assert (x.as_array() == PICTURES // 64 * 64).all() and x.layout() == "HWC"


def test_without_inputs_and_without_outputs():
    (x,) = outputs(lambda: jax_function(lambda: jnp.ones((2, 3)))())
    assert x.as_array().tolist() == [[1, 1, 1]] * 2
    seen = []
    look = jax_function(lambda x: seen.append(np.asarray(x).copy()), num_outputs=0)

    def define():
        x = pictures()
        assert look(x) is None
        return x

    outputs(define)
    assert (seen[0] == PICTURES).all()
    seen.clear()
    ignored = jax_function(lambda x: seen.append(x), num_outputs=0, preserve=False)

    def define_ignored():
        x = pictures()
        ignored(x)
        return x

    outputs(define_ignored)
    assert not seen


def test_nothing_is_copied():
    given, returned = [], []

    def double(x):
        given.append(x.unsafe_buffer_pointer())
        y = x * 2
        returned.append(y.unsafe_buffer_pointer())
        return y

    def define():
        x = fn.copy(pictures("f4"))  # the user's own memory need not be aligned as JAX wants it
        return x, jax_function(double)(x)

    x, y = outputs(define, prefetch_queue_depth=1)
    assert x.data_ptr() == given[0] and y.data_ptr() == returned[0]
    y.as_array()[...] = 0  # as PyTorch may do with what it is given
    assert (x.as_array() == PICTURES).all()


def test_an_input_handed_through_is_not_given_out_twice():
    x, y = outputs(lambda: (lambda x: (x, jax_function(jax.jit(lambda a: a))(x)))(pictures()))
    assert x.data_ptr() != y.data_ptr()
    y.as_array()[...] = 0
    assert (x.as_array() == PICTURES).all()


def test_result_goes_on_to_an_iterator_of_jax():
    define = pipeline_def(lambda: jax_function(lambda x: x * 2)(pictures()), batch_size=2)
    batches = [next(iterator)["x"] for iterator in [dax.DALIGenericIterator(define(), ["x"])] for _ in range(3)]
    assert all((np.asarray(b) == 2 * (PICTURES + i)).all() for i, b in enumerate(batches))


def test_arrays_may_be_kept():
    kept = []
    pipe = pipeline_def(lambda: jax_function(lambda x: kept.append(x) or x + 1)(pictures()), batch_size=2)()
    for _ in range(5):
        pipe.run()
    pipe.close()
    assert sorted(int(k[0, 0, 0, 0]) for k in kept[:5]) == [0, 1, 2, 3, 4]


def test_calls_do_not_overlap():
    inside = threading.Semaphore(1)

    def careful(x):
        assert inside.acquire(blocking=False)
        threading.Event().wait(0.005)
        inside.release()
        return x + 1

    pipe = pipeline_def(lambda: jax_function(careful)(pictures()), batch_size=2, prefetch_queue_depth=4)()
    assert [int(pipe.run()[0].as_array().min()) for _ in range(12)] == list(range(1, 13))


def test_sharding_of_one_device():
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    sharding = NamedSharding(Mesh(jax.devices()[:1], ("batch",)), PartitionSpec("batch"))
    seen = []
    add = jax_function(lambda x: seen.append(x.sharding) or x + 1, sharding=sharding)
    (x,) = outputs(lambda: add(pictures()))
    assert (x.as_array() == PICTURES + 1).all() and seen[0] == sharding


def ragged():
    return fn.external_source(source=lambda i: [np.zeros((2, 3), "u1"), np.zeros((4, 3), "u1")])


def fails(x):
    raise KeyError("no such colour")


@pytest.mark.parametrize(
    ("define", "error", "text"),
    [
        (lambda: jax_function(lambda x: x)(ragged()), PipelineError, "input 0: a batch whose samples differ in shape"),
        (lambda: jax_function(fails)(pictures()), PipelineError, "the function raised KeyError: 'no such colour'"),
        (
            lambda: jax_function(lambda x: (x, x), num_outputs=3)(pictures()),
            PipelineError,
            "returned 2 arrays, num_outputs is 3",
        ),
        (lambda: jax_function(lambda x: (x, x))(pictures()), PipelineError, "returned 2 arrays, num_outputs is 1"),
        (lambda: jax_function(lambda x: x, num_outputs=2)(pictures()), PipelineError, "a tuple of 2 arrays"),
        (lambda: [x := pictures(), jax_function(lambda x: x, num_outputs=0)(x)][0], PipelineError, "returns nothing"),
        (lambda: jax_function(lambda x: x.sum())(pictures()), PipelineError, "first axis has to be the batch of 2"),
        (lambda: jax_function(lambda x: x[:1])(pictures()), PipelineError, "first axis has to be the batch of 2"),
        (lambda: jax_function(lambda x: x.astype("bfloat16"))(pictures()), PipelineError, "output 0 of the function"),
        (lambda: jax_function(lambda x: x, output_layouts="HW")(pictures()), PipelineError, "layout 'HW' does not fit"),
        (
            lambda: jax_function(lambda x: x, output_layouts=("HWC", "HW"))(pictures()),
            ValueError,
            "one for each of the 1 outputs",
        ),
        (lambda: jax_function(3), TypeError, "decorates a function; got int"),
        (lambda: jax_function(lambda x: x, device="tpu"), ValueError, "'cpu' or 'gpu'; got 'tpu'"),
        (lambda: jax_function(lambda x: x, sharding="batch"), TypeError, "jax.sharding.Sharding"),
        (lambda: jax_function(lambda x: x)(pictures(), device="cpu"), TypeError, "unexpected keyword"),
    ],
)  # fmt: skip
def test_mistakes(define, error, text):
    with pytest.raises(error, match=text):
        outputs(define)
