# SPDX-License-Identifier: Apache-2.0
"""Runs nodes one by one as they are defined, for debugging, with the same values as the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.errors import DataError, PipelineError, different_sizes, of_source
from ..core.picks import Picks
from ..core.source import Source
from ..graph.node import Node
from .arguments import Resolver
from .context import BadSamples, Context, explain_failure
from .direct import run_alone
from .plan import Plan
from .scheduling.policy import Policy


class Again(Exception):
    """A new source changes what was computed before it: the iteration must be repeated."""


class Eager:
    """The sources, which persist across batches, and the current batch."""

    def __init__(self, batch_size: int, seed: int, num_threads: int, session: Callable[[], Any]):
        """`session()` opens the GPU when the first GPU operator runs."""
        self.batch_size, self.seed = batch_size, seed
        self._open_session = session
        self._session: Any = None
        self.pools = (kernels.Pool(num_threads), kernels.Pool(min(num_threads, 4)))
        self.sources: list[tuple[Node, Source]] = []  # in call order
        self.fed: dict[str, list[tuple[Any, Any, Any]]] = {}  # data for sources not called yet
        self.position = self.iteration = 0
        self.ended = False
        self._picks: dict[Source, Picks] = {}
        self._begun = False

    # An iteration -------------------------------------------------------------------------------------------------

    def begin(self, batch_size: int) -> None:
        """Picks the samples of the next batch from the known sources."""
        self._found = 0
        self._defined: list[Node] = []
        self._used = False  # whether anything was computed that depends on the number or positions of the samples
        if self._begun:
            self._enter()
            return
        if self.ended:
            raise StopIteration
        self._begun, self._picks, self._n = True, {}, batch_size
        self._decided = ""  # name of the source that determined the batch size
        self._place: Picks | None = None
        for node, op in sorted(self.sources, key=lambda s: not s[1].sets_batch_size):
            self._take(node, op)
        self._enter()

    def _enter(self) -> None:
        n = self._n
        if self._place is None:
            epoch, position = np.zeros(n, "u4"), np.arange(self.position, self.position + n)
        else:
            epoch, position = self._place.epoch, self._place.position
        self.ctx = Context(n, epoch, position, self.iteration)

    def _take(self, node: Node, op: Source) -> None:
        op.ask()
        try:
            if op.called is not None:
                op.called.call(op, self._n, self.iteration)
            picks = op.take(self._n, self.iteration)
        except StopIteration:
            self.ended, self._begun = True, False
            raise
        except DataError as e:
            raise of_source(e, node.describe(str(e))) from e.__cause__
        if op.sets_batch_size:
            if self._decided and len(picks) != self._n:
                raise PipelineError(node.describe(different_sizes(len(picks), self._decided, self._n)))
            self._decided = node.name
        self._picks[op] = picks
        changed = len(picks) != self._n
        self._n = len(picks)
        if self._place is None and "position" in picks.columns:
            self._place, changed = picks, True
        self._changed = changed

    def end(self) -> None:
        self.position += self._n
        self.iteration += 1
        self._begun = False

    # Nodes --------------------------------------------------------------------------------------------------------

    def evaluate(self, node: Node) -> None:
        """Computes the outputs of a node that was just defined."""
        known = {n.number for n in self._defined}
        self._defined.append(node)
        if isinstance(node.op, Source):
            self._source(node, node.op)
            return
        self._used = True
        plan = Plan(self._defined, list(node.outputs), [], self.seed, known)
        if plan.uses_gpu or node.device == "gpu":
            if self._session is None:
                self._session = self._open_session()
            plan.session = self._session
        ctx = Context(self.ctx.n, self.ctx.epoch, self.ctx.position, self.iteration)
        ctx.values.update(self.ctx.values)  # of its own, as plans remove what they have used
        for i, batch in enumerate(run_alone(plan, ctx, self.pools[0], self.iteration)):
            batch.wait()  # so that GPU errors are raised here
            self.ctx.values[node.number, i] = batch

    def _source(self, node: Node, op: Source) -> None:
        k = self._found
        self._found += 1
        if k < len(self.sources) and self.sources[k][0].op.fn_name == op.fn_name:
            op = self.sources[k][1]
        else:
            try:
                op.open(self.batch_size, self.seed)
            except (ValueError, OSError, RuntimeError, TypeError) as e:
                raise (type(e) if isinstance(e, (ValueError, TypeError)) else RuntimeError)(
                    node.describe(str(e))
                ) from None
            for fed in self.fed.pop(node.name, []):
                op.feed(*fed)  # type: ignore[attr-defined]
            self.sources[k:] = [(node, op)]
            try:
                self._take(node, op)
            except (OSError, ValueError) as e:
                if op.sets_batch_size:
                    raise
                raise explain_failure(self.ctx, node, e) from None
            if self._changed and self._used:
                raise Again
            if self._changed:
                values = self.ctx.values
                self._enter()
                self.ctx.values.update(values)
        try:
            if node.args:
                a = Resolver(node, self.seed, 0).resolve(self.ctx)
                batches = op.begin_by(self._picks[op], self.pools[1], a).wait()
            else:
                batches = op.load(self._picks[op], self.pools[1])
        except Exception as e:
            raise self._explained(node, e) from None
        for i, b in enumerate(batches):
            self.ctx.values[node.number, i] = b

    def _explained(self, node: Node, error: Exception) -> Exception:
        failure = explain_failure(self.ctx, node, error)
        if isinstance(failure, BadSamples):
            Policy().record(failure.samples, self.iteration)
        return failure

    def value(self, node: Node, index: int) -> Batch:
        batch = self.ctx.values[node.number, index]
        return batch.packed_copy() if batch.is_borrowed else batch

    def reset(self) -> None:
        self.ended = self._begun = False
        for _, op in self.sources:
            state = op.state()
            if op.restarts() and (state is None or not op.begins_epoch(state)):
                op.reset()

    def feed(self, name: str, data: Any, layout: str | None, stream: Any = None) -> None:
        for node, op in self.sources:
            if node.name == name:
                op.feed(data, layout, stream)  # type: ignore[attr-defined]
                return
        self.fed.setdefault(name, []).append((data, layout, stream))

    def close(self) -> None:
        for _, op in self.sources:
            op.stop_waiting()
            op.close()
        if self._session is not None:
            self._session.close()
