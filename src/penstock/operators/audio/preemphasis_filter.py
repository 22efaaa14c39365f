# SPDX-License-Identifier: Apache-2.0
"""The filter that amplifies high frequencies of speech."""

from typing import Any

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Operator, PerSample

_BORDERS = ("zero", "clamp", "reflect")  # enum PreemphasisBorder of the kernel
_TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")


class PreemphasisFilter(Operator):
    """Subtracts from each element a share of the previous one: `out[i] = in[i] - preemph_coeff * in[i - 1]`.

    `border` sets the value before the first element. A signal with several dimensions is filtered as if it were
    flattened. Input: any type but float16 and bool. The output has the same shape and layout.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.preemphasis_filter(types.Constant([1.0, 2.0, 4.0]), preemph_coeff=0.5, border="zero")
    >>> pipe().run()[0].at(0).tolist()
    [1.0, 1.5, 3.0]
    """

    kernel = "audio/preemphasis_filter"
    by_frame = False
    preemph_coeff = PerSample(float, 0.97, "Share of the previous element that is subtracted.")
    border = Arg(
        str,
        "clamp",
        'Value before the first element: 0 ("zero"), the first element ("clamp") or the second ("reflect"; 0 if there '
        "is only one).",
    )
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output, any but FLOAT16 and BOOL. Values are clamped.")

    def setup(self) -> None:
        if self.values["border"] not in _BORDERS:
            raise ValueError(f"border takes {', '.join(map(repr, _BORDERS))}; got {self.values['border']!r}")
        _check("output", to_numpy(self.values["dtype"]).name)

    def plan(self, a: Arguments, x: Spec) -> None:
        _check("input", x.dtype.name)

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(dtype=a.dtype)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"coeff": a.preemph_coeff, "border": _BORDERS.index(a.border)}


def _check(what: str, name: str) -> None:
    if name not in _TYPES:
        raise ValueError(f"{what} type {name} is not supported; supported: {', '.join(_TYPES)}")
