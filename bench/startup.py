# SPDX-License-Identifier: Apache-2.0
"""Time to import, time to the first batch, and installed size, beside DALI's."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, files, requires
from pathlib import Path

import measure
from images_cpu import files as photos

SCRIPT = """
import sys, time
import numpy
t0 = time.perf_counter()
if sys.argv[1] == "penstock":
    import penstock
    from penstock import fn, pipeline_def, types
else:
    import nvidia.dali
    from nvidia.dali import fn, pipeline_def, types
t1 = time.perf_counter()

@pipeline_def(batch_size=64, num_threads=2, device_id=None)
def pipe():
    jpegs, labels = fn.readers.file(files=sys.argv[2:], name="reader")
    images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
    return fn.crop_mirror_normalize(images, crop=(224, 224), mean=[124.0], std=[58.0]), labels

p = pipe()
p.build()
p.run()
print(t1 - t0, time.perf_counter() - t1)
"""


def installed_mb(package: str, seen: set[str] | None = None) -> float:
    """Size on disk in MB of a package and its requirements, without NumPy."""
    seen = set() if seen is None else seen
    if package in seen or package == "numpy":
        return 0.0
    seen.add(package)
    if package == "penstock":
        return penstock_mb()
    try:
        total = sum(Path(f.locate()).stat().st_size for f in files(package) or [] if Path(f.locate()).exists())
    except PackageNotFoundError:
        return 0.0
    needs = [r.split(";")[0].split("[")[0] for r in requires(package) or [] if "extra ==" not in r]
    names = [
        "".join(c for c in n.split(" ")[0] if c.isalnum() or c in "-_.").split("<")[0].split(">")[0].split("=")[0]
        for n in needs
    ]
    return total / 1e6 + sum(installed_mb(n, seen) for n in names)


def penstock_mb() -> float:
    """Unpacked size of the wheel, with its codecs; without a wheel, the size of the checkout's package, which uses the
    system's."""
    wheels = sorted((measure.ROOT / "dist").glob("penstock-*.whl"))
    if wheels:
        return sum(f.file_size for f in zipfile.ZipFile(wheels[-1]).infolist()) / 1e6
    folders = (measure.ROOT / "src" / "penstock", measure.ROOT / "kernels")
    return sum(f.stat().st_size for d in folders for f in d.rglob("*") if f.is_file() and f.suffix != ".pyc") / 1e6


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    # Installed packages have bytecode, so the checkout may write its own. The first run is not measured.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", "import penstock"], env=environment)
    times: dict[str, list[tuple[float, float]]] = {"penstock": [], "nvidia.dali": []}
    for _ in range(max(o.rounds, 5)):
        for module, rows in times.items():
            command = [sys.executable, "-c", SCRIPT, module, *photos(o, "photos500")]
            run = subprocess.run(command, capture_output=True, text=True, env=environment)
            if run.returncode == 0:
                a, b = map(float, run.stdout.split()[-2:])
                rows.append((a, b))
            else:
                print(run.stderr.strip().splitlines()[-1], file=sys.stderr)
    lines = [
        "# Starting up",
        "",
        measure.machine(),
        f"Medians of {max(o.rounds, 5)} interleaved runs. Written by `bench/startup.py`.",
        "",
    ]
    lines += [
        "| | import over `import numpy`, s | first batch of 64 after it, s | installed without NumPy, MB |",
        "|---|---|---|---|",
    ]
    for module, package in (("penstock", "penstock"), ("nvidia.dali", "nvidia-dali-cuda130")):
        if times[module]:
            a, b = (statistics.median(c) for c in zip(*times[module]))
            lines.append(f"| {module} | {a:.3f} | {b:.3f} | {installed_mb(package):.0f} |")
    lines.append("| asked for | 0.08 | 0.2 | 60 |")
    measure.write(o.out, "startup.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
