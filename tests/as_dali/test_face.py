# SPDX-License-Identifier: Apache-2.0
"""Every public module, class, function, member and parameter of DALI exists under its name, or is listed here with a
reason. reference/face.json lists them, created from the real DALI by reference/read_face.py."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACE = json.loads((ROOT / "tests" / "reference" / "face.json").read_text())

# Deliberately missing: pattern of the name, reason.
ABSENT = {
    r"(fn|ops)(\.\w+)*\.hidden.*": "DALI's own place for the code of old names; the names themselves are tested",
    r"ops\.register_(cpu|gpu)_op": "operators are declared as classes, see CONTRIBUTING.md",
    r"(backend|backend_impl)\.OpSchema\.\w+": "what DALI's own code asks its schemas for",
    r"(backend|backend_impl)\.(OpSpec|Pipeline|PipelineDebug|ExternalContextCheckpoint|SharedMem|Stream)":
        "classes of the native library's own border",
    r"(backend|backend_impl)\.(Get|TryGet)Schema(AndTarget)?": "the same; an operator's schema is its class",
    r"(backend|backend_impl)\.Load\w+": "native plugins can't be loaded; plugin_manager says so",
    r"(backend|backend_impl)\.Get(Cuda|Cufft|Npp|Nvimgcodec|Nvjpeg|OpenCV)Version":
        "versions of libraries that are not linked",
    r"(backend|backend_impl)\.(GetCxx11AbiFlag|CheckDLPackCapsule|DLDeviceType|IsDriverInitialized)":
        "facts about the native library",
    r"(backend|backend_impl)\.(CUDAStreamSynchronize|[GS]etCUDACurrentDevice|GetCUDA(DeviceCount|StreamDevice))":
        "wrappers of CUDA's runtime, which is not linked",
    r"data_node\.not_iterable": "a decorator of its own classes",
    r"pipeline\.DataNode\(.*": "nodes are made by operators, never by hand",
    r"pipeline\.WorkerPool": "the processes of parallel sources, which a pipeline makes itself",
    r"Pipeline\.output_stream|pipeline\.Pipeline\.output_stream":
        "batches come from several streams: each output tells its own, as TensorListGPU.stream",
    r"plugin\.jax\.f": "holds nothing public",
    r"plugin\.(numba\.NumbaFunction|pytorch\.TorchPythonFunction)\.(schema|schema_name|spec|torch_wrapper)":
        "objects of the native library",
    r"plugin\.tf\.DALIDataset\(input_datasets\)": "which it refuses; experimental.DALIDatasetWithInputs takes it",
    r"plugin\.pytorch\.experimental\.proxy\.DALIOutputSampleRef\(.*": "references are made by the proxy, never by hand",
    r"python_function_plugin.*": "what calls Python from DALI's native library",
    r"reducers\.(?!DaliCallbackPickler).*": "steps of DALI's own pickler",
    r"tensors\.(Pipeline(Batch|Tensor)Adapter|format_(batch|tensor))": "what DALI prints tensors with",
}  # fmt: skip
# Operators of families that are not implemented yet. tests/test_schema.py compares the others completely with DALI's.
TO_COME = re.compile(
    r"(fn|ops|experimental\.dynamic)\.(.*\.)?(\w*(reader|resample|spectrum|spectrogram|nonsilent|mel_?filter|mfcc|decibels|preemphasis"
    r"|fits|video|audio|numpy|caffe2?|coco|webdataset|nemo_?asr|sequence)\w*|inputs(\.\w+)?"
    r"|experimental\.(readers(\.\w+)?|resize))$",
    re.IGNORECASE,
)

COMPARE = """
import importlib, inspect, json, sys, warnings
warnings.simplefilter("ignore")
import penstock.as_dali
missing, n = [], 0
for module_name, names in json.load(open(sys.argv[1]))["modules"].items():
    short = module_name.removeprefix("nvidia.dali").lstrip(".")
    dot = short + "." if short else ""
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        missing.append(short)
        continue
    for name, fact in names.items():
        n += 1
        if not hasattr(module, name):
            missing.append(dot + name)
            continue
        ours = getattr(module, name)
        if fact["kind"] == "enumeration":
            for member, value in fact["members"].items():
                if not hasattr(ours, member) or value is not None and int(getattr(ours, member).value) != value:
                    missing.append(f"{dot}{name}.{member}")
        elif fact["kind"] == "class":
            missing += [f"{dot}{name}.{m}" for m in fact["members"] if not hasattr(ours, m)]
        if fact["kind"] in ("class", "function") and fact["parameters"] is not None:
            have = inspect.signature(ours).parameters
            if any(p.kind is p.VAR_KEYWORD for p in have.values()):
                continue
            missing += [f"{dot}{name}({p})" for p in fact["parameters"] if p[0] != "*" and p not in have]
print(json.dumps([n, missing]))
"""


def test_what_dali_has_is_there_or_named_here():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": "cpu"}
    path = ROOT / "tests" / "reference" / "face.json"
    done = subprocess.run([sys.executable, "-c", COMPARE, str(path)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    n, missing = json.loads(done.stdout)
    assert n > 600
    patterns = {p: re.compile(p) for p in ABSENT}
    uninstalled = tuple(f"plugin.{p}" for p in ("jax", "pytorch", "numba", "paddle", "tf") if not _has(p))
    uninstalled += () if _has("pytorch") else ("experimental.torchvision",)
    uninstalled += () if _has("clu") else ("plugin.jax.clu",)
    used, wrong = set(), []
    for name in missing:
        reasons = [p for p, compiled in patterns.items() if compiled.fullmatch(name)]
        used.update(reasons)
        if not reasons and not TO_COME.match(name) and not (uninstalled and name.startswith(uninstalled)):
            wrong.append(name)
    assert not wrong, f"{len(wrong)} names of DALI are neither there nor explained: {wrong}"
    unused = {
        p for p in set(ABSENT) - used if not (uninstalled and p.replace("\\", "").startswith(("plugin.", "plugin(")))
    }
    assert not unused, f"these are there by now: {unused}"


def _has(framework):
    from importlib.util import find_spec

    return find_spec({"pytorch": "torch", "tf": "tensorflow"}.get(framework, framework)) is not None


def test_the_comparison_sees_what_is_missing(tmp_path):
    """The comparison fails if something is missing."""
    wanted = {
        "modules": {
            "nvidia.dali.types": {
                "DALIDataType": {"kind": "enumeration", "members": {"UINT8": 7, "NEW": 1}},
                "ScalarConstant": {"kind": "class", "parameters": ["value", "colour"], "members": ["float32", "paint"]},
                "Nothing": {"kind": "value"},
            },
            "nvidia.dali.nowhere": {},
        }
    }
    path = tmp_path / "face.json"
    path.write_text(json.dumps(wanted))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    out = subprocess.run([sys.executable, "-c", COMPARE, str(path)], capture_output=True, text=True, env=env)
    found = json.loads(out.stdout)[1]
    assert found == [
        *("types.DALIDataType.UINT8", "types.DALIDataType.NEW", "types.ScalarConstant.paint"),
        *("types.ScalarConstant(colour)", "types.Nothing", "nowhere"),
    ]
