# SPDX-License-Identifier: Apache-2.0
"""What it takes until the first batch: finding the records of large files, and reading the annotations of COCO.

Results are kept beside the data, so that a long measurement can be made in pieces: --only takes a regular
expression."""

from __future__ import annotations

import json
import os
import re
import resource
import struct
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import measure

RECORDS, LINKS, RECORD_BYTES = 1_280_000, 10, 110_000
IMAGES, OBJECTS, JSON_BYTES = 118_000, 860_000, 450_000_000


def _tfrecord_headers() -> bytes:
    """The first 12 bytes of a record."""
    from penstock.core.kernels import library

    length = struct.pack("<Q", RECORD_BYTES)
    crc = library().checksum_crc32c(length, 8, 0)
    return length + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _tar_header(i: int) -> bytes:
    member = tarfile.TarInfo(f"train/n{i // 1300:08}_{i:08}.jpg")
    member.size = RECORD_BYTES
    return member.tobuf(tarfile.USTAR_FORMAT)


def _sparse(path: Path, step: int, header) -> None:
    """A sparse file of records: only the headers are written, so the rest takes no disk space."""
    with open(path, "wb") as f:
        for i in range(RECORDS // LINKS):
            f.seek(i * step)
            f.write(header(i))
        f.truncate(RECORDS // LINKS * step + (1024 if path.suffix == ".tar" else 0))


def _annotations(path: Path) -> None:
    """Objects with a box and a polygon each; one in a hundred has a mask instead, as in instances_train2017.json."""
    import numpy as np

    rng = np.random.default_rng(0)
    images = [
        {"license": 3, "file_name": f"{i:012}.jpg", "coco_url": f"http://images.cocodataset.org/train2017/{i:012}.jpg"}
        | {"height": 480, "width": 640, "date_captured": "2013-11-14 11:18:45", "id": i}
        | {"flickr_url": f"http://farm9.staticflickr.com/8186/{i:010}_edcab3e1d7_z.jpg"}
        for i in range(1, IMAGES + 1)
    ]
    # As many vertices as fill the file, given the size of the rest.
    vertices = (JSON_BYTES - 230 * IMAGES - 170 * OBJECTS) // (OBJECTS * 7 * 2)
    # The same few thousand outlines are repeated, as text, to save time.
    outlines = [json.dumps(p) for p in rng.uniform(0, 480, (4096, 2 * vertices)).round(2).tolist()]
    masks = [{"counts": rng.integers(1, 99, 400).tolist(), "size": [480, 640]} for _ in range(64)]
    with open(path, "w") as f:
        f.write('{"info": {"year": 2017}, "images": ' + json.dumps(images) + ', "annotations": [')
        for k in range(OBJECTS):
            x, y, w, h = rng.uniform(1, 300, 4).round(2).tolist()
            is_crowd = k % 100 == 0
            shape = json.dumps(masks[k % 64]) if is_crowd else f"[{outlines[k % 4096]}]"
            f.write(
                f'{", " * (k > 0)}{{"segmentation": {shape}, "area": {w * h:.4f}, "iscrowd": {int(is_crowd)}, '
                f'"image_id": {k * 7919 % IMAGES + 1}, "bbox": [{x}, {y}, {w}, {h}], "category_id": {k % 80 + 1}, '
                f'"id": {k + 1}}}'
            )
        f.write('], "categories": ' + json.dumps([{"id": i, "name": f"c{i}"} for i in range(1, 81)]) + "}")


def folder() -> Path:
    """The folder with the files, which are made once."""
    root = Path(tempfile.gettempdir()) / f"penstock-bench-scans-{os.getuid()}"
    if (root / "done").exists():
        return root
    root.mkdir(exist_ok=True)
    header = _tfrecord_headers()
    _sparse(root / "0.tfrecord", RECORD_BYTES + 16, lambda i: header)
    _sparse(root / "0.tar", 512 + -(-RECORD_BYTES // 512) * 512, _tar_header)
    for i in range(1, LINKS):
        for kind in ("tfrecord", "tar"):
            (root / f"{i}.{kind}").unlink(missing_ok=True)
            (root / f"{i}.{kind}").symlink_to(root / f"0.{kind}")
    _annotations(root / "instances.json")
    (root / "done").touch()
    return root


def _reader(name: str, module: str):
    if module == "DALI":
        from nvidia.dali import fn, pipeline_def
    else:
        from penstock import fn, pipeline_def, tfrecord

    root = folder()

    @pipeline_def(batch_size=8, num_threads=2, device_id=None)
    def pipe():
        if name == "coco":
            arguments = {"file_root": str(root), "annotations_file": str(root / "instances.json")}
            return tuple(fn.readers.coco(name="r", **arguments, polygon_masks=True, image_ids=True))
        paths = [str(root / f"{i}.{name}") for i in range(LINKS)]
        if name == "tar":
            return fn.readers.webdataset(name="r", paths=paths, ext=["jpg"])
        features = {"x": tfrecord.FixedLenFeature((), tfrecord.string, "")}
        return fn.readers.tfrecord(name="r", path=paths, features=features)["x"]

    return pipe()


def _memory_mb(field: str) -> float:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field)) / 1e3


def work(task: str) -> None:
    """In a separate process: measures the time until the pipeline is built, and the memory for it."""
    name, _, module = task.partition(": ")
    module, _, is_kept = module.partition(", ")
    kept = tempfile.mkdtemp() if name != "coco" else ""
    if name != "coco":
        os.environ["XDG_CACHE_HOME"] = kept
    if is_kept:
        _reader(name, module).build()
    pipe = _reader(name, module)
    resident, cpu, begin = _memory_mb("VmRSS"), time.process_time(), time.perf_counter()
    pipe.build()
    rate = {"cpu_s": time.process_time() - cpu, "seconds": time.perf_counter() - begin}
    rate |= {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 - resident}
    rate |= {"kept_mb": _memory_mb("VmRSS") - resident, "n": next(iter(pipe.reader_meta().values()))["epoch_size"]}
    rate |= {"images_per_s": rate["n"] / rate["seconds"]}
    print(json.dumps(rate), flush=True)
    os._exit(0)


TASKS = [f"{name}: penstock{kept}" for name in ("tfrecord", "tar") for kept in ("", ", kept")]
TASKS += ["coco: penstock", "coco: DALI"]


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        work(o.worker)
    root = folder()
    size = (root / "instances.json").stat().st_size
    results = measure.measure(__file__, [t for t in TASKS if re.search(o.only, t)], o)
    results = measure.kept(root / "results.json", results)
    lines = [
        "# Until the first batch",
        "",
        measure.machine(),
        f"{RECORDS} records, or members of tar archives, of {RECORD_BYTES} bytes in {LINKS} files without an index; "
        f"annotations as in COCO's train2017: {IMAGES} images, {OBJECTS} objects with polygons, {size / 1e6:.0f} MB. "
        f"Medians of {o.rounds} interleaved runs, each in a new process, files in the system's cache. "
        f"{measure.versions('nvidia-dali-cuda130', 'numpy')}.",
        "Written by `bench/format_scans.py`.",
        "",
        "| | s | processor s | memory at most, MB | that remains, MB |",
        "|---|---|---|---|---|",
    ]
    for name in (t for t in TASKS if t in results):
        r = results[name]
        lines.append(f"| {name} | {r['seconds']:.2f} | {r['cpu_s']:.2f} | {r['peak_mb']:.0f} | {r['kept_mb']:.0f} |")
    lines += ["", "| claim | measured | wanted | |", "|---|---|---|---|"]
    claims = []
    for name in ("tfrecord", "tar"):
        claims += [(f"{name}, processor s", f"{name}: penstock", "cpu_s", 2.0)]
        claims += [(f"{name}, kept, processor s", f"{name}: penstock, kept", "cpu_s", 0.3)]
    for text, task, key, most in claims:
        if task in results:
            got = results[task][key]
            lines.append(f"| {text} | {got:.2f} | at most {most} | {'reached' if got <= most else '**missed**'} |")
    if "coco: penstock" in results:
        r = results["coco: penstock"]
        rate, share = size / 1e6 / r["cpu_s"], r["peak_mb"] / r["kept_mb"]
        lines.append(
            f"| coco, MB per processor s | {rate:.0f} | at least 400 | {'reached' if rate >= 400 else '**missed**'} |"
        )
        text = "coco, memory at most, as a multiple of what remains"
        lines.append(f"| {text} | {share:.2f} | below 3 | {'reached' if share < 3 else '**missed**'} |")
    measure.write(o.out, "format_scans.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
