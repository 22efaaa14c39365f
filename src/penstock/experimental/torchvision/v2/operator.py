# SPDX-License-Identifier: Apache-2.0
"""The base of all transforms, and of rules for their arguments and data."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from .... import fn
from ....pipeline import DataNode
from ._picture import Picture


class DataValidateRule(ABC):
    """A rule for the input images of a transform: `verify` raises an error if it is violated."""

    @classmethod
    @abstractmethod
    def verify(cls, data: Any) -> None: ...


class ArgumentValidateRule(ABC):
    """A rule for the arguments of a transform: `verify` raises an error if it is violated."""

    @classmethod
    @abstractmethod
    def verify(cls, *args: Any, **kwargs: Any) -> None: ...


class Operator(ABC):  # noqa: B024  its `_kernel` is left out by those that `_apply` themselves
    """Base of all transforms.

    A transform of your own overrides `_kernel`, which takes the images as a `DataNode` and returns another one, made by
    functions of `penstock.fn`. It must keep the type of the elements, the layout and the number of channels.

    Parameters
    ----------
    device
        "cpu" or "gpu": the device on which images are processed. Images on another device are copied.
    **kwargs
        The arguments that the rules in `arg_rules` check.

    Attributes
    ----------
    arg_rules
        Rules for the arguments, checked on construction.
    input_rules
        Rules for the images, checked in each call.
    preprocess_data
        If not None, a function that is applied to the `DataNode` before `_kernel`.

    >>> import torch
    >>> from penstock import fn
    >>> class UpsideDown(Operator):
    ...     def _kernel(self, data_input):
    ...         return fn.flip(data_input, horizontal=0, vertical=1)
    >>> UpsideDown()(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8))
    tensor([[[3, 4],
             [1, 2]]], dtype=torch.uint8)
    """

    arg_rules: ClassVar[Sequence[type[ArgumentValidateRule]]] = ()
    input_rules: ClassVar[Sequence[type[DataValidateRule]]] = ()
    preprocess_data: ClassVar[Callable[[Any], Any] | None] = None

    @classmethod
    def verify_args(cls, **kwargs: Any) -> None:
        """Raises the error of the first rule that the arguments violate."""
        for rule in cls.arg_rules:
            rule.verify(**kwargs)

    @classmethod
    def verify_data(cls, data_input: Any) -> None:
        """Raises the error of the first rule that the images violate."""
        for rule in cls.input_rules:
            rule.verify(data_input)

    def __init__(self, device: Literal["cpu", "gpu"] = "cpu", **kwargs: Any):
        if device not in ("cpu", "gpu"):
            raise ValueError(f"device takes 'cpu' or 'gpu', got {device!r}")
        self.device: str = device
        self.verify_args(**kwargs)

    def _kernel(self, data_input: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _kernel, which must be overridden")

    def _apply(self, picture: Picture) -> Picture:
        """Adds the transform to the graph."""
        prepare = type(self).preprocess_data
        return picture.made(self._kernel(picture.data if prepare is None else prepare(picture.data)))

    def _invoke(self, picture: Picture) -> Picture:
        return self._apply(picture.on(self.device))

    def __call__(self, data_input: Any) -> Any:
        """Transforms an image or a batch, as a `Compose` of only this transform does."""
        alone = self.__dict__.get("_alone")
        if alone is None:
            from .compose import Compose

            alone = self.__dict__["_alone"] = Compose([self])
        return alone(data_input)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_alone"}

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.__dict__.items() if not k.startswith("_") and (k, v) != ("device", "cpu")}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


def adjust_input(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function's first argument is an image (`PIL.Image.Image`, or `torch.Tensor` CHW or NCHW), which is
    passed as a `Tensor` or `Batch` of `penstock.experimental.dynamic`, with a layout. Its result is converted back to
    the kind of the argument.

    >>> import torch
    >>> from penstock.experimental import dynamic
    >>> @adjust_input
    ... def upside_down(picture):
    ...     assert picture.layout == "CHW"
    ...     return dynamic.flip(picture, horizontal=0, vertical=1)
    >>> upside_down(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[3, 4],
             [1, 2]]])
    """

    @functools.wraps(func)
    def adjusted(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        from . import _interchange

        return _interchange.apply_to_tensors(func, inpt, args, kwargs)

    return adjusted


def get_input_shape_dynamic(inpt: Any) -> tuple[int, ...]:
    """Returns the shape of a tensor, or of the first sample of a batch.

    >>> import numpy as np
    >>> from penstock.tensors import TensorCPU
    >>> get_input_shape_dynamic(TensorCPU(np.zeros((4, 6, 3), np.uint8), "HWC"))
    (4, 6, 3)
    """
    shape = inpt.shape() if callable(inpt.shape) else inpt.shape
    if len(shape) and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple(int(s) for s in shape)


def get_HWC_from_layout_dynamic(inpt: Any) -> tuple[int, int, int]:
    """Returns height, width and channels of a tensor or batch, from its layout ("HWC", "CHW", or one with more axes).

    >>> import numpy as np
    >>> from penstock.tensors import TensorCPU
    >>> get_HWC_from_layout_dynamic(TensorCPU(np.zeros((3, 4, 6), np.uint8), "CHW"))
    (4, 6, 3)
    """
    layout = inpt.layout() if callable(inpt.layout) else inpt.layout
    if not layout or not set("HWC") <= set(layout):
        raise ValueError(f"pictures need a layout with H, W and C, such as 'HWC' or 'CHW'; got {layout!r}")
    shape = get_input_shape_dynamic(inpt)
    height, width, channels = (shape[layout.index(axis) - len(layout)] for axis in "HWC")
    return height, width, channels


def get_HWC_from_layout_pipeline(data_input: DataNode) -> tuple[DataNode, DataNode, DataNode, DataNode]:
    """Returns height, width and channels of images HWC or CHW, or sequences of them (FHWC, FCHW), in a graph; and the
    images.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return get_HWC_from_layout_pipeline(types.Constant(np.zeros((3, 4, 6), np.uint8), layout="CHW"))[:3]
    >>> [int(size.at(0)) for size in pipe().run()]
    [4, 6, 3]
    """
    layout, shape = fn.get_property(data_input, key="layout"), data_input.shape()
    # Selects an axis by its letter in the layout, where each occurs once.
    sizes = [fn.reductions.sum(shape * (layout == ord(axis))) for axis in "HWC"]
    return sizes[0], sizes[1], sizes[2], data_input
