# SPDX-License-Identifier: Apache-2.0
"""Every example in a docstring runs and gives the stated result. Every operator has an example."""

import doctest
import importlib
from pathlib import Path

import pytest

import penstock
from penstock.core.op import REGISTRY

ROOT = Path(__file__).parents[1]
# Modules that import a framework are tested if it is installed.
NEEDS = {
    "penstock.plugin.pytorch": "torch",
    "penstock.plugin.jax": "jax",
    "penstock.plugin.jax.clu": "clu",
    "penstock.plugin.lightning": "lightning",
    "penstock.plugin.paddle": "paddle",
    "penstock.plugin.ray": "ray",
    "penstock.plugin.tf": "tensorflow",
    "penstock.experimental.torchvision": "torch",
    "penstock.transforms": "torch",
    "penstock.experimental.dynamic.pytorch._tensors": "torch",
    "penstock.experimental.dynamic.pytorch.nodes": "torchdata",
    "penstock.plugin.numba._pointer": "numba",
}


def modules() -> list[str]:
    names = []
    for path in sorted((ROOT / "src" / "penstock").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@pytest.mark.parametrize("name", modules())
def test_examples(name):
    needed = next((v for k, v in sorted(NEEDS.items(), reverse=True) if name == k or name.startswith(k + ".")), None)
    if needed:
        pytest.importorskip(needed)
    if name.startswith("penstock.as_dali"):
        pytest.skip("takes the place of the real DALI in this process; tests/as_dali runs it in others")
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not outcome.failed


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_operator_has_an_example(name):
    text = REGISTRY[name].__doc__ or ""
    assert ">>>" in text, "the docstring needs an example"
    assert text.strip().partition("\n")[0].endswith((".", ":")) or "`" in text.partition("\n")[0], (
        "a first line that says what it does"
    )


def test_help_shows_arguments_and_signature():
    text = penstock.fn.brightness.__doc__
    assert "brightness_shift : float | DataNode, default 0.0" in text
    assert "brightness=1.0" in str(penstock.fn.brightness.__signature__)
