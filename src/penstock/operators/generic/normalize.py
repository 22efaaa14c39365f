# SPDX-License-Identifier: Apache-2.0
"""Normalisation by mean and standard deviation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample
from ...core.pixel_steps import are_fractions, warn_of_fractions
from ._moments import _Moments, _PooledMoments, parameters
from ._reduced import TYPES, Reduced

_COMPUTED, _ARGUMENT, _INPUT = range(3)  # enum Origin of the kernel


class Normalize(Reduced):
    """Subtracts the mean and divides by the standard deviation:
    `out = (in - mean) * scale / sqrt(stddev^2 + epsilon) + shift`.

    A mean or standard deviation that is not given is computed along `axes`: the mean, and the root of the mean squared
    distance from the (computed or given) mean; in float64, in two passes. Constant data become `shift`. Tensors given
    as `mean` and `stddev` have extent 1 along the reduced axes and the input's extents along the others; without
    `axes`, they determine which axes are reduced. A sequence (FHWC) is one tensor: its frames share a mean if F is
    reduced.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.normalize(types.Constant([1.0, 2.0, 3.0]), scale=2.0, ddof=1)
    >>> pipe().run()[0].at(0).tolist()
    [-2.0, 0.0, 2.0]
    """

    kernel = "math/normalize"
    tensors = ("mean", "stddev")
    batch = Arg(bool, False, "Whether to compute mean and standard deviation of all samples of the batch together.")
    mean = PerSample(float, None, "The mean, as one value or a tensor. By default it is computed.")
    stddev = PerSample(float, None, "The standard deviation, as one value or a tensor. By default it is computed.")
    shift = Arg(float, 0.0, "Value added last.")
    scale = Arg(float, 1.0, "Factor of the normalised values.")
    ddof = Arg(int, 0, "Delta degrees of freedom: subtracted from the number of elements in the variance.")
    epsilon = Arg(float, 0.0, "Added to the variance, to avoid division by very small numbers.")
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output.")

    def setup(self) -> None:
        super().setup()
        if to_numpy(self.values["dtype"]).name not in TYPES:
            raise ValueError(
                f"output type {to_numpy(self.values['dtype']).name} is not supported; supported: {', '.join(TYPES)}"
            )
        if self.has_axes() and self.values["mean"] is not None and self.values["stddev"] is not None:
            raise ValueError("'axes' have no meaning when 'mean' and 'stddev' are single values; leave them out")
        both = [self.values[k] for k in self.tensors]
        self.fractions = both if _are_constant_fractions(both, self.values) else None

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        if self.fractions is not None and x.dtype == np.uint8:
            warn_of_fractions("fn.normalize", self.tensors, *self.fractions)
            self.fractions = None

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        tensors = {
            k: v for k in cls.tensors if not isinstance(v := kwargs.get(k), (int, float, np.generic, type(None)))
        }
        if tensors:
            rest = {k: v for k, v in kwargs.items() if k not in tensors}
            both: list[Any] = [kwargs.get(k) for k in cls.tensors]
            if _are_constant_fractions(both, kwargs):
                rest["constants"] = [np.ravel(v).tolist() for v in both]
            return call(_NormalizeBy, (*inputs, *tensors.values()), {**rest, "roles": list(tensors)})
        given = [k for k in cls.tensors if kwargs.get(k) is not None]
        if not kwargs.get("batch") or len(given) == 2 or len(inputs) != 1:
            return None
        if kwargs.get("device") == "gpu" or ("device" not in kwargs and getattr(inputs[0], "device", "cpu") == "gpu"):
            return call(_NormalizeTogether, inputs, kwargs)
        axes = {k: kwargs[k] for k in ("axes", "axis_names") if k in kwargs}
        moments = call(_Moments, inputs, {**axes, "center": kwargs.get("mean")})
        pooled = call(_PooledMoments, (moments,), {"ddof": kwargs.get("ddof"), "centered": "mean" in given})
        estimates = {k: v for k, v in zip(cls.tensors, pooled) if k not in given}
        rest = {"roles": list(estimates), "estimated": True}
        return call(_NormalizeBy, (*inputs, *estimates.values()), {**kwargs, **rest})

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        return x.like(dtype=a.dtype)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        columns: dict[str, Any] = {k: getattr(a, k) for k in ("ddof", "epsilon", "scale", "shift")}
        for name, value in (("mean", a.mean), ("stddev", a.stddev)):
            columns[f"{name}_origin"] = _COMPUTED if value is None else _ARGUMENT
            columns[name] = 0.0 if value is None else value
        return {"reduced": a.mask, **columns}


class _NormalizeBy(Normalize):
    """Normalises by further inputs: the mean, the standard deviation, or both, according to `roles`."""

    inputs = (2, 3)
    n_named = 1
    roles = Arg([str], doc="What the further inputs are.")
    constants = Arg(object, None, "Both, where they seem to be meant for pixels between 0 and 1.")
    estimated = Arg(bool, False, "Whether they were computed from the batch: flat, and a deviation of 0 gives 0.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        return None

    def setup(self) -> None:
        super().setup()
        self.fractions = self.values["constants"]
        if self.values["batch"] and not self.values["estimated"]:
            raise ValueError(
                "batch=True computes one mean for all samples and can't be used with tensors as 'mean' or 'stddev'"
            )

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        for name, given in zip(self.values["roles"], more):
            if given.dtype.kind != "f" or given.dtype.itemsize < 4:
                raise TypeError(f"argument '{name}' takes float32, got {given.dtype.name}; fn.cast converts it")
        if self.values["estimated"]:
            return
        tensors = {name: spec for name, spec in zip(self.values["roles"], more) if spec.ndim}
        for name, spec in tensors.items():
            _check_shape(name, spec, x, a.reduced if self.has_axes() else None)
        if not tensors:
            return
        first, last = list(tensors.values())[0], list(tensors.values())[-1]
        SampleErrors.where(
            (first.shape != last.shape).any(axis=1),
            lambda i: f"the shapes of mean and stddev differ: {first.shape[i].tolist()} and {last.shape[i].tolist()}",
        )
        if not self.has_axes():
            a.reduced, a.mask = first.shape == 1, a.native.zeros(a.mask.shape, "u1")
            a.mask[:, : x.ndim] = a.reduced

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        columns = super().params(a, *specs)
        return {**columns, **{f"{name}_origin": _INPUT for name in a.roles}, "is_estimate": a.estimated}


class _NormalizeTogether(Normalize):
    """Normalises by moments that the kernel computes over all samples. GPU only."""

    devices = ("gpu",)
    mixes_samples = True

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        return None

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        parameters(x, a.reduced)
        return super().outputs(a, x)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "together": True}


def _are_constant_fractions(both: list[Any], values: dict[str, Any]) -> bool:
    are_constants = all(isinstance(v, (float, list, tuple, np.ndarray, np.floating)) for v in both)
    return are_constants and values.get("scale") in (None, 1) and are_fractions(*both)


def _check_shape(name: str, given: Spec, x: Spec, reduced: np.ndarray | None) -> None:
    """Raises errors unless a tensor has extent 1 along `reduced` axes and the extent of `x` along the others (1 or that
    of `x` along each axis if None)."""
    if given.ndim != x.ndim:
        raise ValueError(
            f"'{name}' has {given.ndim} dimensions, the input {x.ndim}; it needs as many, "
            "with extent 1 along the reduced axes"
        )
    wrong = (given.shape != 1) & (given.shape != x.shape)
    if reduced is not None:
        wrong |= given.shape != np.where(reduced, 1, x.shape)
    SampleErrors.where(
        wrong.any(axis=1),
        lambda i: (
            f"'{name}' of shape {given.shape[i].tolist()} does not fit the input of shape {x.shape[i].tolist()}; "
            "it needs extent 1 along the reduced axes and the input's along the others"
        ),
    )
