# SPDX-License-Identifier: Apache-2.0
"""Readers and operators as nodes of `torchdata.nodes`, which can be combined with others. Requires torchdata.

>>> import torch, torchdata.nodes, tempfile, os
>>> from penstock.experimental import dynamic as ndd
>>> from penstock.experimental.dynamic.pytorch import nodes
>>> files = [os.path.join(tempfile.mkdtemp(), "x") for _ in range(4)]
>>> for i, f in enumerate(files):
...     _ = open(f, "wb").write(bytes([i, i]))
>>> node = nodes.Reader(ndd.readers.File, batch_size=2, files=files)
>>> node = nodes.ToTorch(nodes.DictMapper(node, lambda x: x + 1))
>>> [data.tolist() for data, label in torchdata.nodes.Loader(node)]
[[[1, 1], [2, 2]], [[3, 3], [4, 4]]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchdata.nodes as tn

from .._batch import Batch
from .._readers import Reader as _Reader
from .._tensor import Tensor
from .._value import Value

__all__ = ["DictMapper", "Reader", "ToTorch"]

_STATE, _READER = "taken", "reader"
_Node: Any = tn.BaseNode


class Reader(_Node):
    """Returns the output of a reader as dictionaries.

    Parameters
    ----------
    reader_type
        A class of `readers`.
    batch_size
        Size of batches; None returns tensors.
    output_names
        Keys, one for each output of the reader. By default the names of features, or
        "data" and "label" if it has two.
    **kwargs
        Arguments of the reader.
    """

    def __init__(
        self, reader_type: type, *, batch_size: int | None, output_names: Iterable[str] | None = None, **kwargs: Any
    ):
        super().__init__()
        if not (isinstance(reader_type, type) and issubclass(reader_type, _Reader)):
            raise TypeError(f"reader_type is a class of `readers`; got {reader_type!r}")
        self._type, self._kwargs, self._batch_size = reader_type, kwargs, batch_size
        self._reader = reader_type(**kwargs)
        n = self._reader._op.n_outputs()
        named = self._reader._op.output_names()
        if output_names is None and named is not None:
            output_names = named
        elif output_names is None:
            if n != 2:
                raise ValueError(f"{reader_type.__name__} has {n} outputs; give output_names")
            output_names = ("data", "label")
        self._names = tuple(output_names)
        if len(self._names) != n:
            raise ValueError(f"{reader_type.__name__} has {n} outputs; {len(self._names)} output_names are given")
        self._epoch: Iterator[Any] | None = None
        self._taken = 0

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begins an epoch, or continues one from a state."""
        super().reset(initial_state)
        if initial_state:
            self._reader = self._type(**self._kwargs)
            self._reader.set_state(initial_state[_READER])
            self._taken = int(initial_state[_STATE])
        else:
            self._taken = 0
        self._epoch = self._reader._epoch_from(self._batch_size, self._taken)

    def next(self) -> dict[str, Any]:
        assert self._epoch is not None
        outputs = next(self._epoch)
        self._taken += self._batch_size or 1
        return dict(zip(self._names, outputs.values() if isinstance(outputs, dict) else outputs))

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the reader and the position in the epoch."""
        return {_READER: str(self._reader.get_state()), _STATE: self._taken}

    def get_metadata(self) -> dict[str, int]:
        """Returns the reader's metadata."""
        return self._reader.get_metadata()


class DictMapper(_Node):
    """Applies a function to one value of the dictionaries that a node returns.

    Parameters
    ----------
    source
        The node.
    map_fn
        Takes a tensor or batch and returns one.
    key
        Key of the value.
    """

    def __init__(self, source: Any, map_fn: Callable[[Any], Any], key: str = "data"):
        super().__init__()
        if not callable(map_fn):
            raise TypeError(f"map_fn is a function; got {type(map_fn).__name__}")
        self._source, self._map_fn, self._key = source, map_fn, key

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self._source.reset(initial_state["source"] if initial_state else None)

    def next(self) -> dict[str, Any]:
        given = dict(next(self._source))
        if self._key not in given:
            raise KeyError(f"the source has no '{self._key}'; it has {', '.join(map(repr, given))}")
        given[self._key] = self._map_fn(given[self._key])
        return given

    def get_state(self) -> dict[str, Any]:
        return {"source": self._source.state_dict()}


class ToTorch(_Node):
    """Returns the values of dictionaries as tuples of PyTorch tensors.

    Parameters
    ----------
    source
        The node.
    output_stream
        The stream on which tensors on the GPU are used. By default PyTorch's current one, which waits for them.
    """

    def __init__(self, source: Any, output_stream: Any = None):
        super().__init__()
        self._source, self._stream = source, output_stream

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        self._source.reset(initial_state["source"] if initial_state else None)

    def next(self) -> tuple[Any, ...]:
        values = tuple(next(self._source).values())
        if self._stream is not None and any(isinstance(v, Value) and v._device_type == "gpu" for v in values):
            from ._tensors import on_stream

            with on_stream(self._stream):
                return tuple(_torch(v) for v in values)
        return tuple(_torch(v) for v in values)

    def get_state(self) -> dict[str, Any]:
        return {"source": self._source.state_dict()}


def _torch(value: Any) -> Any:
    return value.torch() if isinstance(value, (Batch, Tensor)) else value
