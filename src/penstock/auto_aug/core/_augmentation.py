# SPDX-License-Identifier: Apache-2.0
"""Augmentations: functions of a batch and a parameter, which is derived from a magnitude bin."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import fn, types
from ...data_node import DataNode
from . import _native
from ._args import MissingArgException, filter_extra_accepted_kwargs, get_missing_kwargs, get_num_positional_args

_POSITIONAL = 2  # the data and the parameter


class _UndefinedParam:
    """Default of arguments for which None is a valid value."""


class _SignedMagnitudeBin:
    """Magnitude bins with signs: `signed_magnitude_idx` is twice the bin, plus one if it is negated."""

    def __init__(self, magnitude_bin: int | DataNode, random_sign: DataNode, signed_magnitude_idx: DataNode):
        self._magnitude_bin, self._random_sign = magnitude_bin, random_sign
        self._signed_magnitude_idx = signed_magnitude_idx

    def __getitem__(self, idx: int) -> _SignedMagnitudeBin:
        """Selects one of several bins per sample."""
        bin_ = self._magnitude_bin if isinstance(self._magnitude_bin, int) else self._magnitude_bin[idx]
        return type(self)(bin_, self._random_sign[idx], self._signed_magnitude_idx[idx])

    @classmethod
    def create_from_bin(
        cls,
        magnitude_bin: int | DataNode,
        random_sign: DataNode | None = None,
        seed: int | None = None,
        shape: tuple | None = None,
    ) -> _SignedMagnitudeBin:
        if not isinstance(magnitude_bin, (int, DataNode)):
            raise TypeError(
                f"`magnitude_bin` takes an int or a DataNode of ints below num_magnitude_bins; got {magnitude_bin!r}"
            )
        if random_sign is None:
            random_sign = fn.random.uniform(values=[0, 1], dtype=types.INT32, seed=seed, shape=shape)
        elif seed is not None or shape is not None:
            raise ValueError("`random_sign` can't be given together with `seed` or `shape`, which are for drawing it")
        return cls(magnitude_bin, random_sign, 2 * magnitude_bin + random_sign)

    @staticmethod
    def _remap_to_signed_magnitudes(magnitudes: Sequence[float] | np.ndarray) -> np.ndarray:
        """Each magnitude followed by its negation."""
        return np.stack([np.asarray(magnitudes), -np.asarray(magnitudes)], axis=1).reshape(-1)

    @property
    def bin(self) -> int | DataNode:
        return self._magnitude_bin

    @property
    def random_sign(self) -> DataNode:
        return self._random_sign

    @property
    def signed_magnitude_idx(self) -> DataNode:
        return self._signed_magnitude_idx


def signed_bin(
    magnitude_bin: int | DataNode,
    random_sign: DataNode | None = None,
    seed: int | None = None,
    shape: tuple | None = None,
) -> _SignedMagnitudeBin:
    """Adds a random sign per sample to magnitude bins, for augmentations with `randomly_negate`.

    `magnitude_bin` is an int or a batch of ints. `random_sign` is a batch of 0 (unchanged) and 1 (negated). By default
    it is drawn, with `seed` and with `shape` per sample.
    """
    return _SignedMagnitudeBin.create_from_bin(magnitude_bin, random_sign, seed, shape)


class Augmentation:
    """Created by `@augmentation` from a function."""

    def __init__(
        self,
        op: Callable[..., DataNode],
        mag_range: tuple[float, float] | np.ndarray | None = None,
        randomly_negate: bool | None = None,
        mag_to_param: Callable[[float], Any] | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ):
        self._op, self._mag_range, self._randomly_negate = op, mag_range, randomly_negate
        self._mag_to_param, self._param_device, self._name = mag_to_param, param_device, name
        count = get_num_positional_args(op)
        if count < _POSITIONAL:
            raise TypeError(
                f"a function for `@augmentation` must accept at least two positional arguments, the samples and the "
                f"parameter; {op} accepts {count}"
            )

    def __repr__(self) -> str:
        given = [f"{k}={v!r}" for k, v in self._get_config().items() if v is not None]
        return f"Augmentation({', '.join([repr(self.op), *given])})"

    def __call__(
        self,
        data: DataNode,
        *,
        magnitude_bin: int | DataNode | _SignedMagnitudeBin | None = None,
        num_magnitude_bins: int | None = None,
        **kwargs: Any,
    ) -> DataNode:
        """Calls `op(data, parameter, **kwargs)` with the parameter of each sample's `magnitude_bin`.

        There are `num_magnitude_bins` magnitudes, evenly spaced over `mag_range`, which may also be the array of all
        magnitudes. The parameter is `mag_to_param(magnitude)`; the magnitude is negated if the sign of a signed bin is
        set. Of `kwargs`, those that the function accepts are passed on.
        """
        device = self.param_device if self.param_device != "auto" else getattr(data, "device", None) or "cpu"
        parameter = self._get_param(magnitude_bin, num_magnitude_bins, device)
        self.check_kwargs(kwargs)
        accepted = filter_extra_accepted_kwargs(self.op, kwargs, _POSITIONAL)
        return _native.converted(self.op)(data, parameter, **accepted)

    @property
    def op(self) -> Callable[..., DataNode]:
        return self._op

    @property
    def mag_range(self) -> tuple[float, float] | np.ndarray | None:
        return self._mag_range

    @property
    def mag_to_param(self) -> Callable[[float], Any]:
        return self._mag_to_param or np.array

    @property
    def randomly_negate(self) -> bool:
        return self._randomly_negate or False

    @property
    def param_device(self) -> str:
        return self._param_device or "cpu"

    @property
    def name(self) -> str:
        return self._name or self.op.__name__

    def augmentation(
        self,
        mag_range: Any = _UndefinedParam,
        randomly_negate: Any = _UndefinedParam,
        mag_to_param: Any = _UndefinedParam,
        param_device: Any = _UndefinedParam,
        name: Any = _UndefinedParam,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """Returns another augmentation of the same function, with the given settings changed."""
        changed = {
            "mag_range": mag_range,
            "randomly_negate": randomly_negate,
            "mag_to_param": mag_to_param,
            "param_device": param_device,
            "name": name,
        }
        config = self._get_config() | {k: v for k, v in changed.items() if v is not _UndefinedParam}
        return (augmentation_cls or type(self))(self.op, **config)

    def _get_config(self) -> dict[str, Any]:
        return {
            "mag_range": self._mag_range,
            "mag_to_param": self._mag_to_param,
            "randomly_negate": self._randomly_negate,
            "param_device": self._param_device,
            "name": self._name,
        }

    def check_kwargs(self, kwargs: dict[str, Any]) -> None:
        """Raises MissingArgException if required arguments of the function are missing."""
        missing = get_missing_kwargs(self.op, kwargs, _POSITIONAL)
        if missing:
            raise MissingArgException(
                f"the augmentation `{self.name}` requires arguments that were not given: {', '.join(missing)}; pass "
                "them by name in the call of the augmentation",
                self,
                missing,
            )

    def magnitudes(self, num_magnitude_bins: int | None) -> np.ndarray | None:
        """Magnitudes (bins,); None if the augmentation has none."""
        mag_range = self.mag_range
        if mag_range is None:
            return None
        if isinstance(mag_range, np.ndarray):
            if num_magnitude_bins is not None and len(mag_range) != num_magnitude_bins:
                raise ValueError(
                    f"the augmentation `{self.name}` has an array of {len(mag_range)} magnitudes as its `mag_range`, "
                    f"but num_magnitude_bins={num_magnitude_bins}"
                )
            return mag_range
        if num_magnitude_bins is None:
            raise ValueError(
                f"the `num_magnitude_bins` argument is missing in the call of `{self.name}`; its range {mag_range} is "
                "divided into that many magnitudes"
            )
        if not hasattr(mag_range, "__len__") or len(mag_range) != 2:
            raise ValueError(
                f"`mag_range` must be a tuple (low, high) or an array of magnitudes; `{self.name}` has {mag_range!r}"
            )
        return np.linspace(*mag_range, num_magnitude_bins, dtype=np.float32)

    def parameters(self, magnitudes: Sequence[float] | np.ndarray) -> np.ndarray:
        """Parameters (n, ...) of magnitudes."""
        found = [self._parameter(m) for m in magnitudes]
        for m, p in zip(magnitudes, found):
            if (p.shape, p.dtype) != (found[0].shape, found[0].dtype):
                raise ValueError(
                    f"`mag_to_param` of `{self.name}` must return the arrays of the same type and shape for all "
                    f"magnitudes; got {found[0].dtype} of shape {found[0].shape} for {magnitudes[0]}, {p.dtype} of "
                    f"shape {p.shape} for {m}"
                )
        return np.array(found)

    def _parameter(self, magnitude: float) -> np.ndarray:
        value = self.mag_to_param(magnitude)
        parts = [value]
        while parts:
            part = parts.pop()
            if isinstance(part, DataNode):
                raise TypeError(
                    f"`mag_to_param` of `{self.name}` returned a `DataNode`; it is called once for each magnitude, "
                    "when the pipeline is defined, and must return an `np.ndarray` or what becomes one. Operators "
                    "belong into the decorated function"
                )
            parts += part if isinstance(part, (list, tuple)) else []
        return np.array(value)

    def _get_param(self, magnitude_bin: Any, num_magnitude_bins: int | None, device: str) -> Any:
        magnitudes = self.magnitudes(num_magnitude_bins)
        if magnitudes is None:
            return None
        if magnitude_bin is None:
            raise ValueError(f"`{self.name}` has a `mag_range`, so it requires `magnitude_bin` to choose from it")
        bins = self.signed(magnitude_bin) if self.randomly_negate else magnitude_bin
        if self.randomly_negate:
            fixed = isinstance(bins.bin, int)
            chosen = magnitudes[bins.bin : bins.bin + 1] if fixed else magnitudes
            table = self.parameters(_SignedMagnitudeBin._remap_to_signed_magnitudes(chosen))
            index = bins.random_sign if fixed else bins.signed_magnitude_idx
        else:
            index = bins.bin if isinstance(bins, _SignedMagnitudeBin) else bins
            if isinstance(index, int):
                return types.Constant(self._parameter(magnitudes[index]), device=device)
            table = self.parameters(magnitudes)
        parameter = types.Constant(table)[index]
        return parameter.gpu() if device == "gpu" else parameter

    def signed(self, magnitude_bin: Any) -> _SignedMagnitudeBin:
        """Converts to signed bins. Bins without signs get random ones, with a warning."""
        if isinstance(magnitude_bin, _SignedMagnitudeBin):
            return magnitude_bin
        warnings.warn(
            f"`{self.name}` has `randomly_negate=True` and got a `magnitude_bin` without signs, so it draws them; call "
            "signed_bin(magnitude_bin) once for all augmentations of a sample instead",
            Warning,
            stacklevel=4,
        )
        return signed_bin(magnitude_bin)
