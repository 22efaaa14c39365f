# SPDX-License-Identifier: Apache-2.0
"""Errors that name the operator, the user's line, the sample, the value given and the values accepted."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from enum import EnumMeta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .batch import Batch

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


class PipelineError(RuntimeError):
    """Raised if a pipeline could not produce a batch. The pipeline remains usable."""


class PipelineValueError(PipelineError, ValueError):
    """A PipelineError about a property of the whole batch, such as its layout; also a ValueError, as in DALI."""


class PipelineAxisError(PipelineValueError, IndexError):
    """A PipelineError about an axis, or an index in one, that does not exist; also an IndexError, as in DALI."""


class ArgumentTypeError(TypeError, ValueError, RuntimeError):
    """An argument of a wrong type, raised in the line that gives it. Also a RuntimeError and a ValueError, which DALI
    raises for many of them in the first batch."""


class ArgumentValueError(ValueError, RuntimeError):
    """A wrong value of an argument, raised in the line that gives it. Also a RuntimeError, as many are in DALI."""


class ArgumentOverflow(ArgumentValueError, OverflowError):
    """A number beyond the range of its type; also an OverflowError, as in DALI."""


class UnexpectedArgument(ArgumentTypeError, KeyError):
    """An argument that does not exist; also a KeyError, as in DALI."""

    __str__ = Exception.__str__  # KeyError's own quotes the text


class BranchesError(TypeError, ValueError, RuntimeError):
    """Branches of a conditional that can't be merged. Also a RuntimeError and a TypeError: DALI raises the one for what
    a branch lacks and for a `return` that leaves a loop, the other for a `break` and for what is not data."""


class AxisError(ValueError, IndexError):
    """An axis that does not exist."""


class PlaceError(IndexError, RuntimeError):
    """A sample or dimension that a batch or tensor does not have; also a RuntimeError, as in DALI."""


def of_argument(error: Exception, text: str) -> Exception:
    """Returns an error with another text, of the type that DALI users expect for wrong arguments."""
    kind = type(error)
    told = {TypeError: ArgumentTypeError, ValueError: ArgumentValueError, AxisError: ArgumentValueError}
    return told.get(kind, kind)(text)


class InternalError(RuntimeError):
    """A bug in penstock, not a mistake of its user."""

    def __init__(self, text: str):
        super().__init__(f"[internal error] {text}")


class DataError(ValueError, RuntimeError):
    """The data of a source can't be used. Raised by `feed_input` without change; a RuntimeError, as in DALI."""


class OutputsError(DataError, IndexError, TypeError):
    """A source did not give `num_outputs` outputs. Also an IndexError and a TypeError, as in DALI for too few, and for
    what has no items."""


class PipelineOutputsError(PipelineError, IndexError, TypeError):
    """An OutputsError with the operator and the line where the source is used."""


def of_source(error: Exception, text: str) -> PipelineError:
    """The PipelineError with this text for the error of a source, which remains its cause's."""
    told = PipelineOutputsError(text) if isinstance(error, OutputsError) else PipelineError(text)
    told.__cause__ = error.__cause__
    return told


class UnknownInput(KeyError, RuntimeError, ValueError):
    """The name of an input that the pipeline does not have. Also a RuntimeError and a ValueError, as in DALI."""

    __str__ = Exception.__str__


class NoNumPyType(TypeError, KeyError):
    """A type of data without an equivalent in NumPy; also a KeyError, as in DALI."""

    __str__ = Exception.__str__


class NothingFed(RuntimeError, IndexError):
    """An input has no data for an iteration; also an IndexError, as in DALI."""


class WorkerError(RuntimeError):
    """A worker of a source died, did not start, or took too long."""


class SampleErrors(Exception):
    """Raised by an operator for samples that it can't process: {row: reason}. The pipeline's `on_error` handles them.

    A source also sets `sources`, the origin of each row, as there is no batch yet; and, if it has loaded the other
    rows, `batches` with those rows."""

    def __init__(
        self, reasons: dict[int, str], sources: Sequence[str] | None = None, batches: tuple[Batch, ...] | None = None
    ):
        super().__init__("; ".join(f"sample {i}: {r}" for i, r in reasons.items()))
        self.reasons, self.sources, self.batches = reasons, sources, batches

    @classmethod
    def where(cls, bad, reason) -> None:
        """Raises SampleErrors for the rows where `bad` (n,) is true; `reason(row)` returns the text."""
        if bad.any():
            raise cls({int(i): reason(int(i)) for i in bad.nonzero()[0]})


class SampleError(NamedTuple):
    """One bad sample, as listed by `Pipeline.errors()`."""

    source: str
    operator: str
    reason: str
    iteration: int
    sample: int
    action: str = ""


class Site(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f'  File "{self.file}", line {self.line}, in {self.function}\n    {text}'


def user_sites(limit: int = 4) -> tuple[Site, ...]:
    """The innermost lines of the user's program on the call stack, outermost first; without lines of this package."""
    sites: list[Site] = []
    frame = sys._getframe(1)
    inside = True
    while frame is not None and len(sites) < limit:
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE):
            if not inside:
                break  # the pipeline function was itself called by this package
        else:
            inside = False
            sites.append(Site(file, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(reversed(sites))


def warn_deprecated(text: str) -> None:
    """Warns at the innermost line of the user's program."""
    import warnings

    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def describe(display_name: str, device: str, sites: tuple[Site, ...], cause: str) -> str:
    """The text of an operator's error, in DALI's form."""
    where = ""
    if sites:
        where = (
            "which was used in the pipeline definition with the following traceback:\n\n"
            + "\n".join(map(str, sites))
            + "\n\n"
        )
    return f"Error in {device.upper()} operator `penstock.{display_name}`,\n{where}encountered:\n\n{cause}"


def different_sizes(n: int, other: str, n_other: int) -> str:
    """Error text: a source has n samples and another source has a different number."""
    return f"the batch has {n} samples, that of '{other}' {n_other}; all sources of a pipeline give batches of one size"


def listed(values) -> str:
    """Numbers in short form: `[1e+30, 2.5]`."""
    return f"[{', '.join(f'{v:g}' for v in values)}]"


def no_axis(name: str, argument: str, layout: str) -> str:
    """Error text: an axis given by name does not exist."""
    if layout:
        return f"Axis '{name}' is not present in the input layout '{layout}'; {argument} asks for it"
    return f"axis '{name}' of {argument} is not there: the input has no layout; fn.reshape(x, layout=...) gives it one"


def suggest(name: str, valid) -> str:
    """' Did you mean ...?' with the nearest valid name, or nothing."""
    import difflib  # imported only for errors

    near = difflib.get_close_matches(name, list(valid), 1)
    if not near:  # perhaps mainly the case of letters differs
        by_lower = {v.lower(): v for v in valid}
        near = [by_lower[n] for n in difflib.get_close_matches(name.lower(), by_lower, 1, 0.85)]
    return f" Did you mean '{near[0]}'?" if near else ""


def no_attribute(module: str, name: str) -> AttributeError:
    """The AttributeError of a module for an unknown name, with the nearest name it has."""
    if name.startswith("_"):
        return AttributeError(f"module '{module}' has no attribute '{name}'")
    names = vars(sys.modules[module])
    own = [n for n, v in names.items() if n[0] != "_" and getattr(v, "__module__", "").startswith("penstock")]
    return AttributeError(f"module '{module}' has no attribute '{name}'.{suggest(name, names.get('__all__', own))}")


class NearestMembers(EnumMeta):
    """Metaclass of enumerations whose error for an unknown member suggests the nearest one."""

    if not TYPE_CHECKING:  # type checkers know the members

        def __getattr__(cls, name):
            if name in (members := type.__getattribute__(cls, "__members__")):
                return members[name]  # Python 3.10 and 3.11 look them up here
            hint = "" if name.startswith("_") else f".{suggest(name, members)} It has {', '.join(members)}"
            raise AttributeError(f"{cls.__name__} has no member '{name}'{hint}")
