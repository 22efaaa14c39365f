# SPDX-License-Identifier: Apache-2.0
"""Random number generators for calls."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any

_local = threading.local()
_MASK32, _MASK64 = 2**32 - 1, 2**64 - 1
_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)


def _block(key: int, sequence: int, offset: int) -> tuple[int, int, int, int]:
    """Four words of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011)."""
    k0, k1 = key & _MASK32, key >> 32
    c = (offset & _MASK32, offset >> 32, sequence & _MASK32, sequence >> 32)
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c[0], _MULTIPLIERS[1] * c[2]
        c = (p1 >> 32 ^ c[1] ^ k0, p1 & _MASK32, p0 >> 32 ^ c[3] ^ k1, p0 & _MASK32)
        k0, k1 = k0 + _WEYL[0] & _MASK32, k1 + _WEYL[1] & _MASK32
    return c


class RNGState(str):
    """The state of a generator, as a text: "Philox_KEY_SEQUENCE:OFFSET_WORD"."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"RNGState({str.__repr__(self)})"

    def parts(self) -> tuple[int, int, int, int]:
        try:
            kind, key, place, word = self.split("_")
            sequence, offset = place.split(":")
            numbers = int(key, 16), int(sequence, 16), int(offset, 16), int(word)
        except ValueError:
            raise ValueError(
                f"{str(self)!r} is not a state of a generator, 'Philox_KEY_SEQUENCE:OFFSET_WORD'"
            ) from None
        if kind != "Philox" or not 0 <= numbers[3] < 4 or max(numbers[:3]) > _MASK64:
            raise ValueError(f"{str(self)!r} is not a state of a generator, 'Philox_KEY_SEQUENCE:OFFSET_WORD'")
        return numbers


class RNG:
    """A random number generator for operators that get it as `rng`.

    Each call of an operator draws new numbers, so two calls with one generator differ. A program that seeds its
    generators gets the same results regardless of when they are computed and with how many threads. Threads must not
    share a generator.

    Parameters
    ----------
    seed
        An integer. By default a random one.
    state
        Initial state, from `get_state`. Not together with a seed.

    >>> from penstock.experimental import dynamic as ndd
    >>> a, b = (ndd.random.uniform(rng=ndd.random.RNG(7)).item() for _ in range(2))
    >>> a == b
    True
    """

    def __init__(self, seed: int | None = None, state: Any = None):
        if seed is not None and state is not None:
            raise ValueError("a generator begins with a seed or with a state, not with both")
        if state is not None:
            self.set_state(state)
        else:
            self.seed = secrets.randbits(64) if seed is None else seed

    def __call__(self) -> int:
        """Returns the next 32 random bits."""
        word = _block(self._key, self._sequence, self._offset)[self._word]
        self.advance(1)
        return word

    @property
    def seed(self) -> Any:
        raise AttributeError("the seed can be set, not read; see `state`")

    @seed.setter
    def seed(self, value: int) -> None:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"a seed is an integer; got {value!r}")
        self._key, self._sequence, self._offset, self._word = value.__index__() & _MASK64, 0, 0, 0

    def advance(self, n: int) -> None:
        """Skips `n` numbers."""
        if n < 0:
            raise ValueError(f"a generator can't go back; got {n}")
        place = self._offset * 4 + self._word + n
        self._offset, self._word = place // 4 & _MASK64, place % 4

    def clone(self) -> RNG:
        """Returns a generator that draws the same numbers."""
        return RNG(state=self.state)

    @property
    def state(self) -> RNGState:
        """The state, sufficient to continue from here."""
        return RNGState(f"Philox_{self._key:016X}_{self._sequence:016X}:{self._offset:016X}_{self._word}")

    @state.setter
    def state(self, value: Any) -> None:
        self.set_state(value)

    def get_state(self, *, cuda_stream: Any = None) -> RNGState:
        """Returns `state`."""
        return self.state

    def set_state(self, value: Any) -> None:
        """Continues from a state, or from its text."""
        if not isinstance(value, str):
            raise TypeError(f"a state is what get_state gave, or its text; got {type(value).__name__}")
        self._key, self._sequence, self._offset, self._word = RNGState(value).parts()

    def __repr__(self) -> str:
        return f"RNG(state='{self.state}')"


def get_default_rng() -> RNG:
    """Returns this thread's generator, which calls without `rng` use."""
    try:
        return _local.rng
    except AttributeError:
        rng = _local.rng = RNG()
        return rng


def set_seed(seed: int) -> None:
    """Seeds this thread's generator."""
    get_default_rng().seed = seed


def drawn(rng: Any, name: str) -> Callable[[], int]:
    """Returns a function that draws the seed of a call."""
    if rng is None:
        rng = get_default_rng()
    elif not isinstance(rng, RNG):
        raise ValueError(f"{name}(): rng is a random.RNG; got {type(rng).__name__}")

    def draw() -> int:
        return rng() | rng() << 32

    return draw
