# SPDX-License-Identifier: Apache-2.0
"""Files with compressed sound, and optionally pictures, encoded by PyAV."""

import io
from fractions import Fraction

import numpy as np
from sound_files import noise

from optional_packages import Package

av = Package("av")

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


def encoded(codec="aac", container="mp4", rate=16000, channels=2, frames=9000, begin=0.0, options=None, pictures=0):
    """The bytes of a file with sound from `begin` (seconds) on, and with `pictures` frames at 10 per second."""
    x, layout, file = noise(frames, channels).astype("f4").T, LAYOUTS[channels], io.BytesIO()
    with av.open(file, "w", format=container, options=options or {}) as out:
        stream = out.add_stream(codec, rate=rate, layout=layout)
        if pictures:
            video = out.add_stream("mpeg4", rate=10)
            video.height, video.width, video.pix_fmt = 48, 64, "yuv420p"
            for i in range(pictures):
                frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 10 * i, "u1"), "rgb24")
                out.mux(video.encode(frame))
            out.mux(video.encode())
        whole = av.AudioFrame.from_ndarray(np.ascontiguousarray(x), format="fltp", layout=layout)
        whole.sample_rate, whole.pts, whole.time_base = rate, 0, Fraction(1, rate)
        context, parts = stream.codec_context, av.AudioFifo()
        for frame in av.AudioResampler(context.format.name, context.layout, rate).resample(whole):
            parts.write(frame)
        while frame := parts.read(context.frame_size or 1024) or parts.read():
            frame.pts += round(begin * rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return file.getvalue()
