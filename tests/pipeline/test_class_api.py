# SPDX-License-Identifier: Apache-2.0
"""Operators as classes, subclasses of Pipeline, old names: warnings, their lines, and how often they are given."""

import inspect
import warnings

import numpy as np
import pytest

from penstock import fn, ops, pipeline_def, types
from penstock.pipeline import Pipeline


class Style(Pipeline):
    """`define` takes the pipeline itself and returns the outputs."""

    def __init__(self, define, **operators):
        super().__init__(batch_size=2, num_threads=1, device_id=0)
        self.define = define
        for name, op in operators.items():
            setattr(self, name, op)

    def define_graph(self):
        return self.define(self)


def source(value=1):
    return ops.ExternalSource(source=lambda i: np.full((2, 4, 5, 3), value, "u1"), layout="HWC")


def test_arguments_of_the_call_go_over_those_of_the_constructor():
    scale = ops.Brightness(brightness=2.0)
    pipe = Style(lambda p: (p.scale(p.x()), p.scale(p.x(), brightness=5.0)), x=source(10), scale=scale)
    assert [int(o.at(0)[0, 0, 0]) for o in pipe.run()] == [20, 50]


def test_per_sample_arguments_and_lists_of_inputs():
    draw, scale = ops.random.Uniform(values=[2.0]), ops.Brightness()

    def define(p):
        a, b = p.scale([p.x(), p.y()], brightness=p.draw())
        return a, b

    pipe = Style(define, x=source(10), y=source(20), scale=scale, draw=draw)
    assert [int(o.at(0)[0, 0, 0]) for o in pipe.run()] == [20, 40]


@pytest.mark.parametrize("in_constructor", [False, True])
def test_the_readers_name(tmp_path, in_constructor):
    (tmp_path / "a.bin").write_bytes(b"1")
    name = {"name": "Reader"}
    reader = ops.readers.File(files=[str(tmp_path / "a.bin")], **(name if in_constructor else {}))
    pipe = Style(lambda p: p.reader(**({} if in_constructor else name)), reader=reader)
    pipe.build()
    assert (
        pipe.epoch_size()["Reader"] == pipe.epoch_size("Reader") == 1 and pipe.reader_meta("Reader")["epoch_size"] == 1
    )


def lines(caught):
    return [(w.filename, w.lineno, str(w.message)) for w in caught if w.category is DeprecationWarning]


def test_old_names_and_arguments_warn_once_where_they_stand():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        here = inspect.currentframe().f_lineno
        old = ops.Uniform(range=(0.0, 1.0))
        crop = ops.CropMirrorNormalize(output_dtype=types.FLOAT, crop=(2, 2))
        pipe = Style(lambda p: (p.old(), p.crop(p.x())), old=old, crop=crop, x=source())
        pipe.build()
    assert lines(caught) == [
        (__file__, here + 1, "ops.Uniform is deprecated; it is now ops.random.Uniform"),
        (__file__, here + 2, "fn.crop_mirror_normalize: argument 'output_dtype' is deprecated: use `dtype`"),
    ]
    assert [o.dtype for o in pipe.run()] == [types.FLOAT, types.FLOAT]


def test_old_names_of_functions_warn_where_they_stand():
    @pipeline_def(batch_size=1, num_threads=1)
    def define():
        x = fn.uniform(range=(0.0, 1.0))
        images = fn.external_source(source=lambda i: np.ones((1, 4, 4, 3), "u1"), layout="HWC")
        return x, fn.crop_mirror_normalize(images, output_dtype=types.FLOAT)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        define()
    first = define.__wrapped__.__code__.co_firstlineno
    assert lines(caught) == [
        (__file__, first + 2, "fn.uniform is deprecated; it is now fn.random.uniform"),
        (__file__, first + 4, "fn.crop_mirror_normalize: argument 'output_dtype' is deprecated: use `dtype`"),
    ]


def test_wrong_names_of_operators_suggest_the_nearest():
    with pytest.raises(AttributeError, match="has no attribute 'reszie'. Did you mean 'resize'?"):
        fn.reszie  # noqa: B018
    with pytest.raises(AttributeError, match="Did you mean 'RandomResizedCrop'?"):
        ops.RandomResizeCrop  # noqa: B018
    with pytest.raises(AttributeError, match="Did you mean 'image'?"):
        fn.decoders.imag  # noqa: B018


def test_wrong_arguments_of_classes_are_told_in_the_constructor():
    with pytest.raises(TypeError, match="unexpected argument 'sise'. Did you mean 'size'"):
        ops.Resize(sise=3)


def test_what_an_operator_tells_of_itself():
    op = ops.Resize(size=(3, 4), device="cpu")
    assert op.device == "cpu" and op.preserve is False
    assert repr(op) == "ops.Resize(size=(3, 4), device='cpu')"


def test_a_seed_where_no_random_numbers_are_drawn():
    """It was once an argument of every operator, and programs pass it to all."""
    with pytest.deprecated_call(match="fn.transpose draws no random numbers"):
        turn = ops.Transpose(perm=[1, 0], seed=3)

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        x = types.Constant(np.array([[1, 2]]))
        with pytest.deprecated_call(match="fn.cast draws no random numbers: its 'seed' has no effect"):
            y = fn.cast(x, dtype=types.FLOAT, seed=5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the class has said it already
            return turn(x), y

    turned, same = pipe().run()
    assert turned.at(0).tolist() == [[1], [2]] and same.at(0).tolist() == [[1, 2]]
