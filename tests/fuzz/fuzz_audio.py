# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the decoder of sounds under AddressSanitizer.

    python tests/fuzz/fuzz_audio.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_audio.cpp together with the decoder, makes small files (of FLAC, Vorbis, Opus and MP3 if python-soundfile
is there), and damages them until the time is up. With FILEs and `--seconds 0` it decodes just these, to repeat a crash.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

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
    return {name: data.tobytes() for name, data in made.items()}


def build(folder: Path) -> Path:
    program = folder / "fuzz_audio"
    kernels = ROOT / "kernels"
    names = ("audio/decode_audio", "audio/wav", "audio/sound_library", "audio/sinc_filter", "core/native_time")
    sources = [ROOT / "tests/fuzz/fuzz_audio.cpp", *(kernels / f"{n}.cpp" for n in names)]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    flags = ["-std=c++17", "-O1", "-g", *sanitizers, "-DCLONES=", "-Wno-psabi", f"-I{kernels}"]
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *flags, "-o", str(program), *map(str, sources), "-lsndfile"], check=True)
    return program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build-folder", type=Path, default=ROOT / "build/fuzz")
    parser.add_argument("files", nargs="*", help="files to start from instead of the built-in ones")
    args = parser.parse_args()
    folder = args.build_folder
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    files = list(map(os.path.abspath, args.files))
    if not files:
        for name, data in seeds().items():
            (folder / "sounds" / name).write_bytes(data)
            files.append(str(folder / "sounds" / name))
    command = [str(build(folder)), str(args.seconds), str(args.seed), *files]
    # libsndfile 1.2.0 forgets what it made for Ogg files that it refuses later.
    (folder / "leaks").write_text("leak:vorbis_info_init\nleak:ogg_\nleak:vorbis_\n")
    options = {"ASAN_OPTIONS": "allocator_may_return_null=1", "LSAN_OPTIONS": f"suppressions={folder}/leaks"}
    return subprocess.run(command, cwd=folder, env={**os.environ, **options}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
