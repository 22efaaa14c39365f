# SPDX-License-Identifier: Apache-2.0
"""Fuzzes what reads the indices of videos, and the parameter sets of their streams, under AddressSanitizer.

    python tests/fuzz/fuzz_video.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_video.cpp together with the readers of containers, encodes small videos (which needs PyAV), and damages them
until the time is up. With FILEs and `--seconds 0` it reads just these, to repeat a crash.
"""

import struct
import sys
from pathlib import Path

import damaging

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from encoded_videos import clip  # noqa: E402

NAMES = "index mp4 matroska avi esds clip packed_index codecs runs h264 elementary transport program wrapped "
NAMES += "h264_pictures hevc_pictures mpeg_pictures"
SOURCES = [f"video/{n}" for n in NAMES.split()]


def seeds() -> dict[str, bytes]:
    fragments = (("movflags", "frag_keyframe+empty_moov+default_base_moof"),)
    open_groups = (("x264-params", "keyint=5:bframes=2:open-gop=1"),)
    refresh = (("x264-params", "keyint=8:intra-refresh=1"),)
    hevc = (("x265-params", "log-level=none:keyint=5:bframes=2:open-gop=1"),)
    kinds = {
        "mp4": {},
        "mp4_open": {"codec_options": open_groups},
        "mp4_refresh": {"codec_options": refresh},
        "mp4_fragments": {"container_options": fragments},
        "mp4_uneven": {"times": (0, 70, 100, 310, 330, 500), "n": 6},
        "mp4_mpeg4": {"codec": "mpeg4"},
        "mov": {"container": "mov", "codec": "mjpeg", "pixels": "yuvj420p"},
        "matroska": {"container": "matroska"},
        "matroska_mpeg4": {"container": "matroska", "codec": "mpeg4"},
        "avi_mpeg4": {"container": "avi", "codec": "mpeg4", "codec_options": (("bf", "2"),)},
        "avi_mpeg2": {"container": "avi", "codec": "mpeg2video", "rate": 25, "codec_options": (("bf", "2"),)},
        "avi_mjpeg": {"container": "avi", "codec": "mjpeg", "pixels": "yuvj420p"},
        "avi_h264": {"container": "avi", "codec_options": (("bf", "2"),)},
        "ts_h264": {"container": "mpegts", "codec_options": open_groups},
        "ts_hevc": {"container": "mpegts", "codec": "libx265", "codec_options": hevc},
        "ts_mpeg2": {"container": "mpegts", "codec": "mpeg2video", "rate": 25, "codec_options": (("bf", "2"),)},
        "ps_mpeg2": {"container": "vob", "codec": "mpeg2video", "rate": 25, "codec_options": (("bf", "2"),)},
        "ps_mpeg1": {"container": "mpeg", "codec": "mpeg1video", "rate": 25},
        "h264": {"container": "h264", "codec_options": (("bf", "2"),)},
        "h264_high": {"pixels": "yuv420p10le", "codec_options": (("x264-params", "cqm=jvt:colorprim=bt709"),)},
        "mp4_hevc": {"codec": "libx265", "codec_options": (("x265-params", "log-level=none:scaling-list=default"),)},
        "hevc": {"container": "hevc", "codec": "libx265", "codec_options": hevc},
        "m2v": {"container": "mpeg2video", "codec": "mpeg2video", "rate": 25},
        "webm_vp8": {"container": "webm", "codec": "libvpx"},
        "webm_vp9": {"container": "webm", "codec": "libvpx-vp9"},
    }
    made = {name: clip(**{"size": (32, 32), "n": 12, **kwargs}) for name, kwargs in kinds.items()}
    made |= {f"mp4_wide{k}": wide(made["mp4_fragments"], at) for k, at in enumerate((2**62, 2**63 - 1, -(2**63)))}
    return made | {"mp4_edits": long_edits(made["mp4"], 2**63 - 1), "mp4_edits_back": long_edits(made["mp4"], -(2**62))}


def wide(file: bytes, time: int) -> bytes:
    """The file with fragments that begin at a time at the end of what 64 bits hold."""
    at = file.index(b"tfdt")
    assert file[at + 4] == 1
    return file[: at + 8] + struct.pack(">q", time) + file[at + 16 :]


def long_edits(file: bytes, number: int) -> bytes:
    """The file with an edit list of numbers at the end of what 64 bits hold."""
    at = file.index(b"elst")
    edits = [(abs(number), 0), (abs(number), number), (1, number), (1, -1)]
    box = b"elst" + struct.pack(">BxxxI", 1, len(edits)) + b"".join(struct.pack(">qqI", *e, 1 << 16) for e in edits)
    old = struct.unpack(">I", file[at - 4 : at])[0]
    made = bytearray(file[: at - 4] + struct.pack(">I", len(box) + 4) + box + file[at - 4 + old :])
    for parent in (b"moov", b"trak", b"edts"):
        place = made.index(parent) - 4
        size = struct.unpack(">I", made[place : place + 4])[0]
        made[place : place + 4] = struct.pack(">I", size + len(box) + 4 - old)
    return bytes(made)


def main() -> int:
    args = damaging.arguments(__doc__).parse_args()
    program = damaging.build(args.build_folder, "fuzz_video", [*SOURCES, "video/parameter_sets", "core/native_time"])
    return damaging.run(program, args, "videos", seeds())


if __name__ == "__main__":
    sys.exit(main())
