# SPDX-License-Identifier: Apache-2.0
"""Sequences of transforms as one graph."""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from PIL import Image

from ....core.errors import suggest
from ....pipeline import DataNode, Pipeline
from ....plugin.pytorch.torch_utils import to_torch_tensor as _to_torch_tensor
from . import _interchange
from ._graph import Graph
from ._interchange import Kind
from ._picture import Picture
from .operator import Operator
from .totensor import output_form

DEFAULT_BATCH_SIZE = 16
DEFAULT_NUM_THREADS = 1


def transforms_of(op_list: Any, who: str) -> list[Operator]:
    """The transforms of a list, including those of each `Compose` in it. Raises TypeError for anything else."""
    if isinstance(op_list, Compose):
        return list(op_list.op_list)
    if not isinstance(op_list, Sequence) or isinstance(op_list, str):
        raise TypeError(f"{who} takes a list of transforms, got {type(op_list).__name__}")
    found: list[Operator] = []
    for i, op in enumerate(op_list):
        if isinstance(op, Compose):
            found += op.op_list
        elif isinstance(op, Operator):
            found.append(op)
        else:
            raise TypeError(
                f"{who} takes transforms of penstock.experimental.torchvision; number {i} of the list is "
                f"{type(op).__name__}, {op!r}. Your own derive from v2.operator.Operator"
            )
    return found


def to_torch_tensor(x: Any) -> Any:
    """A `TensorListCPU` or `TensorListGPU` whose samples have one shape, or a tensor, as a `torch.Tensor` that shares
    its memory; of a tuple each, or just that if there is one.

    >>> import numpy as np
    >>> from penstock.tensors import TensorListCPU
    >>> to_torch_tensor((TensorListCPU(np.zeros((2, 3))),)).shape
    torch.Size([2, 3])
    """
    if isinstance(x, tuple):
        return to_torch_tensor(x[0]) if len(x) == 1 else tuple(to_torch_tensor(each) for each in x)
    return _to_torch_tensor(x, copy=False)


class PipelineWithLayout(ABC):
    """Base: a list of transforms for images with the channels first, or last. Created by `Compose`.

    Parameters
    ----------
    op_list
        Transforms.
    layout
        "HWC" or "CHW".
    batch_size
        Expected number of images in a batch; larger ones are transformed too.
    num_threads
        Number of native threads.
    **dali_pipeline_kwargs
        Further arguments of `penstock.Pipeline`, such as `seed` and `device_id`.
    """

    def __init__(
        self,
        op_list: list[Callable[..., Sequence[DataNode] | DataNode]],
        layout: str,
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_threads: int = DEFAULT_NUM_THREADS,
        **dali_pipeline_kwargs: Any,
    ):
        self.op_list, self._layout = transforms_of(op_list, type(self).__name__), layout
        self._arguments = {"batch_size": batch_size, "num_threads": num_threads, **dali_pipeline_kwargs}
        for name in ("batch_size", "num_threads"):
            value = self._arguments[name]
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} takes a positive integer, got {value!r}")
        known = inspect.signature(Pipeline.__init__).parameters
        for name in dali_pipeline_kwargs:
            if name not in known:
                raise TypeError(f"{name!r} is not an argument of Compose or penstock.Pipeline.{suggest(name, known)}")
        Pipeline(**self._arguments)  # raises errors for invalid values
        self._form = output_form(self.op_list)
        self._verified = [op for op in self.op_list if op.input_rules]
        self._graphs: dict[Kind, Graph] = {}
        self._lock = threading.Lock()

    def run(self, data_input: Any) -> Any:
        """Transforms an image or a batch."""
        self.verify_layout(data_input)
        for op in self._verified:
            op.verify_data(data_input)
        taken = _interchange.take(data_input)
        graph = self._graphs.get(taken.kind) or self._made(taken.kind)
        return graph.run(taken)

    def _made(self, kind: Kind) -> Graph:
        with self._lock:
            if kind not in self._graphs:
                self._graphs[kind] = Graph(self._apply, kind, self._form or kind.form, self._arguments)
            return self._graphs[kind]

    def _apply(self, picture: Picture, columns: dict[str, DataNode]) -> Picture:
        for op in self.op_list:
            picture = op._invoke(picture)
        return picture

    def output_to_tensor(self, output: torch.Tensor) -> torch.Tensor:
        """Returns an image in this layout as a tensor CHW."""
        return output if self._layout == "CHW" else output.movedim(-1, -3)

    def output_to_pil(self, output: torch.Tensor) -> Image.Image | list[Image.Image]:
        """Returns an image in this layout as a Pillow image, a batch as a list of them."""
        if output.ndim > 3:
            return [self.output_to_pil(each) for each in output]  # type: ignore[misc]
        moved = output if self._layout == "HWC" else output.movedim(-3, -1)
        return _interchange.array_image(moved.cpu().numpy())

    def get_layout(self) -> str:
        """ "HWC" or "CHW"."""
        return self._layout

    def get_channel_reverse_idx(self) -> int:
        """The channel axis, counted from the last axis: -1 or -3."""
        return self._layout.index("C") - 3

    @abstractmethod
    def verify_layout(self, data: Any) -> None:
        """Raises TypeError for data that is not in this layout."""

    def is_conversion_to_tensor(self) -> bool:
        """Whether the list returns tensors, because of `ToPureTensor` or `PILToTensor`."""
        return self._form == "tensor"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_graphs": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class PipelineHWC(PipelineWithLayout):
    """Transforms Pillow images. Arguments are those of `PipelineWithLayout`.

    >>> from penstock.experimental.torchvision import Resize
    >>> PipelineHWC([Resize((4, 6))]).run(Image.new("RGB", (20, 20))).size
    (6, 4)
    """

    def __init__(
        self,
        op_list: list[Callable[..., Sequence[DataNode] | DataNode]],
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_threads: int = DEFAULT_NUM_THREADS,
        **dali_pipeline_kwargs: Any,
    ):
        super().__init__(op_list, "HWC", batch_size, num_threads, **dali_pipeline_kwargs)

    def verify_layout(self, data_input: Any) -> None:
        if not isinstance(data_input, Image.Image):
            raise TypeError(f"PipelineHWC takes PIL.Image.Image, got {type(data_input).__name__}")


class PipelineCHW(PipelineWithLayout):
    """Transforms PyTorch tensors, CHW or with more axes before. Arguments are those of `PipelineWithLayout`.

    >>> from penstock.experimental.torchvision import Resize
    >>> PipelineCHW([Resize((4, 6))]).run(torch.zeros(2, 3, 20, 20)).shape
    torch.Size([2, 3, 4, 6])
    """

    def __init__(
        self,
        op_list: list[Callable[..., Sequence[DataNode] | DataNode]],
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_threads: int = DEFAULT_NUM_THREADS,
        **dali_pipeline_kwargs: Any,
    ):
        super().__init__(op_list, "CHW", batch_size, num_threads, **dali_pipeline_kwargs)

    def verify_layout(self, data_input: Any) -> None:
        if not isinstance(data_input, torch.Tensor):
            raise TypeError(f"PipelineCHW takes torch.Tensor, got {type(data_input).__name__}")


class Compose:
    """Applies transforms one after the other, as one graph: each image is taken through all of them at once.

    Takes a Pillow image (modes L, RGB, RGBA) or a PyTorch tensor, (..., C, H, W), on the CPU or on a GPU, and returns
    the same kind, unless `PILToTensor`, `ToPureTensor` or `ToPILImage` is in the list. Each image of a batch gets its
    own random numbers. Input tensors are neither copied nor written to; output tensors own their memory, on the GPU if
    the last transform ran there. One graph is made for each kind of input (layout, channels, type) when it first
    occurs.

    Without a `seed`, random numbers are derived from PyTorch's generator: the same after `torch.manual_seed`, different
    in the workers of a `DataLoader`. A `Compose` can be pickled, and used after a fork and by several threads.

    Parameters
    ----------
    op_list
        Transforms; other `Compose` objects are allowed.
    batch_size
        Expected number of images in a batch; larger ones are transformed too.
    num_threads
        Number of native threads, which share the images of a batch.
    **dali_pipeline_kwargs
        Further arguments of `penstock.Pipeline`, such as `seed` and `device_id`.

    Raises
    ------
    TypeError
        For elements that are not transforms, and inputs that are neither images nor tensors.
    ValueError
        For images that a transform does not support, and arguments outside their range.
    penstock.PipelineError
        For images that a transform can't process, such as images smaller than a crop.

    >>> from PIL import Image
    >>> from penstock.experimental.torchvision import CenterCrop, PILToTensor, Resize
    >>> transform = Compose([Resize(32), CenterCrop(24), PILToTensor()])
    >>> transform(Image.new("RGB", (64, 48))).shape
    torch.Size([3, 24, 24])
    """

    def __init__(
        self,
        op_list: list[Callable[..., Sequence[DataNode] | DataNode]],
        batch_size: int = DEFAULT_BATCH_SIZE,
        num_threads: int = DEFAULT_NUM_THREADS,
        **dali_pipeline_kwargs: Any,
    ):
        self.op_list: list[Operator] = transforms_of(op_list, "Compose")
        self.batch_size, self.num_threads = batch_size, num_threads
        self.dali_pipeline_kwargs = dali_pipeline_kwargs
        arguments = (self.op_list, batch_size, num_threads)
        self._images = PipelineHWC(*arguments, **dali_pipeline_kwargs)  # type: ignore[arg-type]
        self._tensors = PipelineCHW(*arguments, **dali_pipeline_kwargs)  # type: ignore[arg-type]

    def __call__(self, data_input: Any) -> Any:
        if isinstance(data_input, Image.Image):
            return self._images.run(data_input)
        if isinstance(data_input, torch.Tensor):
            return self._tensors.run(data_input)
        raise TypeError(f"a picture has to be a PIL.Image.Image or a torch.Tensor, got {type(data_input).__name__}")

    def __repr__(self) -> str:
        return "Compose([" + "".join(f"\n    {op!r}," for op in self.op_list) + "\n])"
