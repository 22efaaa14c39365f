# SPDX-License-Identifier: Apache-2.0
"""Serialised pipelines: deserialised ones give the same results, and untrusted data executes no code."""

import json
import pickle
import random
import sys

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, types
from penstock.plugin.triton import autoserialize, invoke_autoserialize


def numbers(i):
    return np.full((4, 2), i, "i4")


def doubled(a):
    return a * 2


@pipeline_def(batch_size=4, num_threads=1, seed=11, enable_conditionals=True)
def everything(files):
    """Readers, windows, random numbers, data as arguments, constants, branches, subscripts."""
    contents, labels = fn.readers.file(files=files, shuffle="global", name="reader")
    noise = fn.random.uniform(range=[0.5, 1.5])
    fed = fn.external_source(name="fed", dtype=types.UINT8, ndim=3, layout="HWC")
    if noise > 1:
        image = fn.brightness(fed, brightness=noise)
    else:
        image = fn.flip(fed, horizontal=fn.random.coin_flip())
    image = fn.crop(fn.resize(image, size=[20, 24], interp_type=types.INTERP_CUBIC), crop=[10, 10])
    table = types.Constant(np.arange(6, dtype=np.float64).reshape(2, 3)) * 2.5
    return image[1:, ..., ::-1], labels, contents, table, np.int8(3), -noise, fn.crop(fed, crop=[noise * 0 + 2, 3.0])


@pytest.fixture
def files(tmp_path):
    for i in range(9):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]) * (i + 1))
    return [str(tmp_path / f"{i}.bin") for i in range(9)]


def batches(pipe, n=4, **inputs):
    return [[t.at(i).copy() for t in pipe.run(**inputs) for i in range(len(t))] for _ in range(n)]


def assert_same(got, want):
    for a, b in zip(got, want):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype


FED = np.random.default_rng(2).integers(0, 255, (4, 30, 40, 3), np.uint8)


def test_the_same_batches(files, tmp_path):
    want = batches(everything(files), fed=FED)
    text = everything(files).serialize(filename=tmp_path / "pipe.json")
    assert (tmp_path / "pipe.json").read_bytes() == text and json.loads(text)["penstock pipeline"] == 1
    for pipe in (
        Pipeline.deserialize(text),
        Pipeline.deserialize(text.decode()),
        Pipeline.deserialize(filename=tmp_path / "pipe.json"),
        Pipeline.deserialize(text, num_threads=3, prefetch_queue_depth=1),
        Pipeline.deserialize(Pipeline.deserialize(text).serialize()),
        pickle.loads(pickle.dumps(everything(files))),
    ):
        assert_same(batches(pipe, fed=FED), want)
    pipe = Pipeline(1)
    pipe.deserialize_and_build(text)
    assert_same(batches(pipe, fed=FED), want)
    assert set(pipe.reader_meta()) == {"reader"}


def test_both_devices():
    @pipeline_def(batch_size=4, num_threads=1, seed=3, device_id=0)
    def pipe():
        fed = fn.external_source(name="fed", layout="HWC")
        image = fn.flip(fed.gpu(), horizontal=fn.random.coin_flip())
        return image, fn.permute_batch(image, indices=[3, 1, 1, 0]).cpu(), fn.crop(image, crop=[9, 9]).cpu() + 1

    again = Pipeline.deserialize(pipe().serialize())
    for got, want in zip(again.run(fed=FED), pipe().run(fed=FED)):
        assert type(got) is type(want)
        for i in range(4):
            np.testing.assert_array_equal(got.as_cpu().at(i), want.as_cpu().at(i))


def test_arguments_come_back(files):
    pipe = everything(files, prefetch_queue_depth=5, on_error="skip", max_errors=0.1, output_ndim=[3, 1, 1, 2, 0, 0, 3])
    again = Pipeline.deserialize(pipe.serialize())
    assert (again.prefetch_queue_depth, again._settings.policy.on_error, again.seed) == (5, "skip", 11)
    assert again.output_ndim() == [3, 1, 1, 2, 0, 0, 3] and again.max_batch_size == 4
    assert Pipeline.deserialize(pipe.serialize(), batch_size=2, seed=5).seed == 5
    typed = everything(files, output_dtype=[types.UINT8] + [None] * 6)
    assert Pipeline.deserialize(typed.serialize()).output_dtype()[0] == types.UINT8


def test_checkpoints_fit_it(files):
    pipe = everything(files, enable_checkpointing=True)
    batches(pipe, 2, fed=FED)
    again = Pipeline.deserialize(pipe.serialize(), checkpoint=pipe.checkpoint())
    assert_same(batches(again, 2, fed=FED), batches(pipe, 2, fed=FED))


def test_definition_given_later():
    pipe = Pipeline(2, 1, None, seed=1)
    text = pipe.serialize(define_graph=lambda: fn.random.uniform())
    assert len(Pipeline.deserialize(text).run()[0]) == 2
    with pytest.raises(RuntimeError, match="has a definition already"):
        pipe.serialize(define_graph=numbers)


# Functions of the user's ---------------------------------------------------------------------------------------------


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def with_functions(source=numbers, function=doubled):
    return fn.python_function(fn.external_source(source=source), function=function)


def test_functions_are_named_only():
    text = with_functions().serialize()
    name = f"{__name__}:doubled"
    assert name in text.decode()
    with pytest.raises(ValueError, match=f"calls functions of its author: {name}, {__name__}:numbers"):
        Pipeline.deserialize(text)
    with pytest.raises(ValueError, match=f"its author: {__name__}:numbers"):
        Pipeline.deserialize(text, functions={name: doubled})
    given = {name: lambda a: a * 5, f"{__name__}:numbers": numbers}
    batch = Pipeline.deserialize(text, functions=given)
    batch.run()
    assert batch.run()[0].at(0).tolist() == [5, 5]
    assert_same(batches(Pipeline.deserialize(text, import_functions=True)), batches(with_functions()))


def test_embedded_functions(monkeypatch):
    text = with_functions().serialize(embed_functions=True, pickler=pickle)
    unpickled = []
    monkeypatch.setattr(pickle, "loads", lambda *a: unpickled.append(a))
    with pytest.raises(ValueError, match="or unpickle=True"):
        Pipeline.deserialize(text)
    assert not unpickled
    monkeypatch.undo()
    assert_same(batches(Pipeline.deserialize(text, unpickle=True)), batches(with_functions()))


def test_pickling_takes_functions_that_can_be_pickled():
    assert_same(batches(pickle.loads(pickle.dumps(with_functions()))), batches(with_functions()))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(with_functions(source=lambda i: numbers(i)))


def test_what_has_no_name_or_form():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.external_source(source=numbers, dtype=object())

    with pytest.raises((TypeError, ValueError)):
        pipe().serialize()


# What a stranger wrote -----------------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize(
    "text, message",
    [
        (pickle.dumps(Evil()), "not a serialised pipeline"),
        (b"", "not a serialised pipeline"),
        ("[]", "JSON, but not a serialised pipeline"),
        ('{"penstock pipeline": 7, "version": "9"}', "in format 7 by penstock 9"),
        ('{"penstock pipeline": 1, "arguments": {}}', "damaged: 'nodes' is None"),
        (5, "not a serialised pipeline"),
    ],
)
def test_what_is_none(text, message):
    with pytest.raises(ValueError, match=message):
        Pipeline.deserialize(text)


def test_exactly_one_of_text_and_file():
    for args in ((), (b"{}", "file")):
        with pytest.raises(ValueError, match="either serialized_pipeline or filename"):
            Pipeline.deserialize(*args)


def test_nothing_is_executed(files, monkeypatch):
    """No module is imported and no value unpickled, whatever names the text has."""
    content = json.loads(with_functions().serialize())
    content["nodes"][0]["arguments"]["source"] = {"function": "this:s"}
    content["pickled"] = {"this:s": "gASV"}
    monkeypatch.setattr(pickle, "loads", lambda *a: pytest.fail("unpickled"))
    monkeypatch.setattr("importlib.import_module", lambda *a: pytest.fail("imported"))
    with pytest.raises(ValueError, match="functions of its author"):
        Pipeline.deserialize(json.dumps(content))
    assert "this" not in sys.modules
    content = json.loads(everything(files).serialize())
    content["arguments"]["py_callback_pickler"] = "os"
    with pytest.raises(ValueError, match="unknown arguments: py_callback_pickler"):
        Pipeline.deserialize(json.dumps(content))


def test_damaged_texts_are_errors_that_say_so(files):
    """Damaged texts are errors or still pipelines."""
    original = everything(files).serialize().decode()
    r = random.Random(1)
    for _ in range(150):
        content = json.loads(original)
        place, key = content, None
        while isinstance(place, (dict, list)) and place:
            parent, key = place, r.choice(list(place) if isinstance(place, dict) else range(len(place)))
            place = place[key]
            if r.random() < 0.2:
                break
        parent[key] = r.choice(
            [None, -1, 10**6, "x", [], {}, [[0, 0]], 1.5, {"node": [0, 0]}, {"function": "os:system"}]
        )
        try:
            Pipeline.deserialize(json.dumps(content))
        except (ValueError, TypeError):
            pass


# Triton ---------------------------------------------------------------------------------------------------------------


@autoserialize
@pipeline_def(batch_size=2, num_threads=1)
def model():
    return fn.flip(fn.external_source(name="x", layout="HWC"))


def test_autoserialize(tmp_path):
    invoke_autoserialize(sys.modules[__name__], tmp_path / "model.json")
    pipe = Pipeline.deserialize(filename=tmp_path / "model.json")
    x = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    np.testing.assert_array_equal(pipe.run(x=x)[0].as_array(), x[:, :, ::-1])
    with pytest.raises(TypeError, match="above @pipeline_def"):
        autoserialize(numbers)
    with pytest.raises(RuntimeError, match="0 pipelines marked"):
        invoke_autoserialize(json, tmp_path / "none")
