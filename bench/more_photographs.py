# SPDX-License-Identifier: Apache-2.0
"""Three different files of each photograph, with its own quantization: as it is, mirrored, and turned by 180 degrees
with its edges cut off. For benchmarks that need more files than there are photographs.

    python bench/more_photographs.py FOLDER TARGET
"""

import shutil
import sys
from pathlib import Path

from PIL import Image, ImageOps


def main(folder: str, target: str) -> None:
    for file in sorted(Path(folder).rglob("*.jpg")):
        copy = Path(target, file.relative_to(folder))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        with Image.open(file) as opened:
            options = {"qtables": opened.quantization, "subsampling": 2}
            image = opened.convert("RGB")
        w, h = image.size
        ImageOps.mirror(image).save(copy.with_suffix(".mirrored.jpg"), **options)
        image.rotate(180).crop((8, 8, w - 3, h - 5)).save(copy.with_suffix(".turned.jpg"), **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
