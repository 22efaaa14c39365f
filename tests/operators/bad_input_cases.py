# SPDX-License-Identifier: Apache-2.0
"""Invalid input for every operator, created from its schema: odd shapes, layouts and types, arguments far out of range,
as constants and as data. As a program, it tries them one by one and prints each result.

    python bad_input_cases.py SHARE BEGIN [gpu]

tries every SHARE-th case, from number BEGIN on; on the GPU, only operators that support it."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import io
import itertools
import os
import resource
import signal
import sys
import warnings
import zlib
from typing import Any, NamedTuple

import numpy as np

from penstock import fn, pipeline_def, types
from penstock.core.op import REGISTRY, Arg, Layout, Operator
from penstock.core.source import Source

# Additional memory that a case may use; the device keeps much of what it has allocated.
MEMORY_BYTES = {"cpu": 1 << 30, "gpu": 8 << 30}
SECONDS = {"cpu": 4, "gpu": 40}  # time limit of a case; the emulated device compiles kernels with the host's compiler
DEVICE_FAILED = 98  # the program's exit status if the device is unusable
SEED = int(os.environ.get("PENSTOCK_SEED", "0"))
MIXED = int(os.environ.get("PENSTOCK_MIXED", "50"))  # number of mixed cases per operator
SETTLED = ("name", "seed", "preserve", "bytes_per_sample_hint", "pattern")
LEFT_OUT = ("_conditional.", "_auto_aug.", "python_function", "dl_tensor_python_function", "constant")
_HUGE = 2**31 - 1
FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e30, -1e30, 1e-30, 3.0)
INTS = (-1, 0, -(2**31), _HUGE, 7)
TEXTS = ("", "bogus", "WH", "XYZ", "HWC", "CC", "ABCDEFGHIJKLMN")
_RNG = np.random.default_rng(0)


class Case(NamedTuple):
    operator: str
    inputs: tuple[tuple[str, str], ...]  # name in DATA and layout
    constants: dict[str, Any]
    data: dict[str, list[np.ndarray]]

    def __str__(self) -> str:
        given = [f"{n}:{layout}" for n, layout in self.inputs]
        given += [f"{k}={v!r}" for k, v in self.constants.items()]
        given += [
            f"{k}=data {[(x.dtype.name, x.shape, x.ravel()[:2].tolist()) for x in v]}" for k, v in self.data.items()
        ]
        return f"{self.operator}({', '.join(given)})"


def _photograph() -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(_RNG.integers(0, 256, (20, 30, 3), "u1")).save(file, "jpeg")
    return np.frombuffer(file.getvalue(), "u1")


def _numbers(shape: tuple[int, ...], dtype: str = "u1") -> np.ndarray:
    return _RNG.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


_WEIRD = np.float32([np.nan, np.inf, -np.inf, 1e30, -1e30, 0, -1, 1])
_SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "image": ((7, 5, 3), (4, 6, 3)),
    "no rows": ((0, 5, 3), (7, 5, 3)),
    "no columns": ((7, 0, 3), (7, 5, 3)),
    "no channels": ((7, 5, 0), (7, 5, 0)),
    "nothing": ((0, 0, 0), (0, 0, 0)),
    "pixel": ((1, 1, 3), (1, 1, 3)),
    "channels": ((7, 5, 70), (7, 5, 70)),
    "different channels": ((7, 5, 3), (7, 5, 1)),
    "scalar": ((), ()),
    "vector": ((4,), (5,)),
    "empty vector": ((0,), (0,)),
    "matrix": ((4, 6), (3, 2)),
    "sequence": ((2, 7, 5, 3), (1, 4, 6, 3)),
    "no frames": ((0, 7, 5, 3), (2, 7, 5, 3)),
    "volumes": ((2, 2, 3, 4, 3), (1, 1, 1, 1, 3)),
    "eight": ((1, 2, 1, 2, 1, 2, 1, 2),) * 2,
    "nine": ((1,) * 9,) * 2,
    "no sample": (),
}
DATA: dict[str, list[np.ndarray]] = {name: [_numbers(s) for s in shapes] for name, shapes in _SHAPES.items()}
DATA |= {
    t: [_numbers((7, 5, 3), t), _numbers((4, 6, 3), t)] for t in ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8")
}
DATA |= {
    "weird": [np.resize(_WEIRD, (7, 5, 3)), np.resize(_WEIRD, (4, 6, 3))],
    "weird vector": [_WEIRD, _WEIRD],
    "boxes": [np.float32([[0, 0, 0.5, 0.5], [0.2, 0.3, 0.9, 1]])] * 2,
    "no boxes": [np.zeros((0, 4), "f4")] * 2,
    "inverted boxes": [np.float32([[0.9, 0.9, 0.1, 0.1]])] * 2,
    "boxes outside": [np.float32([[-5, -5, 5, 5]])] * 2,
    "boxes of nothing": [np.full((3, 4), np.nan, "f4")] * 2,
    "labels": [np.int32([1, 2])] * 2,
    "no labels": [np.zeros(0, "i4")] * 2,
    "more labels": [np.int32([1, 2, 3])] * 2,
    "photograph": [_photograph()] * 2,
    "no photograph": [_photograph()[:40]] * 2,
    "mask": [np.int32([[0, 1], [2, 0]])] * 2,
    "no foreground": [np.zeros((3, 4), "i4")] * 2,
    "mask ids": [np.int32([0, 1])] * 2,
    "polygons": [np.int32([[0, 0, 3], [1, 3, 6]])] * 2,
    "polygons outside": [np.int32([[0, -5, 3], [1, 3, 6000]])] * 2,
    "vertices": [np.ones((6, 2), "f4")] * 2,
    "shape": [np.int32([7, 5, 3]), np.int32([4, 6, 3])],
    "negative": [np.int32([-7, -5])] * 2,
    "huge": [np.int32([_HUGE, _HUGE])] * 2,
    "half": [np.float32([0.1, 0.2])] * 2,
    "window": [np.ones((3, 3), "f4")] * 2,
    "no window": [np.zeros((0, 3), "f4")] * 2,
    "count": [np.int32(3)] * 2,
    "points": [np.float32([[0, 0], [0.5, 1]])] * 2,
    "mosaic": [_numbers((6, 8)), _numbers((4, 6))],
    "mean": [np.float32(50)] * 2,
    "transform": [np.float32([[1, 0, 2], [0, 1, 3]])] * 2,
    "path": [np.frombuffer(b"/no/such/file", "u1")] * 2,
}
# Inputs of operators, unless each is an image.
INPUTS: dict[str, tuple[str, ...]] = {
    "bb_flip": ("boxes",),
    "bbox_rotate": ("boxes", "labels"),
    "box_encoder": ("boxes", "labels"),
    "random_bbox_crop": ("boxes", "labels"),
    "ssd_random_crop": ("image", "boxes", "labels"),
    "decoders.image_slice": ("photograph", "half", "half"),
    "slice": ("image", "half", "half"),
    "filter": ("image", "window"),
    "segmentation.random_mask_pixel": ("mask",),
    "segmentation.random_object_bbox": ("mask",),
    "segmentation.select_masks": ("mask ids", "polygons", "vertices"),
    "reshape": ("image", "shape"),
    "reinterpret": ("image", "shape"),
    "random.choice": ("count",),
    "io.file.read": ("path",),
    "arithmetic": ("image", "image"),
    "bbox_paste": ("boxes",),
    "coord_flip": ("points",),
    "coord_transform": ("points",),
    "debayer": ("mosaic",),
    "element_extract": ("sequence",),
    "full": ("count",),
    "per_frame": ("sequence",),
    "sequence_rearrange": ("sequence",),
    "squeeze": ("pixel",),
    "reductions.std_dev": ("image", "mean"),
    "reductions.variance": ("image", "mean"),
    "transforms.combine": ("transform", "transform"),
}
# Required arguments, by operator or for all.
REQUIRED: dict[str, dict[str, Any]] = {
    "": {"dtype": types.FLOAT, "angle": 30.0, "size": [4, 4], "axes": [0], "indices": [0], "element_map": [0]},
    "box_encoder": {"anchors": [0.0, 0.0, 1.0, 1.0]},
    "bbox_rotate": {"input_shape": [7, 5]},
    "clahe": {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0},
    "color_space_conversion": {"image_type": types.RGB, "output_type": types.YCbCr},
    "get_property": {"key": "layout"},
    "sequence_rearrange": {"new_order": [0]},
    "arithmetic": {"operation": "add"},
    "subscript": {"pattern": "i", "at_0": 0},
    "decoders.image_crop": {"crop": [3, 3]},
    "crop": {"crop": [3, 3]},
    "resize": {"size": [4, 4]},
    "resize_crop_mirror": {"size": [4, 4], "crop": [3, 3]},
    "warp_affine": {"matrix": [1.0, 0.2, 0.0, 0.1, 1.0, 0.0]},
    "gaussian_blur": {"sigma": 1.0},
    "permute_batch": {"indices": [0, 1]},
    "bbox_paste": {"ratio": 2.0},
    "debayer": {"blue_position": [0, 0]},
    "paste": {"ratio": 2.0, "fill_value": [1, 2, 3]},
    "squeeze": {"axes": [0]},
    "reductions.std_dev": {"axes": [0, 1, 2]},
    "reductions.variance": {"axes": [0, 1, 2]},
    "transforms.scale": {"scale": [2.0, 3.0]},
    "transforms.shear": {"shear": [0.1, 0.2]},
    "transforms.translation": {"offset": [1.0, 2.0]},
}


def layout_of(name: str) -> str:
    shapes = _SHAPES.get(name)
    if shapes is None:
        return "HWC" if name in ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "weird") else ""
    return {3: "HWC", 2: "HW", 4: "FHWC", 5: "FDHWC"}.get(len(shapes[0]) if shapes else 3, "")


def odd_values(arg: Arg) -> list[Any]:
    if arg.type is float:
        scalars: tuple = FLOATS
    elif arg.type is int:
        scalars = INTS
    elif arg.type is bool:
        scalars = (False, True)
    elif arg.type in (str, Layout):
        scalars = TEXTS
    elif arg.type is object:
        return []
    else:
        scalars = tuple(arg.type)
    if not arg.vector:
        return list(scalars)
    return [[]] + [[v] * n for v, n in itertools.product(scalars, (1, 2, 3, 9))]


def odd_columns(arg: Arg) -> list[list[np.ndarray]]:
    """Values of an argument as data: those of `odd_values`, and other types and shapes."""
    dtype = arg.column_type
    if arg.type in (str, Layout, object):
        return []
    found = [[np.asarray(v, dtype)] * 2 for v in odd_values(arg)]
    found += [[np.ones(s, dtype)] * 2 for s in ((), (1,), (0,), (2, 2), (1, 1, 1))]
    found += [[np.ones(2, dtype), np.ones(3, dtype)], [np.asarray(1.5, "f8")] * 2, [np.asarray(True)] * 2]
    return found


def cases() -> list[Case]:
    found = []
    for name, cls in sorted(REGISTRY.items()):
        if name.startswith(LEFT_OUT) or issubclass(cls, Source) or not cls.__module__.startswith("penstock."):
            continue
        encoded = "photograph" if name.startswith(("decoders.", "peek")) else "image"
        base = INPUTS.get(name, (encoded,) * cls.inputs[0])
        asked = {k: a for k, a in cls.schema.items() if a.required}
        required = {k: [1] if a.vector else 1 for k, a in asked.items() if a.type in (int, float)}
        required |= {k: v for k, v in REQUIRED[""].items() if k in asked} | REQUIRED.get(name, {})
        usual = tuple((n, layout_of(n)) for n in base)

        def add(inputs=usual, constants=required, data=None, name=name):
            found.append(Case(name, inputs, {k: v for k, v in constants.items() if k not in (data or {})}, data or {}))

        add()
        for i, _ in enumerate(base):
            for other in DATA:
                add((*usual[:i], (other, layout_of(other)), *usual[i + 1 :]))
            for layout in ("", "CHW", "HW", "FHWC", "XYZ", "CWH", "DHWC", "FCHW", "HWCHWCHWC"):
                for other in {base[i], "matrix", "sequence", "f4"}:
                    add((*usual[:i], (other, layout), *usual[i + 1 :]))
        if base:
            for other in DATA:
                add(((other, layout_of(other)),) * len(base))
        for k, arg in cls.schema.items():
            if arg.deprecated or k in SETTLED:
                continue
            for v in odd_values(arg):
                add(constants={**required, k: v})
            if arg.tensor:
                for column in odd_columns(arg):
                    add(data={k: column})
        mixed(cls, usual, required, add, np.random.default_rng(zlib.crc32(name.encode()) + SEED))
    return found


def mixed(cls: type[Operator], usual: tuple, required: dict[str, Any], add: Any, rng: np.random.Generator) -> None:
    """Several anomalies at once: random inputs (including optional ones) and arguments."""

    def one_of(values: Any) -> Any:
        return values[rng.integers(len(values))]

    open_ = [a for k, a in cls.schema.items() if not a.deprecated and k not in SETTLED]
    for _ in range(MIXED):
        inputs = list(usual)
        if rng.random() < 0.3:
            inputs += [("image", "")] * int(rng.integers(0, max(min(cls.inputs[1], 3) - len(inputs), 0) + 1))
        for i in range(len(inputs)):
            if rng.random() < 0.4:
                name = one_of(list(DATA))
                inputs[i] = name, layout_of(name) if rng.random() < 0.8 else one_of(TEXTS)
        constants, data = dict(required), {}
        for arg in rng.permutation(np.array(open_, object))[: rng.integers(0, 4)] if open_ else ():
            values = odd_values(arg)
            if arg.vector and values:
                scalars = odd_values(Arg(arg.type))
                values = values + [[one_of(scalars) for _ in range(n)] for n in (1, 2, 2, 2, 3, 3)]
            columns = odd_columns(arg) if arg.tensor else []
            if columns and rng.random() < 0.4:
                data[arg.name] = [one_of(columns)[0], one_of(columns)[0]] if rng.random() < 0.2 else one_of(columns)
            elif values:
                constants[arg.name] = one_of(values)
        add(tuple(inputs), constants, data)


def face(name: str) -> Any:
    found: Any = fn
    for part in name.split("."):
        found = getattr(found, part)
    return found


def attempt(case: Case, device: str = "cpu") -> str:
    """The result: "ok", "raised: ...", or "WRONG: ..." for an unacceptable error."""
    n = max([len(DATA[name]) for name, _ in case.inputs], default=2)

    @pipeline_def(
        batch_size=max(n, 1), num_threads=2, prefetch_queue_depth=1, seed=1, device_id=0 if device == "gpu" else None
    )
    def pipe():
        fed = [
            fn.external_source(source=lambda i, x=x: DATA[x], layout=layout or None, device=device)
            for x, layout in case.inputs
        ]
        data = {k: fn.external_source(source=lambda i, v=v: v[:n]) for k, v in case.data.items()}
        if case.operator in ("subscript", "arithmetic"):
            from penstock.graph import trace

            out = trace.call(REGISTRY[case.operator], tuple(fed), {**case.constants, **data})
        else:
            out = face(case.operator)(*fed, **case.constants, **data)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    try:
        for out in pipe().run():
            out = out.as_cpu()
            for i in range(len(out)):
                np.asarray(out.at(i)).sum(dtype="f8")
    except (ValueError, TypeError, RuntimeError, MemoryError, StopIteration) as e:
        text = str(e)
        lines = [x for x in text.split("encountered:")[-1].strip().splitlines() if x.strip()]
        if "[internal error]" in text or not lines or isinstance(e, (UnicodeError, RecursionError)):
            return f"WRONG: {type(e).__name__}: {' '.join(lines)[-300:]}"
        return f"raised: {type(e).__name__}: {lines[0][:200]}"
    except Exception as e:
        return f"WRONG: {type(e).__name__}: {e}"[:300]
    return "ok"


def device_failure() -> str:
    """Errors found by the emulated device, such as an out-of-bounds write."""
    path = os.environ.get("PENSTOCK_CUDA_DRIVER")
    if not path:
        return ""
    driver = ctypes.CDLL(path)
    driver.emulated_failure.restype = ctypes.c_char_p
    return driver.emulated_failure().decode()


def chosen(share: int, device: str = "cpu") -> list[Case]:
    """Every case, or a fixed one of `share`."""
    found = (c for c in cases() if zlib.crc32(str(c).encode()) % share == 0)
    return [c for c in found if device == "cpu" or (c.inputs and device in REGISTRY[c.operator].devices)]


def main(share: int, begin: int, device: str = "cpu") -> None:
    """For each case, from number `begin` on, prints "number begin" before it and the result after it."""
    faulthandler.enable()
    gc.disable()  # pipelines must end without it; otherwise the stacks of their threads exceed the limit
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    todo = chosen(share, device)
    attempt(Case("copy", (("image", "HWC"),), {}, {}), device)
    with open("/proc/self/statm") as f:  # after initialising the device, whose driver reserves many addresses
        taken = int(f.read().split()[0]) * resource.getpagesize()
    before = {k: [x.copy() for x in v] for k, v in DATA.items()}
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY_BYTES[device],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, lambda *a: os._exit(99))
    for i, case in enumerate(todo[begin:], begin):
        print(i, "begin", flush=True)
        signal.alarm(SECONDS[device])
        ended = attempt(case, device)
        signal.alarm(0)
        if device == "gpu" and (failure := device_failure()):
            print(i, f"WRONG: the device: {failure}".replace("\n", " "), flush=True)
            os._exit(DEVICE_FAILED)
        print(i, ended.replace("\n", " "), flush=True)
    for k, v in before.items():
        for x, y in zip(v, DATA[k]):
            np.testing.assert_array_equal(x, y, err_msg=f"something wrote to its input '{k}'")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
