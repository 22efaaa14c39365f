# SPDX-License-Identifier: Apache-2.0
"""Resizes images."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from .... import fn, math
from ....core.tracing import IMMEDIATE
from ....types import Constant, DALIDataType, DALIInterpType
from ._checks import is_sequence, size_of
from ._enums import BY_NUMBER, SUPPORTED, InterpolationMode, check_mode, mode_of
from ._picture import Picture
from ._resized import TYPES, edge_sizes, resize
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline


class _ValidateSize(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, size: Any, max_size: Any, interpolation: Any, **kwargs: Any) -> None:
        check_mode(interpolation)
        if size is not None and not isinstance(size, Integral) and not is_sequence(size):
            raise ValueError(f"size takes a positive integer, (height, width), or None with a max_size; got {size!r}")
        if max_size is not None and not (isinstance(max_size, Integral) and max_size > 0):
            raise ValueError(f"max_size takes a positive integer or None, got {max_size!r}")
        if size is None:
            if max_size is None:
                raise ValueError("size=None needs a max_size, the length of the longer edge")
            return
        size = size_of(size)
        if max_size is None:
            return
        if len(size) == 2:
            raise ValueError(f"max_size={max_size} goes with the length of the shorter edge as size, not with {size}")
        if max_size < size[0]:
            raise ValueError(f"max_size={max_size} is smaller than size={size[0]}, the length of the shorter edge")


class Resize(Operator):
    """Resizes images.

    Elements are uint8, int16, uint16 or float32.

    Parameters
    ----------
    size
        (height, width); or a number, the length of the shorter edge: the aspect ratio is kept, and the longer edge is
        truncated to an integer; or None: the longer edge becomes `max_size`.
    interpolation
        `InterpolationMode` NEAREST, BILINEAR, BICUBIC or LANCZOS, or its number in Pillow (0, 2, 3, 1).
    max_size
        Maximum length of the longer edge; images that would exceed it are resized to exactly this length. Only if
        `size` is a number or None.
    antialias
        Whether to average pixels when an image is shrunk, not only to sample them. None is True. No effect with
        NEAREST.
    device
        "cpu" or "gpu".

    Raises
    ------
    ValueError
        For sizes that are not positive integers and contradictory combinations.
    NotImplementedError
        For unsupported interpolation modes.

    >>> import torch
    >>> Resize(8)(torch.zeros(3, 16, 24, dtype=torch.uint8)).shape
    torch.Size([3, 8, 12])
    """

    interpolation_modes: ClassVar[dict[InterpolationMode, DALIInterpType]] = dict(SUPPORTED)
    not_supported_interpolation_modes: ClassVar[list[InterpolationMode]] = [
        m for m in InterpolationMode if m not in SUPPORTED
    ]
    int_to_interpolation_mode: ClassVar[dict[int, InterpolationMode]] = dict(BY_NUMBER)
    arg_rules = (_ValidateSize,)
    preprocess_data = get_HWC_from_layout_pipeline

    @classmethod
    def validate_interpolation(cls, interpolation: Any) -> None:
        """Raises ValueError for invalid modes, and NotImplementedError for unsupported ones."""
        check_mode(interpolation)

    @classmethod
    def normalize_interpolation(cls, interpolation: InterpolationMode | int) -> InterpolationMode:
        """The member that one of Pillow's numbers stands for.

        >>> Resize.normalize_interpolation(3)
        <InterpolationMode.BICUBIC: 'bicubic'>
        """
        return mode_of(interpolation)

    @classmethod
    def infer_effective_size(cls, size: int | Sequence[int] | None) -> int | Sequence[int] | None:
        """The number where there is a sequence of one.

        >>> Resize.infer_effective_size([10]), Resize.infer_effective_size([10, 12])
        (10, [10, 12])
        """
        return size[0] if is_sequence(size) and len(size) == 1 else size  # type: ignore[index, arg-type]

    @classmethod
    def calculate_target_size_dynamic_mode(
        cls, orig_size: Sequence[int], size: int | Sequence[int] | None, max_size: int | None
    ) -> tuple[int, int]:
        """Height and width that a picture of `orig_size` is resized to.

        >>> Resize.calculate_target_size_dynamic_mode((20, 22), 10, None)
        (10, 11)
        """
        size = cls.infer_effective_size(size)
        if is_sequence(size):
            height, width = size  # type: ignore[misc]
        else:
            shape = np.array([orig_size], "i8")
            height, width = map(int, edge_sizes(IMMEDIATE, shape, 0, size, max_size)[0])  # type: ignore[arg-type]
        return height, width

    @classmethod
    def calculate_target_size_pipeline_mode(
        cls, orig_size: Sequence[Any], size: int | Sequence[int] | None, max_size: int | None
    ) -> tuple[Any, Any]:
        """The same in a graph, where `orig_size` is two `DataNode`.

        >>> import numpy as np
        >>> from penstock import pipeline_def, types
        >>> @pipeline_def(batch_size=1)
        ... def pipe():
        ...     return Resize.calculate_target_size_pipeline_mode((types.Constant(20), types.Constant(22)), 10, None)
        >>> [int(size.at(0)) for size in pipe().run()]
        [10, 11]
        """
        size = cls.infer_effective_size(size)
        if is_sequence(size):
            height, width = size  # type: ignore[misc]
            return Constant(height), Constant(width)
        height, width = orig_size
        shorter, longer = math.min(height, width), math.max(height, width)
        if size is None:
            short, long = max_size * shorter // longer, max_size + 0 * longer
        else:
            short, long = size + 0 * shorter, size * longer // shorter
            if max_size is not None:
                over = fn.cast(long > max_size, dtype=DALIDataType.INT32)
                short = over * (max_size * short // long) + (1 - over) * short
                long = math.min(long, max_size)
        is_tall = fn.cast(height > width, dtype=DALIDataType.INT32)
        return is_tall * long + (1 - is_tall) * short, is_tall * short + (1 - is_tall) * long

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        super().__init__(device, size=size, max_size=max_size, interpolation=interpolation)
        self.size = None if size is None else size_of(size)
        self.max_size, self.interpolation = max_size, mode_of(interpolation)
        self.antialias = antialias is None or bool(antialias)

    def _apply(self, picture: Picture) -> Picture:
        picture.check_type("Resize", TYPES)
        how = {"interp_type": SUPPORTED[self.interpolation], "antialias": self.antialias}
        return picture.made(resize(picture.data, self.size, self.max_size, **how))
