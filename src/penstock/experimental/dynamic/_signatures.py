# SPDX-License-Identifier: Apache-2.0
"""Signatures and docstrings of the imperative functions. Imported on demand: help(), stubs, documentation."""

from __future__ import annotations

import inspect
import textwrap

from ...core.op import Arg, Operator
from ...registry import signatures

# DALI's names of inputs other than "input".
_INPUTS = {
    "bbox_rotate": "bboxes labels",
    "expand_dims": "data",
    "filter": "data filter fill_value",
    "full": "fill_value",
    "full_like": "data_like fill_value",
    "ones_like": "data_like",
    "random_bbox_crop": "boxes labels",
    "reinterpret": "data shape_input",
    "reshape": "data shape_input",
    "slice": "data anchor shape_input",
    "squeeze": "data",
    "warp_affine": "data mtx",
    "zeros_like": "data_like",
    "decoders.image_slice": "data anchor shape_input",
    "decoders.numpy": "data",
    "decoders.video": "encoded",
    "experimental.remap": "input mapx mapy",
    "experimental.warp_perspective": "input matrix_input",
    "io.file.read": "filepaths",
    "random.beta": "shape_like",
    "random.choice": "a shape_like",
    "random.coin_flip": "shape_like",
    "random.normal": "shape_like",
    "random.uniform": "shape_like",
    "reductions.std_dev": "data mean",
    "reductions.variance": "data mean",
    "segmentation.select_masks": "mask_ids polygons vertices",
}
_MANY = 9  # inputs; more are "*inputs"
_NOT_HERE = ("seed", "name", "preserve", "bytes_per_sample_hint")
CALL = {
    "batch_size": "Size of the batch to make; tensors are repeated. By default that of the batches given.",
    "device": 'Device to run on: "cpu", "gpu" or a `Device`. By default that of the inputs.',
    "rng": "Random number generator. By default this thread's.",
}


def input_names(cls: type[Operator], place: str = "") -> list[tuple[str, bool]]:
    """Names of the inputs in the module `place`, and whether each is required. "*inputs" stands for any number of
    further ones."""
    lo, hi = cls.inputs
    if hi > _MANY:
        return [*((f"input_{i}", True) for i in range(lo)), ("*inputs", False)]
    given = None if place == "experimental.decoders" else _INPUTS.get(cls.fn_name)
    names = given.split() if given else [n for n, _ in signatures.input_names(cls)]
    return [(n, i < lo) for i, n in enumerate(names[:hi])]


def arguments(cls: type[Operator]) -> list[Arg]:
    """The arguments of an operator's imperative function."""
    return [a for a in signatures.arguments(cls) if a.name not in _NOT_HERE]


def of_function(cls: type[Operator], place: str = "") -> inspect.Signature:
    empty, keyword = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    out = []
    for name, needed in input_names(cls, place):
        if name.startswith("*"):
            out.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
        else:
            out.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, default=empty if needed else None))
    out += [inspect.Parameter(n, keyword, default=None) for n in ("batch_size", "device")]
    out += [inspect.Parameter(a.name, keyword, default=empty if a.required else None) for a in arguments(cls)]
    if "seed" in cls.schema:
        out.append(inspect.Parameter("rng", keyword, default=None))
    return inspect.Signature(out)


def of_reader(cls: type[Operator]) -> inspect.Signature:
    either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    first = {"max_batch_size": None, "name": None, "device": "cpu", "num_inputs": None}
    out = [inspect.Parameter(n, either, default=d) for n, d in first.items()]
    args = [*arguments(cls), *([cls.schema["seed"]] if "seed" in cls.schema else [])]
    empty = inspect.Parameter.empty
    out += [inspect.Parameter(a.name, keyword, default=empty if a.required else None) for a in args]
    out.append(inspect.Parameter("enable_checkpointing", keyword, default=False))
    out += [inspect.Parameter(n, keyword, default=None) for n in ("storage_options", "cache", "cache_bytes")]
    out.append(inspect.Parameter("_backend", keyword, default=None))
    return inspect.Signature(out)


def docstring(cls: type[Operator]) -> str:
    """The operator's text with the table of its arguments."""
    lines = [inspect.cleandoc(cls.__doc__ or "").partition(">>>")[0].rstrip(), "", "Parameters", "----------"]
    layouts = f" with the layout {', '.join(cls.layouts)}" if cls.layouts else ""
    for i, (name, needed) in enumerate(input_names(cls)):
        lines += [f"{name} : Tensor or Batch{'' if needed else ', optional'}"]
        lines += [f"    Or an array or number{layouts if i == 0 else ''}."]
    for arg in arguments(cls):
        default = (
            "" if arg.required else ", optional" if arg.default is None else f", default {signatures.default_text(arg)}"
        )
        kind = signatures.type_text(arg).removesuffix(" | None").replace("DataNode", "Tensor | Batch")
        lines.append(f"{arg.name} : {kind}{default}")
        lines += textwrap.wrap(signatures.remark(arg), 100, initial_indent="    ", subsequent_indent="    ")
    for name, text in CALL.items():
        if name != "rng" or "seed" in cls.schema:
            lines += [f"{name} : optional", f"    {text}"]
    return "\n".join(lines) + "\n"
