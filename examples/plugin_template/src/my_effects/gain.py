"""Multiplies all values by a factor."""

from typing import Any

from penstock.core.batch import Spec
from penstock.core.errors import SampleErrors
from penstock.core.op import Arguments, PerFrame, Pointwise


class Gain(Pointwise):
    """Multiplies all values: `out = in * gain`, rounded (halves up) and clamped to the range of the type.

    The output has the shape and type of the input.
    """

    layouts = ("HWC", "FHWC", "CHW")
    kernel = "my_effects/gain"
    gain = PerFrame(float, 1.0, "The factor, at least 0; one per sample or frame.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in ("uint8", "uint16", "float32"):
            raise ValueError(f"input 0 has the type {x.dtype.name}; fn.cast it to uint8, uint16 or float32")
        SampleErrors.where(~(a.gain >= 0), lambda i: f"gain is {a.gain[i]}; it has to be at least 0")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"gain": a.gain}
