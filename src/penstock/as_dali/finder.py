# SPDX-License-Identifier: Apache-2.0
"""Makes `import nvidia.dali...` find the modules of penstock.

Processes started by a program load this file at startup. So it imports almost nothing, and penstock only when the
program imports `nvidia.dali`.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # as in typing, whose import takes longer than everything else here
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DALI = "nvidia.dali"
VERSION = "2.4.0"  # the supported version of DALI; programs compare `__version__` with it
# Modules of DALI that have another name here.
ELSEWHERE = {
    "backend_impl": "backend",
    "backend_impl.types": "types",
    "backend_impl.tfrecord": "tfrecord",
    "_backend_enums": "types",
    "pipeline.experimental": "pipeline",
}


def target(name: str) -> str:
    """The module of penstock for `name`, "nvidia.dali" or a submodule of it."""
    rest = name[len(DALI) + 1 :]
    return "penstock." + ELSEWHERE.get(rest, rest) if rest else "penstock"


def _penstock() -> None:
    """Imports penstock; if it is not on the process's path, from the location of this file."""
    import importlib.util

    if "penstock" in sys.modules or importlib.util.find_spec("penstock") is not None:
        return
    where = os.path.join(PACKAGE, "__init__.py")
    spec = importlib.util.spec_from_file_location("penstock", where, submodule_search_locations=[PACKAGE])
    assert spec is not None and spec.loader is not None
    sys.modules["penstock"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


class _NvidiaFolders(list):
    """The path of the package `nvidia` if no other package provides it: all folders of that name on sys.path, including
    later ones."""

    def __iter__(self) -> Iterator[str]:
        folders = (os.path.join(p or os.curdir, "nvidia") for p in sys.path)
        return (f for f in folders if os.path.isdir(f))


class DaliFinder:
    """Finds `nvidia.dali` and its submodules. Does not affect other modules under `nvidia`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target_module: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "nvidia":
            return self._nvidia()
        if name != DALI and not name.startswith(DALI + "."):
            return None
        _penstock()
        from importlib.util import find_spec

        known = sys.modules.get(target(name))
        if known is not None:
            return ModuleSpec(name, self, is_package=hasattr(known, "__path__"))  # type: ignore[arg-type]
        try:
            found = find_spec(target(name))
        except ImportError:  # its parent is not a package
            return None
        if found is None:
            return None
        package = found.submodule_search_locations is not None
        return ModuleSpec(name, self, is_package=package)  # type: ignore[arg-type]

    def _nvidia(self) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and getattr(finder, "find_spec", None) is not None:
                spec = finder.find_spec("nvidia", None, None)
                if spec is not None:
                    return spec
        spec = ModuleSpec("nvidia", None, is_package=True)
        spec.submodule_search_locations = _NvidiaFolders()
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns the entry of sys.modules: penstock's own module, with its own name and spec.
        ours = importlib.import_module(target(module.__name__))
        sys.modules[module.__name__] = _as_version_of_dali(ours) if module.__name__ == DALI else ours


def _as_version_of_dali(ours: ModuleType) -> ModuleType:
    """The module `nvidia.dali`: same as `penstock`, but with DALI's version."""

    def attribute(name: str) -> object:
        try:
            return getattr(ours, name)
        except AttributeError:
            # `import nvidia.dali` also provides submodules such as `nvidia.dali.tfrecord`.
            try:
                return importlib.import_module(f"{DALI}.{name}")
            except ImportError:
                pass
            raise

    module = type(ours)(ours.__name__, ours.__doc__)
    module.__dict__.update(
        {name: getattr(ours, name) for name in ("__all__", "__file__", "__path__", "__spec__")},
        __version__=VERSION,
        __getattr__=attribute,
        __dir__=lambda: dir(ours),
    )
    return module


def install() -> None:
    """Installs the finder as the first one. Raises ImportError if the real DALI was already imported."""
    if any(type(f).__name__ == "DaliFinder" for f in sys.meta_path):
        return
    real = sys.modules.get(DALI)
    if real is not None:
        raise ImportError(
            f"nvidia.dali was imported already, from {getattr(real, '__file__', 'an unknown place')}. penstock can "
            "take its place only before that: import penstock.as_dali first, or run the program by "
            "`python -m penstock.as_dali`"
        )
    sys.meta_path.insert(0, DaliFinder())


def install_in_children() -> None:
    """Also installs it in Python processes started from now on, such as spawned workers and ranks of launchers."""
    folder = os.path.join(PACKAGE, "as_dali", "startup")
    present = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if folder not in present:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *present])
