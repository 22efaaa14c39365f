# SPDX-License-Identifier: Apache-2.0
"""Ways to define a pipeline, and errors with the user's file, line and source text."""

import inspect
import re

import numpy as np
import pytest

import penstock
from penstock import fn, ops, pipeline_def, types
from penstock.pipeline import Pipeline
from penstock.tensors import TensorListCPU


def values(outputs):
    return [out.as_array().tolist() for out in outputs]


def images(n=2):
    return fn.external_source(source=lambda i: np.full((n, 4, 5, 3), i, "u1"), layout="HWC")


def test_decorator_with_and_without_parentheses():
    @pipeline_def
    def bare():
        return types.Constant(1)

    @pipeline_def()
    def empty():
        return types.Constant(2)

    @pipeline_def(batch_size=3)
    def given():
        return types.Constant(3)

    assert values(bare(batch_size=2).run()) == [[1, 1]]
    assert values(empty(batch_size=2).run()) == [[2, 2]]
    assert values(given().run()) == [[3, 3, 3]]
    assert values(pipeline_def(lambda: types.Constant(4), batch_size=1)().run()) == [[4]]
    assert isinstance(given(), Pipeline) and given.__name__ == "given"


def test_arguments_of_the_call_override_those_of_the_decorator():
    @pipeline_def(batch_size=2, num_threads=3, device_id=0, seed=5, prefetch_queue_depth=4)
    def pipe():
        return types.Constant(1)

    a, b = pipe(), pipe(batch_size=5, num_threads=1, device_id=None, seed=7)
    assert [a.max_batch_size, a.num_threads, a.device_id, a.seed, a.prefetch_queue_depth] == [2, 3, 0, 5, 4]
    assert [b.max_batch_size, b.num_threads, b.device_id, b.seed, b.prefetch_queue_depth] == [5, 1, None, 7, 4]


def test_arguments_of_the_function():
    @pipeline_def(batch_size=1)
    def pipe(a, b=2, *rest, c=3, **more):
        return tuple(types.Constant(v) for v in (a, b, *rest, c, *more.values()))

    assert values(pipe(1).run()) == [[1], [2], [3]]
    assert values(pipe(5, 6, 7, c=8, d=9, num_threads=1).run()) == [[5], [6], [7], [8], [9]]


def test_an_argument_that_function_and_pipeline_have():
    """Is passed to both. For the pipeline, a value given to the decorator takes precedence, as in DALI."""

    @pipeline_def
    def both(batch_size):
        return types.Constant(batch_size)

    @pipeline_def(batch_size=2, seed=11)
    def fixed(seed):
        return types.Constant(seed)

    assert values(both(batch_size=3).run()) == [[3, 3, 3]]
    pipe = fixed(seed=5)
    assert values(pipe.run()) == [[5, 5]] and pipe.seed == 11


def test_enable_conditionals_is_accepted():
    @pipeline_def(batch_size=1, enable_conditionals=True)
    def pipe(flag):
        if flag:
            return types.Constant(1)
        return types.Constant(2)

    assert values(pipe(True).run()) == [[1]] and values(pipe(False).run()) == [[2]]


def test_unknown_arguments_with_a_suggestion():
    @pipeline_def(batch_size=1)
    def pipe(width=3):
        return types.Constant(width)

    for call, text in (
        (lambda: pipe(witdh=3), r"pipe\(\) got an unexpected argument 'witdh'. Did you mean 'width'"),
        (lambda: pipe(batchsize=3), "Did you mean 'batch_size'"),
        (lambda: pipeline_def(batch_sise=3)(lambda: 1), "@pipeline_def .* 'batch_sise'. Did you mean 'batch_size'"),
        (lambda: pipeline_def(3), "decorates a function; got int"),
        (lambda: pipeline_def(pipeline_def(len)), "len is a pipeline definition already"),
        (lambda: Pipeline(batch_sise=3), r"Pipeline\(\) .* 'batch_sise'. Did you mean 'batch_size'"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"batch_size": 0}, "batch_size takes a positive integer; got 0"),
        ({"batch_size": 2.5}, "batch_size .* got 2.5"),
        ({"batch_size": True}, "batch_size .* got True"),
        ({"num_threads": 0}, "num_threads takes a positive integer; got 0"),
        ({"prefetch_queue_depth": 0}, "prefetch_queue_depth takes a positive integer; got 0"),
        ({"on_error": "ignore"}, "on_error takes 'raise', 'skip' or 'replace'; got 'ignore'"),
        ({"max_errors": -1}, "max_errors"),
    ],
)
def test_arguments_are_checked(kwargs, text):
    with pytest.raises(ValueError, match=text):
        Pipeline(**{"batch_size": 1, **kwargs})


def test_the_constructor_has_the_arguments_of_dali():
    want = (
        "batch_size num_threads device_id seed exec_pipelined prefetch_queue_depth exec_async bytes_per_sample "
        "set_affinity "
        "max_streams default_cuda_stream_priority enable_memory_stats enable_checkpointing checkpoint py_num_workers "
        "py_start_method py_callback_pickler output_dtype output_ndim output_layout exec_dynamic "
        "experimental_exec_dynamic "
        "stream_policy concurrency"
    ).split()
    assert list(inspect.signature(Pipeline).parameters)[: len(want)] == want


def test_positional_arguments_of_the_constructor():
    pipe = Pipeline(2, 3, 0, 17)
    assert [pipe.batch_size, pipe.num_threads, pipe.device_id, pipe.seed] == [2, 3, 0, 17]


def test_sub_class_with_define_graph():
    class Doubled(Pipeline):
        def __init__(self, batch_size, value):
            super().__init__(batch_size, num_threads=1, device_id=0, seed=1)
            self.value = value
            self.double = ops.Brightness(brightness=2.0)
            self.input = ops.ExternalSource(source=lambda i: np.full((2, 2, 2, 3), value, "u1"), layout="HWC")

        def define_graph(self):
            x = self.input(name="input")
            return self.double(x), x

    for pipe in (Doubled(2, 21), Doubled(2, 21)):
        a, b = pipe.run()
        assert (a.as_array() == 42).all() and (b.as_array() == 21).all()


def test_sub_class_without_define_graph():
    class Empty(Pipeline):
        pass

    with pytest.raises(NotImplementedError, match="define_graph"):
        Empty(2).build()


def test_with_and_set_outputs():
    pipe = Pipeline(batch_size=2)
    with pipe as inside:
        assert inside is pipe and Pipeline.current() is pipe
        x = images()
        pipe.set_outputs(x, fn.brightness(x, brightness=0.5))
    assert Pipeline.current() is None
    pipe.build()
    pipe.build()
    assert len(pipe.run()) == 2
    with pytest.raises(RuntimeError, match="built"):
        pipe.set_outputs(x)
    with pytest.raises(RuntimeError, match="built"), pipe:
        pass


def test_pipelines_defined_inside_each_other():
    outer, inner = Pipeline(batch_size=1), Pipeline(batch_size=2)
    with outer:
        a = types.Constant(1)
        with inner:
            inner.set_outputs(types.Constant(2))
        outer.set_outputs(a, types.Constant(3))
    assert values(outer.run()) == [[1], [3]] and values(inner.run()) == [[2, 2]]


def test_an_error_in_the_definition_leaves_no_pipeline_open():
    @pipeline_def(batch_size=1)
    def wrong():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wrong()
    assert Pipeline.current() is None


def test_constants_as_outputs():
    @pipeline_def(batch_size=2)
    def pipe():
        return 1, 2.5, True, np.array([[1, 2]]), [3, 4], np.float64(2), np.uint8([7])

    out = pipe().run()
    assert values(out) == [[1, 1], [2.5, 2.5], [True, True], [[[1, 2]]] * 2, [[3, 4]] * 2, [2, 2], [[7]] * 2]
    kinds = [types.INT32, types.FLOAT, types.BOOL, types.INT32, types.INT32, types.FLOAT, types.UINT8]
    assert [o.dtype for o in out] == kinds


def test_the_same_node_may_be_several_outputs():
    @pipeline_def(batch_size=2)
    def pipe():
        x = images()
        return x, x, fn.brightness(x)

    a, b, _ = pipe().run()
    assert (a.as_array() == b.as_array()).all()


def test_several_outputs_of_one_operator():
    @pipeline_def(batch_size=2)
    def pipe():
        a, b = fn.external_source(source=lambda i: (np.int32([1, 2]), np.int32([3, 4])), num_outputs=2)
        return b, a

    assert values(pipe().run()) == [[3, 4], [1, 2]]


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda: (images(), [images()]), TypeError, r"output 1 .*got a list with DataNodes in it. Unpack it"),
        (lambda: ((images(), images()), 1), TypeError, r"output 0 .*got a tuple with DataNodes"),
        (lambda: None, TypeError, r"output 0 .*must be a DataNode or a constant; got NoneType"),
        (lambda: "text", TypeError, "got str"),
        (lambda: (), ValueError, "has no outputs"),
    ],
)
def test_wrong_outputs_name_the_definition(result, error, text):
    pipe = pipeline_def(result, batch_size=2)()
    with pytest.raises(error, match=text) as caught:
        pipe.build()
    assert f'File "{__file__}", line' in str(caught.value)


def test_no_batch_size():
    with pytest.raises(ValueError, match="needs a batch_size"):
        pipeline_def(lambda: 1)().build()


def test_batches_outside_of_a_pipeline():
    batch = TensorListCPU(np.zeros((1, 2, 2, 3), np.uint8))
    with pytest.raises(RuntimeError, match=r"fn.brightness: .* only while a pipeline .* penstock.experimental.dynamic"):
        fn.brightness(batch)


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_errors_of_calls_show_the_users_line():
    lines = {}

    @pipeline_def(batch_size=2)
    def unknown():
        lines["unknown"] = here() + 1
        return fn.brightness(images(), brightnes=2)

    @pipeline_def(batch_size=2)
    def wrong_type():
        lines["wrong_type"] = here() + 1
        return fn.brightness(images(), brightness="much")

    @pipeline_def(batch_size=2)
    def no_input():
        lines["no_input"] = here() + 1
        return fn.brightness()

    for make, error, text, source in (
        (unknown, TypeError, "unexpected argument 'brightnes'. Did you mean 'brightness'", "brightnes=2"),
        (wrong_type, TypeError, "'brightness' takes a number", 'brightness="much"'),
        (no_input, ValueError, "takes 1 input, 0 given", "return fn.brightness()"),
    ):
        with pytest.raises(error, match=text) as caught:
            make()
        message = str(caught.value)
        assert f'File "{__file__}", line {lines[make.__name__]}' in message and source in message
        assert "penstock/" not in re.sub(r'File "[^"]*tests[^"]*"', "", message).replace("`penstock.", "")


def test_errors_while_running_show_the_users_line():
    lines = {}

    @pipeline_def(batch_size=2)
    def pipe():
        x = fn.external_source(source=lambda i: np.zeros((2, 4), "f4"), layout="X")
        lines["pipe"] = here() + 1
        return fn.brightness(x, brightness=2)

    with pytest.raises(RuntimeError) as caught:
        pipe().run()
    message = str(caught.value)
    assert "Error in CPU operator `penstock.fn.brightness`" in message and "fn.brightness(x, brightness=2)" in message
    assert f'File "{__file__}", line {lines["pipe"]}' in message


def test_names_have_to_differ():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.brightness(images(), name="a"), fn.brightness(images(), name="a")

    with pytest.raises(ValueError, match="the name 'a' is taken by another operator"):
        pipe()


def test_a_pipeline_on_the_gpu_needs_a_device_id():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.brightness(images().gpu())

    for kind in (ValueError, RuntimeError):  # in DALI it is a RuntimeError
        with pytest.raises(kind, match="has operators on the GPU and no device_id.*device_id=0"):
            pipe().build()


@pytest.mark.parametrize("device_id", ["0", 1.5, [0]])
def test_a_device_id_is_an_integer(device_id):
    with pytest.raises(TypeError, match="device_id takes the number of a GPU, or None for none; got "):
        Pipeline(batch_size=1, num_threads=1, device_id=device_id)


def test_other_devices():
    with pytest.raises(ValueError, match="device='tpu' can't be used: it takes 'cpu' or 'gpu'"):
        pipeline_def(lambda: fn.brightness(images(), device="tpu"), batch_size=1)()


def test_data_nodes_say_what_they_are():
    with Pipeline(batch_size=1):
        x = images()
        assert x.cpu() is x and "external_source" in repr(x)
        assert x.gpu().device == "gpu" and x.gpu() is x.gpu() and x.gpu().cpu().device == "cpu"
        with pytest.raises(TypeError, match="no truth value"):
            bool(x)
        with pytest.raises(TypeError, match="can't be unpacked"):
            _a, _b = x


def test_device_id_without_a_gpu():
    for device_id in (0, 3, None):
        pipe = pipeline_def(lambda: types.Constant(1), batch_size=1, device_id=device_id)()
        assert values(pipe.run()) == [[1]] and pipe.device_id == device_id


def test_what_is_asked_of_outputs():
    def pipe(**kwargs):
        return pipeline_def(images, batch_size=2, **kwargs)()

    pipe(output_dtype=types.UINT8, output_ndim=3, output_layout="HWC").run()
    assert pipe(output_dtype=[types.UINT8]).output_dtype() == [types.UINT8]
    assert pipe(output_ndim=3).output_ndim() == [3] and pipe().output_ndim() == [None]
    for kwargs, text in (
        ({"output_dtype": types.FLOAT}, "output 0 has dtype .*UINT8, but output_dtype asks for .*FLOAT"),
        ({"output_ndim": [2]}, "output 0 has ndim 3, but output_ndim asks for 2"),
        ({"output_layout": "CHW"}, "output 0 has layout HWC, but output_layout asks for CHW"),
    ):
        with pytest.raises(penstock.PipelineError, match=text):
            pipe(**kwargs).run()


def test_add_sink_keeps_a_branch():
    seen = []
    pipe = Pipeline(batch_size=2)
    with pipe:
        kept = fn.external_source(source=lambda i: seen.append(i) or np.zeros((2, 1), "f4"))
        pipe.add_sink(kept)
        pipe.set_outputs(images())
    assert len(pipe.run()) == 1 and seen


def test_graph_as_dot(tmp_path):
    pipe = pipeline_def(lambda: fn.brightness(images(), name="bright"), batch_size=2)()
    pipe.save_graph_to_dot_file(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert "bright" in text and text.count("->") == 1


def test_repr():
    pipe = pipeline_def(images, batch_size=2, num_threads=1, seed=3)()
    assert repr(pipe) == "<Pipeline batch_size=2 num_threads=1 device_id=None seed=3: not built>"
    pipe.build()
    assert "not built" not in repr(pipe)
