# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the decoder of sounds under AddressSanitizer.

    python tests/fuzz/fuzz_audio.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_audio.cpp together with the decoder, makes small files (of FLAC, Vorbis, Opus and MP3 if python-soundfile
is there, of MP4 and AAC if PyAV is), and damages them until the time is up. With FILEs and `--seconds 0` it decodes
just these, to repeat a crash.
"""

import sys
from pathlib import Path

import damaging

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/operators/audio"))

from sound_files import encoded, noise, pcm, wav  # noqa: E402


def seeds() -> dict[str, bytes]:
    made = {f"wav{b}": wav(pcm(noise(300, 2), b)[1], 2, bits=b) for b in (8, 16, 24, 32)}
    made |= {f"wav_law{code}": wav(bytes(range(256)), bits=8, code=code) for code in (6, 7)}
    made |= {f"wav_real{b}": wav(noise(99).astype(f"f{b // 8}").tobytes(), bits=b, code=3) for b in (32, 64)}
    made["wav_extensible"] = wav(pcm(noise(100, 3), 24)[1], 3, bits=24, extensible=True)
    made["wav_long"] = wav(pcm(noise(100), 16)[1], riff=b"RF64")
    try:
        for fmt, subtype in (
            *(("FLAC", s) for s in ("PCM_16", "PCM_24", "PCM_S8")),
            *(("OGG", s) for s in ("VORBIS", "OPUS")),
            *(("WAV", s) for s in ("IMA_ADPCM", "MS_ADPCM", "GSM610")),
            *((f, "PCM_16") for f in ("AIFF", "W64", "AU", "CAF", "NIST")),
            ("MP3", "MPEG_LAYER_III"),
        ):
            channels = 1 if subtype == "GSM610" else 2
            made[f"{fmt}_{subtype}"] = encoded(noise(2000, channels), 16000, fmt, subtype)
    except ImportError:
        print("without python-soundfile: WAV only")
    return {name: data.tobytes() for name, data in made.items()} | tracks()


def tracks() -> dict[str, bytes]:
    try:
        from sound_tracks import encoded
    except ImportError:
        print("without PyAV: no MP4, no AAC")
        return {}
    kinds = {
        "mp4_aac": {},
        "m4a_aac": {"container": "ipod", "channels": 1},
        "mov_aac": {"container": "mov"},
        "mp4_fragments": {"options": {"movflags": "frag_keyframe+empty_moov", "frag_duration": "100000"}},
        "mp4_late": {"begin": 0.3, "pictures": 3},
        "adts": {"container": "adts"},
        "m4a_alac": {"codec": "alac", "container": "ipod"},
        "mp4_flac": {"codec": "flac"},
        "mp4_mp3": {"codec": "libmp3lame"},
        "mp4_opus": {"codec": "libopus", "rate": 48000},
        "webm_opus": {"codec": "libopus", "container": "webm", "rate": 48000},
        "matroska_aac": {"container": "matroska", "pictures": 3},
        "mov_ac3": {"codec": "ac3", "container": "mov", "rate": 48000},
    }
    return {name: encoded(**{"frames": 4000, **kind}) for name, kind in kinds.items()}


def ffmpeg() -> str:
    """libavutil and libavcodec, if they are there."""
    try:
        from penstock.operators.decode._ffmpeg import _candidates
    except ImportError:
        return ""
    return ":".join(next(_candidates())[1:])


def main() -> int:
    args = damaging.arguments(__doc__).parse_args()
    sources = (
        "decode_audio flac flac_frame wav sound_library sinc_filter ffmpeg_sound mp4_sound matroska_sound sound_track"
    )
    containers = "ffmpeg index mp4 matroska avi esds clip packed_index codecs runs h264 elementary transport program "
    containers += "wrapped h264_pictures hevc_pictures mpeg_pictures"
    names = [f"audio/{name}" for name in sources.split()] + [f"video/{name}" for name in containers.split()]
    names.append("core/native_time")
    program = damaging.build(args.build_folder, "fuzz_audio", names, ["-lsndfile"])
    # libsndfile 1.2.0 forgets what it made for Ogg files that it refuses later.
    leaks = args.build_folder.resolve() / "leaks"
    leaks.write_text("leak:vorbis_info_init\nleak:ogg_\nleak:vorbis_\n")
    options = {"LSAN_OPTIONS": f"suppressions={leaks}"}
    if libraries := ffmpeg():
        options["FFMPEG_LIBRARIES"] = libraries
    return damaging.run(program, args, "sounds", seeds(), options=options)


if __name__ == "__main__":
    sys.exit(main())
