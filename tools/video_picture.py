# SPDX-License-Identifier: Apache-2.0
"""Draws which frames of a video `decoders.video` gives, for the guide: docs/images/video.svg.

    python tools/video_picture.py

Frames are found by their pixels in what the operator gives, so the picture shows what it does.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from doc_pictures import png  # noqa: E402

import penstock.video  # noqa: E402
from penstock import fn, pipeline_def  # noqa: E402

CLIP = ROOT / "examples" / "clips" / "clock.mp4"
CALLS: list[dict[str, Any]] = [
    {"start_frame": 2, "sequence_length": 4, "stride": 2},
    {"sequence_length": 4, "clip_pos": 0.75},
    {"sequence_length": 4, "uniform_sample": True},
    {"key_frames": True},
]
WIDTH, HEIGHT, STEP, LEFT, TOP, ROW = 64, 48, 72, 24, 48, 84


def frames_of(call: dict[str, Any], video: np.ndarray) -> list[int]:
    """The numbers of the frames that a call gives."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe() -> Any:
        files, _ = fn.readers.file(files=[str(CLIP)])
        return fn.decoders.video(files, **call)

    frames = np.array(pipe().run()[0].at(0))
    return [int(np.flatnonzero((video == frame).all((1, 2, 3)))[0]) for frame in frames]


def draw() -> str:
    opened = penstock.video.open(CLIP)
    video = opened[:]
    text = 'font-size="13" fill="#1f2933"'
    width, height = 2 * LEFT + STEP * len(video) - (STEP - WIDTH), TOP + ROW * (len(CALLS) + 1) - 4
    title = "Which frames of a video a range, a clip at a place, samples at equal distances and key frames are"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{title}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="12" fill="#ffffff" stroke="#d9e2ec"/>',
        "<defs>",
    ]
    for i, frame in enumerate(video):
        data = base64.b64encode(png(frame)).decode()
        lines.append(f'<image id="f{i}" width="{WIDTH}" height="{HEIGHT}" href="data:image/png;base64,{data}"/>')
    lines += [
        "</defs>",
        f'<text x="{LEFT}" y="24" {text}>clock.mp4: frames, and when they are shown; key frames</text>',
    ]
    lines[-1] = lines[-1].replace("; key frames", "; key frames have a blue border")
    for row, call in enumerate([None, *CALLS]):
        y = TOP + ROW * row
        if call is not None:
            arguments = ", ".join(f"{k}={v}" for k, v in call.items())
            lines.append(f'<text x="{LEFT}" y="{y - 4}" {text} font-family="monospace">{arguments}</text>')
        for i in range(len(video)) if call is None else frames_of(call, video):
            x = LEFT + STEP * i
            lines.append(f'<use href="#f{i}" x="{x}" y="{y + 4}"/>')
            if call is None and i in opened.key_frames:
                border = f'x="{x - 2}" y="{y + 2}" width="{WIDTH + 4}" height="{HEIGHT + 4}"'
                lines.append(f'<rect {border} fill="none" stroke="#2186eb" stroke-width="3"/>')
            if call is None:
                label = f"{i}: {opened.times[i]:.2f} s"
                lines.append(
                    f'<text x="{x + WIDTH // 2}" y="{y - 4}" font-size="11" fill="#52606d" '
                    f'text-anchor="middle">{label}</text>'
                )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "images" / "video.svg").write_text(draw())
