# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the decoder of sounds, and the parsers of the readers that use it, under AddressSanitizer.

    python tests/fuzz/fuzz_audio.py [--seconds 180 | --inputs N] [--seed 0] [--of sounds|sound_head|nemo_asr] [FILE...]

Builds fuzz_audio.cpp together with the decoder, makes small files (of FLAC, Vorbis, Opus and MP3 if python-soundfile
is there, of MP4 and AAC if PyAV is), and damages them until the time is up, a third of it for each, or so many of them
for each. With FILEs and `--seconds 0 --of ...` it decodes just these, to repeat a crash.
"""

import contextlib
import sys
from pathlib import Path

import damaging

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/operators/audio"))

from sound_files import chunk, encoded, noise, pcm, wav  # noqa: E402


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


def long_seeds() -> dict[str, bytes]:
    """WAV and FLAC files that do not end within their first 4096 bytes, of which readers read only these, and some that
    do; in one the samples begin behind those bytes."""
    made = {f"long{b}": wav(pcm(noise(2000, 2), b)[1], 2, bits=b) for b in (8, 16, 24, 32)}
    made["long_law"] = wav(bytes(range(256)) * 20, bits=8, code=7)
    made["long_real"] = wav(noise(2000).astype("f4").tobytes(), bits=32, code=3)
    made["long_rf64"] = wav(pcm(noise(2500), 16)[1], riff=b"RF64")
    made["cut"] = wav(pcm(noise(2500), 16)[1], length=100_000)
    made["late"] = wav(pcm(noise(500), 16)[1], before=chunk(b"LIST", bytes(5000)))
    with contextlib.suppress(ImportError):
        made |= {f"long_flac{n}": encoded(noise(30000, n), 16000, "FLAC") for n in (1, 2)}
    return seeds() | {name: data.tobytes() for name, data in made.items()}


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
        "mp3_untold": {"codec": "libmp3lame", "container": "mp3", "options": {"write_xing": "0"}},
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
    all_seeds = {"sounds": seeds, "sound_head": long_seeds, "nemo_asr": long_seeds}
    parser = damaging.arguments(__doc__)
    parser.add_argument("--of", choices=list(all_seeds), help="only these; with files, which it is needed for")
    args = parser.parse_args()
    sources = (
        "decode_audio flac flac_frame wav sound_library mpeg_length sinc_filter ffmpeg_sound mp4_sound matroska_sound "
        "sound_track"
    )
    containers = "ffmpeg index mp4 matroska avi esds clip packed_index codecs runs h264 elementary transport program "
    containers += "wrapped h264_pictures hevc_pictures mpeg_pictures"
    names = [f"audio/{name}" for name in sources.split()] + [f"video/{name}" for name in containers.split()]
    names += ["core/native_time", "core/memory", "core/python"]
    names += [f"read/{name}" for name in ("sound_head", "nemo_asr", "unread", "local_files", "url")]
    program = damaging.build(args.build_folder, "fuzz_audio", names, ["-lsndfile"])
    # libsndfile 1.2.0 forgets what it made for Ogg files that it refuses later.
    leaks = args.build_folder.resolve() / "leaks"
    leaks.write_text("leak:vorbis_info_init\nleak:ogg_\nleak:vorbis_\n")
    options = {"LSAN_OPTIONS": f"suppressions={leaks}"}
    if libraries := ffmpeg():
        options["FFMPEG_LIBRARIES"] = libraries
    wanted = [args.of] if args.of else list(all_seeds)
    args.seconds /= len(wanted)
    codes = (damaging.run(program, args, name, all_seeds[name](), options=options) for name in wanted)
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
