# SPDX-License-Identifier: Apache-2.0
"""Operators have DALI's names, arguments, types, defaults and flags (reference/operators.json), as fn and as ops."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock import types
from penstock.core.op import REGISTRY, Arg, Layout, PerFrame, PerSample

REFERENCE = json.loads((Path(__file__).parent / "reference" / "operators.json").read_text())

# Deliberate differences of defaults: (operator or *, argument): reason. Everything else must agree.
DEFAULTS = {
    ("*", "bytes_per_sample_hint"): "has no effect; memory comes from a pool",
    ("contrast", "contrast_center"): "if not given it is the middle of the input type's range, as in DALI's code",
    ("brightness_contrast", "contrast_center"): "the same",
    ("noise.shot", "factor"): "if not given it is 12, as in DALI's code",
}
# Arguments that are data in DALI, but only constants in penstock: reason.
CONSTANT = {
    ("readers.numpy", "*"): "readers have no inputs yet",
    ("decoders.video", "pad_mode"): "no operator makes strings; DALI takes none from external_source either",
    ("experimental.readers.video", "pad_mode"): "the same",
}
# Arguments that DALI does not have: (operator or *, argument): purpose.
ADDED = {
    ("constant", "value"): "what types.Constant passes: an array of any type",
    ("_conditional.split", "*"): "conditionals are made of operators of our own",
    ("_conditional.merge", "*"): "the same",
    ("_conditional.logical", "*"): "the same",
    ("external_source", "*"): "DALI adds them in Python, outside of the schema",
    ("*", "max_pixels"): "a limit that stops decompression bombs before memory is taken",
    ("decoders.image", "dct_scaling"): "opt-in, as it changes pixels: decodes a JPEG smaller when it is shrunk anyway",
    ("*", "shuffle_after_epoch"): "every reader has the same orders",
    ("*", "shuffle_after_epoch_seed"): "the same",
    ("*", "shuffle"): "an exact shuffle of the whole data set without a buffer",
    ("*", "weights"): "sampling by weights, which PyTorch's users know as WeightedRandomSampler",
    ("*", "num_samples"): "the same",
    ("*", "replacement"): "the same",
    ("*", "batch_by_length"): "batches of similar length, which every loader for speech has",
    ("*", "num_buckets"): "the same",
    ("*", "shuffle_window"): "shuffling of data sets that can only be read in blocks, such as Parquet files",
    ("*", "name"): "every call takes it; sources keep it",
    ("decoders.video", "image_type"): "readers of videos have it, and are made of this operator",
    ("decoders.video", "clip_pos"): "samplers of frames, which decord's and torchcodec's users have",
    ("decoders.video", "uniform_sample"): "the same",
    ("decoders.video", "key_frames"): "the same",
    ("*", "rule"): "opt-in: the pixels of Pillow and PyTorch, for models that were trained with torchvision",
    ("audio_resample", "antialias"): "opt-in, as it changes samples: no aliases where the rate is lowered",
}
NOT_ON_GPU_YET = {
    "experimental.readers.fits",
    "readers.numpy",
    "audio_resample",
    "mel_filter_bank",
    "mfcc",
    "nonsilent_region",
    "preemphasis_filter",
    "spectrogram",
    "to_decibels",
}

_TYPES = {
    "FLOAT": (float, False),
    "_FLOAT_VEC": (float, True),
    "INT32": (int, False),
    "UINT32": (int, False),
    "INT64": (int, False),
    "_INT32_VEC": (int, True),
    "_INT64_VEC": (int, True),
    "BOOL": (bool, False),
    "STRING": (str, False),
    "_STRING_VEC": (str, True),
    "TENSOR_LAYOUT": (Layout, False),
    "DATA_TYPE": (types.DALIDataType, False),
    "_DATA_TYPE_VEC": (types.DALIDataType, True),
    "IMAGE_TYPE": (types.DALIImageType, False),
    "INTERP_TYPE": (types.DALIInterpType, False),
}


def snake(name: str) -> str:
    name = name.replace("BBox", "Bbox")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def name_of(schema: str) -> str:
    *modules, cls = schema.split("__")
    return ".".join([*modules, snake(cls)])


# The existing operators among DALI's.
HERE = [s for s in REFERENCE if name_of(s) in REGISTRY]


def found(root, dotted: str):
    for part in dotted.split("."):
        root = getattr(root, part)
    return root


def listed(table, operator: str, argument: str) -> bool:
    return any(k in table for k in ((operator, argument), ("*", argument), (operator, "*")))


def value(v):
    """A default in a comparable form: enumerations as numbers, arrays and tuples as lists."""
    if isinstance(v, np.ndarray):
        return v.tolist()
    if isinstance(v, (list, tuple)):
        return [value(i) for i in v]
    return int(v) if isinstance(v, int) and not isinstance(v, bool) else v


def same(ours, theirs) -> bool:
    ours = value(ours)
    if isinstance(theirs, list) and not isinstance(ours, list):
        ours = [ours]
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return abs(ours - theirs) <= 1e-6 * max(1, abs(theirs))
    return ours == theirs


def argument_differences(operator: str, arg: Arg, theirs: dict) -> list[str]:
    wrong = []
    deprecated = theirs.get("deprecated")
    if deprecated:
        if not arg.deprecated and not arg.hidden:
            wrong.append(f"is deprecated in DALI ({deprecated})")
        return wrong
    kind, vector = _TYPES[theirs["type"]]
    if arg.type is not object and (arg.type, arg.vector) != (kind, vector):
        wrong.append(f"has type {arg.type.__name__}{' list' * arg.vector}, DALI {theirs['type']}")
    if arg.required != theirs.get("required", False):
        wrong.append(f"required is {arg.required}")
    if not arg.required and not same(arg.default, theirs.get("default")) and not listed(DEFAULTS, operator, arg.name):
        wrong.append(f"has the default {arg.default!r}, DALI {theirs.get('default')!r}")
    per = {"sample": PerSample, "frame": PerFrame}.get(theirs.get("per"), Arg)
    if type(arg) is not per and not listed(CONSTANT, operator, arg.name):
        wrong.append(f"is {type(arg).__name__}, DALI's would be {per.__name__}")
    return wrong


@pytest.mark.parametrize("schema", HERE)
def test_schema(schema):
    theirs, name = REFERENCE[schema], name_of(schema)
    cls = REGISTRY[name]
    wrong = []
    # An operator may support more devices and layouts than DALI's.
    missing = set(theirs["devices"]) - set(cls.devices) - ({"gpu"} if name in NOT_ON_GPU_YET else set())
    if missing:
        wrong.append(f"devices {cls.devices}, DALI's are {theirs['devices']}")
    if list(cls.inputs) != theirs["inputs"]:
        wrong.append(f"takes {cls.inputs} inputs, DALI's {theirs['inputs']}")
    if cls.layouts and (not theirs["layouts"] or set(theirs["layouts"]) - set(cls.layouts)):
        wrong.append(f"layouts {sorted(cls.layouts)}, DALI's {sorted(theirs['layouts'])}")
    for argument, about in theirs["arguments"].items():
        if argument not in cls.schema:
            wrong.append(f"argument '{argument}' is missing")
        else:
            wrong += [f"argument '{argument}' {w}" for w in argument_differences(name, cls.schema[argument], about)]
    for argument in cls.schema:
        if argument not in theirs["arguments"] and not listed(ADDED, name, argument):
            wrong.append(f"argument '{argument}' is unknown to DALI; list it in ADDED with what it is for")
    assert not wrong, f"fn.{name}:\n  " + "\n  ".join(wrong)


@pytest.mark.parametrize("schema", HERE)
def test_names(schema):
    """The operator and its deprecated names, in fn and in ops."""
    for spelled in (schema, *REFERENCE[schema]["aliases"]):
        path, cls = spelled.split("__")[:-1], spelled.split("__")[-1]
        for root, last in ((penstock.fn, snake(cls)), (penstock.ops, cls)):
            place = ".".join([*path, last])
            assert found(root, place)._operator is REGISTRY[name_of(schema)], f"{root.__name__}.{place}"


def test_an_old_name_keeps_its_defaults():
    """fast_resize_crop_mirror did not antialias."""
    x = np.random.default_rng(0).integers(0, 256, (1, 40, 40, 3), "u1")

    def run(operator, **kwargs):
        @penstock.pipeline_def(batch_size=1, num_threads=1)
        def pipe():
            return operator(types.Constant(x[0], layout="HWC"), resize_x=7, resize_y=7, crop=(5, 5), **kwargs)

        return pipe().run()[0].at(0)

    with pytest.deprecated_call():
        old = run(penstock.fn.fast_resize_crop_mirror)
    assert (old == run(penstock.fn.resize_crop_mirror, antialias=False)).all()
    assert (old != run(penstock.fn.resize_crop_mirror)).any()
    with pytest.deprecated_call():
        assert (run(penstock.ops.FastResizeCropMirror()) == old).all()
        assert (run(penstock.fn.fast_resize_crop_mirror, antialias=True) != old).any()


def test_every_argument_says_what_it_is():
    silent = [f"{n}.{a}" for n, cls in REGISTRY.items() for a, arg in cls.schema.items() if len(arg.doc) < 10]
    assert not silent


def test_differences_are_still_differences():
    """Entries above that are no longer needed have to be removed."""
    for (operator, argument), _ in DEFAULTS.items():
        schemas = [s for s in REFERENCE if operator in ("*", name_of(s)) and argument in REFERENCE[s]["arguments"]]
        stale = all(
            same(REGISTRY[name_of(s)].schema[argument].default, REFERENCE[s]["arguments"][argument].get("default"))
            for s in schemas
            if name_of(s) in REGISTRY and argument in REGISTRY[name_of(s)].schema
        )
        assert not stale, (operator, argument)
    for operator, argument in ADDED:
        if operator != "*" and argument != "*" and operator in REGISTRY:
            assert argument in REGISTRY[operator].schema, (operator, argument)
