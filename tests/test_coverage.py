# SPDX-License-Identifier: Apache-2.0
"""Every operator has a file of its name, and a test file that mirrors it."""

from pathlib import Path

from penstock.core.op import REGISTRY

ROOT = Path(__file__).parents[1]


def test_every_operator_has_a_test_file():
    """test_<operator>.py, or a file of the family that tests several and names them."""
    missing = []
    for name, cls in REGISTRY.items():
        family, module = cls.__module__.split(".")[-2:]
        folder = ROOT / "tests" / "operators" / family
        if (folder / f"test_{module}.py").exists():
            continue
        if not any(name in (t := p.read_text()) or f'"{module}"' in t for p in folder.glob("test_*.py")):
            missing.append(f"fn.{name}: tests/operators/{family}/test_{module}.py")
    assert not missing


def test_every_operator_has_a_file_of_its_name():
    """fn.decoders.image_crop is operators/<family>/image_crop.py."""
    wrong = [
        f"fn.{n} is in {c.__module__}" for n, c in REGISTRY.items() if c.__module__.split(".")[-1] != n.split(".")[-1]
    ]
    assert not wrong
