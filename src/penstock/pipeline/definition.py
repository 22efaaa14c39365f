# SPDX-License-Identifier: Apache-2.0
"""`pipeline_def`: turns a function that defines a graph into a function that creates pipelines."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..core.errors import suggest
from ..graph.branching import MARK
from .pipeline import Pipeline
from .settings import NAMES
from .traced import outputs_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .arguments import PipelineArguments

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def pipeline_def(
    fn: Callable[..., Any], *, enable_conditionals: bool = ..., debug: bool = ..., **kwargs: Unpack[PipelineArguments]
) -> Callable[..., Pipeline]: ...
@overload
def pipeline_def(
    fn: None = None, *, enable_conditionals: bool = ..., debug: bool = ..., **kwargs: Unpack[PipelineArguments]
) -> Callable[[Callable[..., Any]], Callable[..., Pipeline]]: ...
def pipeline_def(
    fn: Callable[..., Any] | None = None,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Any:
    """Decorator that turns a function which defines a graph into a function that returns a `Pipeline`.

    The function's own arguments are passed on; arguments given to the decorator are defaults that a call may override.
    With `enable_conditionals`, `if`, `and`, `or`, `not` and `x if c else y` work on data in the function and in the
    functions that it calls: each sample takes the branch selected by its condition. With `debug`, the function runs
    again for every batch, and the results of operators have values: use `print(x)` or `x.get()`.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=1)
    ... def numbers(low):
    ...     return fn.random.uniform(range=(low, 1.0))
    >>> pipe = numbers(0.5, seed=1)
    >>> len(pipe.run()[0])
    2
    """
    if fn is None:
        return functools.partial(pipeline_def, enable_conditionals=enable_conditionals, debug=debug, **pipeline_kwargs)
    if not callable(fn):
        raise TypeError(f"@pipeline_def decorates a function; got {type(fn).__name__}")
    if hasattr(fn, "_is_pipeline_def"):
        raise TypeError(f"{fn.__name__} is a pipeline definition already; decorate the function itself")
    for k in pipeline_kwargs:
        if k not in NAMES:
            raise TypeError(f"@pipeline_def got an unexpected argument '{k}'.{suggest(k, NAMES)}")
    name = getattr(fn, "__name__", "pipeline")
    code = getattr(fn, "__code__", None)
    where = f' defined by {name} (File "{code.co_filename}", line {code.co_firstlineno})' if code else ""
    convert = _Conversion(fn, where)
    if enable_conditionals:
        convert()
    parameters = inspect.signature(fn).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    @functools.wraps(fn)
    def create(*args: Any, **kwargs: Any) -> Pipeline:
        debugged, conditional = (
            default if name in parameters else kwargs.pop(name, default)
            for name, default in (("debug", debug), ("enable_conditionals", enable_conditionals))
        )
        define = convert() if conditional else fn
        own = {k: v for k, v in kwargs.items() if k in parameters}
        rest = {k: v for k, v in kwargs.items() if k not in parameters}
        for k in [k for k in rest if k not in NAMES]:
            if not takes_any:
                valid = [*parameters, *NAMES]
                raise TypeError(f"{name}() got an unexpected argument '{k}'.{suggest(k, valid)}")
            own[k] = rest.pop(k)
        # An argument of both the pipeline and the function is passed to both.
        both = {k: v for k, v in own.items() if k in NAMES and k not in pipeline_kwargs}
        cls = _debug_pipeline() if debugged else Pipeline
        pipe = cls(**{**pipeline_kwargs, **both, **rest})
        pipe._graph.define, pipe._graph.defined_at = functools.partial(define, *args, **own), where
        if debugged:
            return pipe
        with pipe:
            pipe.set_outputs(*outputs_of(pipe._graph.define()))
        return pipe

    create._is_pipeline_def = True  # type: ignore[attr-defined]
    return create


def _debug_pipeline() -> Any:
    from .debugging import DebugPipeline  # imported here, as it imports Pipeline and is rarely needed

    return DebugPipeline


@overload
def do_not_convert(func: _F) -> _F: ...
@overload
def do_not_convert(func: None = None) -> Callable[[_F], _F]: ...
def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Excludes a function, and the functions that it calls, from `enable_conditionals`.

    >>> from penstock.pipeline import do_not_convert
    >>> @do_not_convert
    ... def larger(a, b):
    ...     return a if a > b else b
    """
    if func is None:
        return do_not_convert
    setattr(getattr(func, "__func__", func), MARK, True)
    return func


class _Conversion:
    """A function converted for `enable_conditionals`, at first use. Picklable if the function is, as clusters need."""

    def __init__(self, fn: Callable[..., Any], where: str):
        self._given = fn, where
        self._made: Any = None

    def __call__(self) -> Any:
        if self._made is None:
            self._made = _converted(*self._given)
        return self._made

    def __reduce__(self) -> Any:
        return _Conversion, self._given


def _converted(fn: Callable[..., Any], where: str) -> Callable[..., Any]:
    from ..graph import conditionals  # imported only if needed, as it loads a parser

    try:
        return conditionals.converted_pipeline(fn)
    except conditionals.NotConvertible as e:
        warnings.warn(
            f"enable_conditionals needs the source code of the pipeline{where}, so it has no effect: {e}", stacklevel=5
        )
        return fn
