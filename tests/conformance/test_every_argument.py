# SPDX-License-Identifier: Apache-2.0
"""Every argument of every DALI operator, in a program run by both libraries."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest

from conformance import argument_programs as programs
from conformance import oracle, report
from conformance import record_programs as records

pytest.importorskip("nvidia.dali")
import nvidia.dali.backend as theirs  # noqa: E402
import nvidia.dali.ops as their_ops  # noqa: E402

ON_CPU = sorted({*their_ops.cpu_ops(), *their_ops.mixed_ops()} & set(their_ops.cpu_ops()))
EVERY = sorted({*their_ops.cpu_ops(), *their_ops.gpu_ops(), *their_ops.mixed_ops()})

# DALI's CPU operators that require a GPU driver.
NEEDS_A_DRIVER = {"experimental__readers__Fits"}
# Reasons why the arguments of operators are not run here, by prefix of the name.
ELSEWHERE = {
    "_TensorSubscript": "test_subscripts, for samples of up to 8 dimensions, of which DALI takes 32",
    "_SubscriptDimCheck": "the same",
    "_": "test_inner_arguments.py, as programs write it",
    "experimental__readers__Fits": "DALI needs a GPU's driver for it: test_arguments_by_definition.py",
    "TorchPythonFunction": "its own test, with the definition",
    "NumbaFunction": "it needs Numba",
    "JaxFunction": "it runs on the GPU only",
}


class Data(NamedTuple):
    """An argument passed as data: its samples."""

    samples: list[np.ndarray]


_OF_PLUGINS = {"TorchPythonFunction", "NumbaFunction", "JaxFunction"}
# Non-default values, by argument, or by operator and argument.
VALUES = {
    "seed": 7,
    "preserve": True,
    "bytes_per_sample_hint": [1024],
    "prefetch_queue_depth": 2,
    "num_shards": 2,
    "shard_id": 0,
    "initial_fill": 2,
    "tensor_init_bytes": 4096,
    "read_ahead": True,
    "lazy_init": True,
    "dont_use_mmap": True,
    "pad_last_batch": True,
    "stick_to_shard": True,
    "random_shuffle": True,
    "shuffle_after_epoch": True,
    "shuffle_after_epoch_seed": 3,
    "skip_cached_images": False,
    "device_memory_padding": 1024,
    "host_memory_padding": 1024,
    "memory_stats": True,
    "affine": False,
    "use_fast_idct": True,
    "jpeg_fancy_upsampling": True,
    "adjust_orientation": False,
    "num_attempts": 5,
    "random_area": [0.4, 0.6],
    "random_aspect_ratio": [0.9, 1.1],
    "minibatch_size": 2,
    "temp_buffer_hint": 4096,
    "image_type": "RGB",
    "Uniform.range": [0.0, 2.0],
    "Uniform.values": [1.0, 2.0],
    "RandomResizedCrop.interp_type": "INTERP_CUBIC",
    "ROIRandomCrop.in_shape": [9, 9],
    "ROIRandomCrop.roi_end": [4, 4],
    "ExternalSource.layout": "H",
    "Constant.idata": [1, 2],
    "Constant.shape": [2],
    "Constant.layout": "H",
    "Zeros.layout": "HW",
    "Ones.layout": "HW",
    "dtype": "FLOAT",
    "output_dtype": "FLOAT",
    "shape": [2, 3],
    "CoinFlip.dtype": "UINT8",
    "Shapes.type": "INT32",
    "type": "INT32",
    "Constant.dtype": "INT32",
    "ExternalSource.dtype": "INT32",
    "ExternalSource.ndim": 1,
    "Filter.dtype": "FLOAT",
    "audio.dtype": "INT16",
    "MultiPaste.dtype": "UINT8",
    "max_size": [6, 6],
    "roi_start": [1, 1],
    "roi_end": [4, 4],
    "ImageSlice.end": [25, 36],
    "ImageSlice.rel_start": [0.1, 0.2],
    "ImageSlice.rel_shape": [0.5, 0.6],
    "ImageSlice.rel_end": [0.8, 0.9],
    "Numpy.roi_shape": [2, 3],
    "Numpy.rel_roi_start": [0.1, 0.2],
    "Numpy.rel_roi_shape": [0.5, 0.6],
    "Numpy.rel_roi_end": [0.8, 0.9],
    "NemoAsr.normalize_text": False,
    "RandomBBoxCrop.total_num_attempts": 9,
    "crop_d": 1,
    "crop_h": 5,
    "crop_w": 6,
    **{f"FastResizeCropMirror.resize_{a}": 9 for a in ("x", "y", "longer", "shorter")},
    "RandomBBoxCrop.bbox_layout": "xyXY",
    "RandomBBoxCrop.bbox_prune_threshold": 0.2,
    "RandomBBoxCrop.crop_shape": [20, 20],
    "RandomBBoxCrop.input_shape": [40, 50],
    "RandomBBoxCrop.shape_layout": "HW",
    "SaltAndPepper.pepper_val": 3.0,
    "SaltAndPepper.salt_val": 200.0,
    "Choice.p": [0.2, 0.3, 0.5],
    "RandomMaskPixel.value": 2,
    "RandomObjectBBox.class_weights": [0.3, 0.7],
    "RandomObjectBBox.classes": [1, 2],
    "RandomObjectBBox.k_largest": 2,
    "RandomObjectBBox.threshold": [2, 2, 0],
    "COCO.save_img_ids": True,
    "COCO.dump_meta_files": True,
    "COCO.dump_meta_files_path": "{root}/meta",
    "COCO.meta_files_path": "{root}/meta",
    "COCO.save_preprocessed_annotations": True,
    "COCO.save_preprocessed_annotations_dir": "{root}/meta",
    "COCO.preprocessed_annotations": "{root}/meta",
    "COCO.images": ["class1/1.png", "class0/2.png"],
    "File.dir_filters": ["class1"],
    "File.files": ["class1/1.png", "class0/2.png", "class1/3.png"],
    "File.labels": [5, 6, 7],
    "File.file_list": "{root}/list.txt",
    "Numpy.files": ["1.npy", "2.npy", "0.npy"],
    "Numpy.file_list": "{root}/arrays.txt",
    "sample_rate": 8000.0,
    "MultiPaste.in_anchors": Data([np.int32([[0, 1], [1, 0]])] * 3),
    "MultiPaste.in_anchors_rel": Data([np.float32([[0, 0.2], [0.3, 0]])] * 3),
    "MultiPaste.out_anchors": Data([np.int32([[2, 3], [8, 9]])] * 3),
    "MultiPaste.out_anchors_rel": Data([np.float32([[0.1, 0.2], [0.4, 0.5]])] * 3),
    "MultiPaste.shapes": Data([np.int32([[3, 4], [5, 2]])] * 3),
    "MultiPaste.shapes_rel": Data([np.float32([[0.5, 0.6], [0.2, 0.7]])] * 3),
}
# Arguments without a program, with reasons.
OMITTED = {
    "ExternalSource.repeat_last": "DALI takes it with a GPU only; tests/pipeline/test_feeding.py has it",
    "ExternalSource.bytes_per_sample_hint": "DALI takes it with parallel=True only; tests/external has it",
}
_CROPS = ("FastResizeCropMirror", "ImageCrop")
_SIZES = ("x", "y", "z", "longer", "shorter")
VALUES |= records.VALUES
# Arguments that must be omitted or added together with an argument.
WITH = {
    "Constant.idata": {"fdata": None},
    "ROIRandomCrop.roi_end": {"roi_shape": None},
    "ROIRandomCrop.roi_start": {},
    "shuffle_after_epoch_seed": {"shuffle_after_epoch": True},
    "COCO.dump_meta_files": {"dump_meta_files_path": "{root}/meta"},
    "COCO.dump_meta_files_path": {"dump_meta_files": True},
    "COCO.save_preprocessed_annotations": {"save_preprocessed_annotations_dir": "{root}/meta"},
    "COCO.save_preprocessed_annotations_dir": {"save_preprocessed_annotations": True},
    "COCO.meta_files_path": {"annotations_file": None},
    "COCO.preprocessed_annotations": {"annotations_file": None},
    "File.labels": {"files": ["class1/1.png", "class0/2.png", "class1/3.png"]},
    "ImageSlice.end": {"shape": None},
    "ImageSlice.rel_end": {"shape": None},
    "ImageSlice.rel_shape": {"shape": None},
    "ImageSlice.rel_start": {"start": None},
    "roi_start": {"roi_end": [4, 4]},
    "roi_end": {"roi_start": [1, 1]},
    "Numpy.use_o_direct": {"dont_use_mmap": True},
    "Numpy.roi_start": {},
    "Numpy.roi_end": {},
    "RandomMaskPixel.value": {"foreground": True},
    "RandomObjectBBox.class_weights": {"classes": [1, 2]},
    "max_size": {"mode": "not_larger"},
    **{f"{op}.crop_{a}": {"crop": None, **{f"crop_{b}": 4 for b in "hw" if b != a}} for op in _CROPS for a in "dhw"},
    **{
        f"FastResizeCropMirror.resize_{a}": {f"resize_{b}": None for b in _SIZES if b != a} | {"size": None}
        for a in _SIZES
    },
    "FastResizeCropMirror.max_size": {},
    "RandomBBoxCrop.shape_layout": {"input_shape": [40, 50], "crop_shape": [20, 20], "scaling": None},
    "RandomBBoxCrop.crop_shape": {"input_shape": [40, 50], "scaling": None},
    "RandomBBoxCrop.input_shape": {"crop_shape": [20, 20]},
}
WITH |= records.WITH
_ENUMERATIONS = {
    "image_type",
    "interp_type",
    "dtype",
    "output_dtype",
    "type",
    "output_type",
    "min_filter",
    "mag_filter",
}
_RANDOM = {"random_shuffle", "shuffle_after_epoch", "shuffle_after_epoch_seed"}


def meant(name):
    if name in programs.FORMER:
        return programs.FORMER[name]
    rest = name.removeprefix("experimental__")
    return rest if rest != name and rest in EVERY else name


@pytest.fixture(scope="module")
def program_of(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    made = {**programs.made_up(), **programs.readers(root), **records.made(root)}
    for values in (VALUES, *WITH.values()):
        for key, value in values.items():
            if isinstance(value, str):
                values[key] = value.replace("{root}", str(root))

    def find(name):
        known = meant(name)
        candidates = programs.of_cases(programs.PATHS.get(known.lower(), known))
        return [made[known]] if known in made else candidates

    return find


def reason(name):
    return next((why for n, why in ELSEWHERE.items() if name.startswith(n) or meant(name).startswith(n)), None)


def keys_of(name, argument):
    """Keys of an argument in the tables above: of its operator with module, of the operator, of all operators."""
    for known in (name, meant(name)):
        parts = known.split("__")
        yield from (f"{'__'.join(parts[k:])}.{argument}" for k in range(len(parts)))
    yield argument


def value_of(name, argument):
    """A value of the argument, from the table above if possible, otherwise the default."""
    for key in keys_of(name, argument):
        if key in VALUES:
            return VALUES[key]
    schema = theirs.GetSchema(name)
    if not schema.HasArgumentDefaultValue(argument):
        return None
    default = schema.GetArgumentDefaultValueString(argument)
    try:
        value = eval(default, {"__builtins__": {}})  # DALI's text of a number, a string or a list
    except Exception:
        return None
    return not value if isinstance(value, bool) else value


def run(library, name, program, arguments):
    """Outputs and layouts, as oracle.Result."""
    module = library.ops
    *path, cls = name.split("__")
    for part in path:
        module = getattr(module, part)
    types = library.types
    inputs = [(s, lay) for s, lay in program.inputs]
    n = len(inputs[0][0]) if inputs else 3

    def given(key, v):
        if isinstance(v, str) and (key in _ENUMERATIONS):
            return getattr(types, v)
        if isinstance(v, Data):
            return v
        if isinstance(v, records.Made):
            return v.make(library)
        return oracle.dali_value(v) if library.__name__.startswith("nvidia") else v

    # Python functions are called while the pipeline runs.
    how = {"exec_async": False, "exec_pipelined": False} if "PythonFunction" in cls else {"prefetch_queue_depth": 1}

    @library.pipeline_def(batch_size=n, num_threads=1, device_id=None, seed=1, **how)
    def pipe():
        def feed(samples, layout=None):
            return library.fn.external_source(source=lambda i: list(samples), layout=layout)

        data = [feed(s, lay) for s, lay in inputs]
        more = {k: feed(v) for k, v in program.more.items() if k not in arguments}
        constants = {k: given(k, v) for k, v in arguments.items() if v is not None and not isinstance(v, Data)}
        more |= {k: feed(v.samples) for k, v in arguments.items() if isinstance(v, Data)}
        if cls == "ExternalSource":
            return getattr(module, cls)(source=lambda i: [np.int32([1, 2])] * n, **constants)()
        out = getattr(module, cls)(**constants)(*data, **more)
        if isinstance(out, dict):
            return tuple(out.values())
        return tuple(out) if isinstance(out, (tuple, list)) else out

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = pipe()
            p.build()
            for fed, value in program.fed.items():
                p.feed_input(fed, value)
            return oracle._collect(p.run())
    except Exception as e:
        return oracle.Result(error=oracle._cause(e))


def forms(result):
    return [[(s.dtype, s.ndim) for s in output] for output in result.outputs]


def run_both(name, program, argument, value):
    import nvidia.dali as dali

    import penstock

    extra = next((WITH[k] for k in keys_of(name, argument) if k in WITH), {})
    arguments = {**program.arguments, **({argument: value} if argument else {}), **extra}
    want, got = (run(library, name, program, arguments) for library in (dali, penstock))
    if want.error and got.error:
        return f"both raise: {want.error}"
    if program.random or argument in _RANDOM:
        if want.error or got.error:
            return f"one raises: {want.error or got.error}"
        return "" if forms(want) == forms(got) else f"{forms(got)}, DALI has {forms(want)}"
    return str(oracle.compare(want, got, oracle.Bound(1, 64, 1e-5), oracle.Tally()))


@pytest.mark.parametrize("name", [n for n in ON_CPU if not reason(n)])
def test_arguments(name, program_of):
    found = [(p, run_both(name, p, None, None)) for p in program_of(name)]
    assert found, "no program"
    program, first = next((f for f in found if not f[1]), found[0])
    assert not first, first
    covered = programs.used_by_cases(programs.PATHS.get(meant(name).lower(), "")) if meant(name) == name else set()
    wrong, count = [], report.arguments(name)
    for argument in theirs.GetSchema(name).GetArgumentNames():
        if argument in covered:
            count.cases += 1
            continue
        if why := OMITTED.get(f"{meant(name)}.{argument}"):
            count.elsewhere[argument] = why
            continue
        count.programs += 1
        if argument in program.arguments or argument in program.more:
            continue  # included in the first program
        value = value_of(name, argument)
        told = f"no value for {argument}" if value is None else run_both(name, program, argument, value)
        if told:
            wrong.append(f"{argument}={value!r}: {told}")
    assert not wrong, "\n".join(wrong)


SUBSCRIPTS = {
    "at": lambda before, k: (*before, 1),
    "at, data": lambda before, k: (*before, k),
    "lo:hi": lambda before, k: (*before, slice(1, 3)),
    "lo:hi, data": lambda before, k: (*before, slice(k, k + 2)),
    "lo:": lambda before, k: (*before, slice(-2, None)),
    "step": lambda before, k: (*before, slice(0, 3, 1)),
}


@pytest.mark.parametrize("axis", range(7))
@pytest.mark.parametrize("subscript", SUBSCRIPTS.values(), ids=list(SUBSCRIPTS))
def test_subscripts(subscript, axis):
    import nvidia.dali as dali

    import penstock

    x = np.arange(12, dtype="i4").reshape((1,) * axis + (3, 4)[: 8 - axis])

    def outputs(library):
        @library.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipe():
            data = library.fn.external_source(source=lambda i: [x, x + 1])
            k = library.fn.external_source(source=lambda i: [np.int32(0), np.int32(1)])
            return data[subscript((slice(None),) * axis, k)]

        p = pipe()
        p.build()
        return oracle._collect(p.run())

    assert not oracle.compare(outputs(dali), outputs(penstock), oracle.Bound(), oracle.Tally())


def test_no_argument_is_without_a_program():
    """Each operator of DALI has programs here, or a reference to them."""
    for name in EVERY:
        n, why = len(theirs.GetSchema(name).GetArgumentNames()), reason(name)
        if name in NEEDS_A_DRIVER or (name not in ON_CPU and not name.startswith("_")):
            continue  # see test_arguments_by_definition.py
        if why:
            report.arguments(name).elsewhere |= {"*": why}
            report.arguments(name).n_elsewhere = n
    assert len(EVERY) > 170 and {n for n in EVERY if n in ON_CPU and not reason(n)} <= set(ON_CPU)
    unused = [k for k in ELSEWHERE if not any(n.startswith(k) or meant(n).startswith(k) for n in EVERY)]
    assert set(unused) <= _OF_PLUGINS, unused
