# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/recipes.md run, and lines with `# -> value` have that value."""

import importlib.util
import re

from penstock import fn, pipeline_def, types
from test_guide import ROOT, blocks, checkout, execute  # noqa: F401  (a fixture)

PAGE = ROOT / "docs" / "recipes.md"


def test_recipes(checkout):  # noqa: F811
    names: dict = {}
    found = blocks(PAGE)
    assert len(found) >= 15
    for line, code in found:
        needed = re.findall(r"# needs (\w+)", code)
        if all(importlib.util.find_spec(n) for n in needed):
            execute(PAGE, line, code, names)


def crops(seed_of_mask):
    files = sorted(map(str, (ROOT / "examples" / "data").rglob("*.jpg")))

    @pipeline_def(batch_size=len(files), num_threads=2, seed=1)
    def pipe():
        first, second = (fn.readers.file(files=files, shuffle="global", seed=5)[0] for _ in range(2))
        nearest = {"size": 64, "interp_type": types.INTERP_NN}
        image = fn.random_resized_crop(fn.decoders.image(first), seed=7, **nearest)
        return image, fn.random_resized_crop(fn.decoders.image(second), seed=seed_of_mask, **nearest)

    return [x.as_array() for x in pipe().run()]


def test_a_mask_is_cropped_like_its_image():
    """The image takes the place of the mask, so that both crops are the same pixels."""
    image, mask = crops(7)
    assert (image == mask).all()
    image, mask = crops(8)
    assert (image != mask).any()
