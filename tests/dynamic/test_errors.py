# SPDX-License-Identifier: Apache-2.0
"""Error messages use the names of this mode, such as `ndd.cast`, not those of pipelines."""

import re

import numpy as np
import pytest

from penstock.core.op import REGISTRY, Arg
from penstock.core.source import Source
from penstock.experimental import dynamic as ndd
from penstock.experimental.dynamic._errors import in_names_here

IMAGE = np.zeros((4, 5, 3), "u1")


def told(call, *args, **kwargs):
    """The text of an error without source lines; "" if there is no error."""
    try:
        outputs = call(*args, **kwargs)
        for out in outputs if isinstance(outputs, (tuple, list)) else (outputs,):
            out.evaluate() if hasattr(out, "evaluate") else next(iter(out.next_epoch()))
    except (TypeError, ValueError, RuntimeError) as e:
        return "\n".join(x for x in str(e).split("\n") if not x.startswith("  "))
    return ""


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: ndd.resize(IMAGE, size="large"), r"ndd\.resize: argument 'size' takes"),
        (lambda: ndd.resize(IMAGE, sise=[3, 4]), r"^resize\(\) got an unexpected argument 'sise'. Did you mean 'size'"),
        (lambda: ndd.brightness(IMAGE, brightness=[1, 2]), r"ndd\.brightness: argument 'brightness' takes a number"),
        (lambda: ndd.random.uniform(range=[2, 1]), r"ndd\.random\.uniform: range takes low < high"),
        (lambda: ndd.transforms.shear(np.eye(2, 3, dtype="f4")), r"ndd\.transforms\.shear: give either"),
        (lambda: ndd.transforms.crop(np.eye(2, 3)), r"got float64; ndd\.cast it"),
        (lambda: ndd.readers.File(file_rot="."), r"ndd\.readers\.File\(\) got an unexpected argument 'file_rot'"),
        (lambda: ndd.brightness("photograph.jpg"), r"brightness\(\): input 0: a tensor is made of"),
    ],
)
def test_names_are_those_called(call, text):
    assert re.search(text, told(call))


def test_names_in_texts():
    assert (
        in_names_here("fn.cast it, or fn.readers.file; fn.none_such")
        == "ndd.cast it, or ndd.readers.File; fn.none_such"
    )
    assert in_names_here("  fn.cast(x)") == "  fn.cast(x)"  # a source line


def _wrong(arg: Arg):
    return object() if arg.type is not str else 3.5


def calls():
    """The operators of this mode, and their functions."""
    for name, cls in sorted(REGISTRY.items()):
        place = ndd
        for part in name.split(".")[:-1]:
            place = getattr(place, part, None)
        found = getattr(place, cls.__name__ if issubclass(cls, Source) else name.split(".")[-1], None)
        if found is not None:
            yield pytest.param(cls, found, id=name)


@pytest.mark.parametrize("cls, call", list(calls()))
def test_no_error_names_the_operator_of_a_pipeline(cls, call):
    inputs = (IMAGE,) * cls.inputs[0]
    texts = [told(call, *inputs, **{k: _wrong(a)}) for k, a in cls.schema.items() if not a.hidden and k != "name"]
    texts += [told(call, *inputs, none_such=[1, 2]), told(call, *(np.zeros((1,) * 7, "f2"),) * cls.inputs[0])]
    assert any(texts)
    assert not [t for t in texts if re.search(r"\bfn\.", t)]
