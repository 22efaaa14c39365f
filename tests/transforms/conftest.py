# SPDX-License-Identifier: Apache-2.0
"""torchvision as the reference, even if its compiled operators do not match the installed PyTorch, as transforms only
need their names. It is also searched for in a folder of the virtual environment (see Makefile)."""

import importlib.util
import re
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
_known = []


@pytest.fixture(scope="session")
def v2():
    apart = str(Path(sys.prefix) / "torchvision")
    sys.path.append(apart)
    try:
        return _v2()
    finally:
        sys.path.remove(apart)


def _v2():
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        pytest.skip("torchvision is not installed")
    try:
        from torchvision.transforms import v2
    except (RuntimeError, OSError):
        text = Path(found.origin).with_name("_meta_registrations.py").read_text()
        library = torch.library.Library("torchvision", "DEF")
        for name in set(re.findall(r'torchvision::(\w+)"', text)) | set(re.findall(r'register_meta\("(\w+)"\)', text)):
            library.define(f"{name}(Tensor x) -> Tensor")
        _known.append(library)
        from torchvision.transforms import v2
    warnings.filterwarnings("ignore", message="The transform `ToTensor")
    return v2
