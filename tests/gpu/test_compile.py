# SPDX-License-Identifier: Apache-2.0
"""The real NVRTC, if installed, compiles the kernels; this needs no GPU."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from boxes import segments as of_boxes
from places import segments as at_places
from segments import Segment, Step
from test_arithmetic_gpu import ARITHMETIC
from test_filters import typical as filters
from test_inflate_gpu import typical as inflated
from test_jpeg_compression_gpu import pictures
from test_jpeg_compression_gpu import segment as jpeg_segment
from test_locals import typical_segments
from test_paint_gpu import segments as painted
from test_pieces_gpu import typical as pieces
from test_reduce import typical as reductions
from test_reductions import normalize_segment
from test_resample_gpu import LANCZOS3, TRIANGULAR, Case, normalized
from test_spectra import typical as of_sound
from test_warp import case as warp_case

from penstock.core import kernels
from penstock.core.batch import Spec
from penstock.gpu.copies import SOURCE as COPY
from penstock.operators.filter.gpu.optical_flow import _SOURCE as FLOW

_SCRIPT = """
import json, sys
from penstock.gpu import compile
try:
    compile.library()
except compile.CompilerMissing as e:
    print(e)
    sys.exit(77)
if compile.version() >= (13, 0):  # whose optimizers take two thirds of the time; what they make is for `make gpu-test`
    compile.OPTIONS += ("--Ofast-compile=max",)
for source, entry, targets in json.load(sys.stdin):
    for target in targets:
        compile._compile(source, entry, target)
"""


def of(segments):
    """Text and entry of the launches of segments."""
    return sorted({(x.source, x.entry) for s in segments for x in s.launches()[1]})


def sources():
    """Sources of very different launches."""
    segments = [
        Case("u1").segment(),
        Case("u1", "f4", 1).segment(),
        Case("u2", None, 4, "CHW").segment(),
        Case("f4", sizes=[((3, 4, 5), (2, 3, 4))], layout="DHWC").segment(),
        normalized(Case("u1", filters=TRIANGULAR), "f4"),
        normalized(Case("u1", filters=LANCZOS3), "f2"),
        warp_case("u1", "f4"),
        warp_case("f4", "u1", 6),
        warp_case(sizes=[((4, 8, 9), (5, 9, 7))], dims=3),
        normalize_segment("u1", "f4", (1, 1, 0)),
        normalize_segment("f4", "i2", (0, 1, 1)),
        normalize_segment("u1", "f4", (1, 1, 0), together=1),
        normalize_segment("f4", "u1", (0, 1, 0), shapes=((2300, 4, 3),), together=1),
    ]
    augmented = Segment(
        [Step("augment/augment", [1], [0], {"n_steps": 2, "image_bytes": 64, "channels": 3, "counted": 2})],
        {i: Spec.uniform(2, (4, 5, 3), np.dtype("u1"), "HWC") for i in (0, 1)},
        {},
        {1},
    )
    drawn = [
        Segment(
            [Step("random/distribution", [0], [], {"kind": kind})], {0: Spec.uniform(2, (5, 6), np.dtype(t))}, {}, {0}
        )
        for kind, t in ((0, "u1"), (0, "f8"), (1, "f4"), (1, "f8"), (2, "?"), (3, "i8"), (4, "f4"), (4, "f8"))
    ]
    filled = [
        Segment(
            [Step("generic/full", [1], [0], {"from": source})],
            {i: Spec.uniform(2, (5, 6), np.dtype(t)) for i, t in enumerate(of_to)},
            {},
            {1},
        )
        for source, *of_to in ((-1, "u1", "f2"), (0, "f4", "u1"), (0, "i8", "f8"))
    ]
    cut = [
        Segment(
            [Step("generic/subscript", [1], [0], {"base": 1, "step": np.full((2, 8), s, "i8")})],
            {0: Spec.uniform(2, (9, 9, 9), np.dtype(t)), 1: Spec.uniform(2, shape, np.dtype(t))},
            {},
            {1},
        )
        for t, s, shape in (("u1", 3, (4, 5)), ("f2", -1, (2, 3, 2)), ("f8", 1, (3,)), ("i4", 1, ()))
    ]
    segments += [
        *drawn,
        *filled,
        *cut,
        *typical_segments(),
        *reductions(),
        *filters(),
        *pieces(),
        augmented,
        *of_boxes(),
        *inflated(),
        *of_sound(),
    ]
    segments += [jpeg_segment(pictures("flat"), 50)]
    return of(segments) + [
        ('#define OUT uint8_t\n#include "decode/jpeg_pixels.cu"\n', "jpeg_pixels"),
        ('#include "decode/jpeg_huffman.cu"\n', "jpeg_huffman"),
        ('#include "video/frame_pixels.cu"\n', "frame_pixels_8"),
        (COPY, "copy_pieces"),
        (FLOW, "flow_frames"),
        (ARITHMETIC, "all"),
    ]


def real_compiler(version: str) -> str:
    """The path of NVRTC for a CUDA version: from its wheel, or from the variable PENSTOCK_NVRTC_CU12."""
    folders = {"13": "nvidia/cu13/lib", "12": "nvidia/cuda_nvrtc/lib"}
    given = os.environ.get(f"PENSTOCK_NVRTC_CU{version}")
    found = [given] if given else []
    for folder in sys.path:
        found += sorted(map(str, Path(folder or ".").glob(f"{folders[version]}/libnvrtc.so.{version}")))
    if not found:
        pytest.skip(f"NVRTC of CUDA {version} is not installed")
    return found[0]


def together(sources):
    """Launches that include the same files as one program, each in a namespace: most of the time is the files'."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for source, entry in sources:
        includes = re.match(r"(?:#.*\n)*", source).group()
        groups.setdefault(includes, []).append((source.removeprefix(includes), entry))
    for includes, launches in groups.items():
        texts = [
            f"namespace n{i} {{\n{text.replace(f' {entry}(', f' {entry}_{i}(')}}}\n"
            for i, (text, entry) in enumerate(launches)
        ]
        yield includes + "".join(texts), launches[0][1]


def has_code_of_architectures(text):
    """Whether a text, or a file that it includes, has code that is not compiled for all architectures."""
    return bool(re.search("__CUDA_ARCH__ *[<>=]", text)) or any(map(_has_code_of_architectures, _included(text)))


def _included(text):
    return re.findall('^#include "(.*)"', text, re.M)


@cache
def _has_code_of_architectures(file):
    return has_code_of_architectures((Path(kernels.ROOT) / file).read_text())


def targets(text):
    """Machine code for the oldest architecture, which takes most of the time; for a newer one only where it may differ,
    else PTX."""
    return "sm_75", "sm_90" if has_code_of_architectures(text) else "compute_90"


PARTS = {"painted": lambda: of(painted()), "at places": lambda: of(at_places()), "others": sources}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("version", ("13", "12"))
def test_the_real_compiler_takes_them(version, part, tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_NVRTC", "PENSTOCK_CUDA"))}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    environment |= {"PENSTOCK_NVRTC": real_compiler(version), "XDG_CACHE_HOME": str(tmp_path)}
    jobs = [(source, entry, targets(source)) for source, entry in together(PARTS[part]())]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps(jobs),
        text=True,
        capture_output=True,
        env=environment,
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


def test_every_kernel_is_among_them():
    text = "\n".join(source for part in PARTS.values() for source, _ in part())
    names = [str(path.relative_to(kernels.ROOT)) for path in Path(kernels.ROOT).rglob("*.cu")]
    assert len(names) > 40 and not [name for name in names if f'"{name}"' not in text]
