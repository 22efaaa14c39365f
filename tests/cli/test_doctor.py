# SPDX-License-Identifier: Apache-2.0
"""`penstock doctor`: what is available, what is missing, advice. On the emulated device, in other processes."""

import json
import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("PENSTOCK_TEST_GPU") == "1", reason="a real GPU lacks nothing")


def doctor(**environment):
    """The report's lines by name, and its advice."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "doctor"],
        env=os.environ | environment,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report, _, follows = done.stdout.partition("What follows\n")
    found = {}
    for line in report.splitlines():
        if line.startswith("  "):
            found[line[11:34].strip()] = line[2:9].strip(), line[34:].strip()
    return found, [line[4:] for line in follows.splitlines()]


def test_all_that_matters_is_told():
    found, _ = doctor()
    assert {"Python", "native library", "processor", "image formats", "driver", "GPU 0", "NVRTC", "numpy"} <= set(found)
    assert found["native library"][0] == found["FFmpeg"][0] == found["video codecs"][0] == "ok"
    assert re.match(r"libavcodec [0-9]+\.[0-9]+\.[0-9]+ of the (package av|system)", found["FFmpeg"][1])
    assert set(found["video codecs"][1].split(", ")) >= {"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "prores"}
    assert found["driver"] == ("ok", "supports CUDA 13.0") and "compute capability 9.0" in found["GPU 0"][1]
    assert "pinned memory" in found["files to the GPU"][1]
    assert "MiB of it free" in found["GPU 0"][1] and "JPEG 2000" in found["image formats"][1]


def test_for_programs():
    """`--json` has the same content as the text."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "doctor", "--json"], text=True, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    found, advice = doctor()
    told = {line["name"]: line for part in report["parts"].values() for line in part}
    good = {name: state == "ok" for name, (state, _) in found.items()}
    assert {name: line["ok"] for name, line in told.items()} == good
    assert told["codecs"]["what"] == found["codecs"][1] and told["codecs"]["what"].startswith("libjpeg-turbo ")
    assert (report["advice"] or ["Nothing is missing."]) == advice
    assert list(report["parts"])[:2] == ["penstock", "CPU"] and report["version"][0].isdigit()


@pytest.mark.parametrize(
    "lacking, name, says, follows",
    [
        ({"PENSTOCK_CUDA_DRIVER": "/nowhere"}, "driver", "no NVIDIA driver was found", "pass device_id=None"),
        ({"PENSTOCK_EMULATED_CUDA": "11080"}, "driver", "supports CUDA 11.8", "CUDA 12.0 or newer is needed"),
        ({"PENSTOCK_FFMPEG": "/nowhere"}, "FFmpeg", "holds no libavcodec", "pip install penstock[video]"),
        ({"PENSTOCK_EMULATED_DEVICES": "0"}, "GPUs", "knows none", "run on the CPU only"),
        ({"PENSTOCK_NVRTC": "/nowhere"}, "NVRTC", "was not found", "pip install penstock[cuda13]"),
        ({"PENSTOCK_EMULATED_CUDA": "12080"}, "NVRTC", "can't load", "pip install penstock[cuda12]"),
        ({"PENSTOCK_NVJPEG": "/nowhere"}, "nvJPEG", "/nowhere", "pip install penstock[cuda13]"),
        ({"PENSTOCK_OPTICAL_FLOW": "/nowhere"}, "flow engine of GPU 0", "was not found", "fn.optical_flow can't be"),
    ],
)
def test_what_is_missing_and_what_follows(lacking, name, says, follows):
    found, advice = doctor(**lacking)
    assert found[name][0] == "missing" and says in found[name][1]
    assert any(follows in line for line in advice)
