# SPDX-License-Identifier: Apache-2.0
"""The work of streams that may still use memory."""

from __future__ import annotations

import weakref

from .stream import Event, ForeignStream, Stream


class Use:
    """Work that may still use memory: the first `work` units of a stream or, for another library's stream, everything
    before `event`."""

    __slots__ = ("_event", "_stream", "_work", "handle")

    def __init__(self, stream: Stream):
        self.handle, self._work = stream.handle, stream.work
        self._stream = self._event = None
        if type(stream) is ForeignStream:
            with stream.device:
                self._event = stream.record()
        else:
            self._stream = weakref.ref(stream)  # a stream is deleted only when its work is done

    @classmethod
    def before(cls, handle: int, event: Event) -> Use:
        """The work of another library's stream before the event."""
        use = cls.__new__(cls)
        use.handle, use._work, use._stream, use._event = handle, 0, None, event
        return use

    def is_known_to_be_done(self) -> bool:
        """Whether it is done without querying the GPU."""
        if self._stream is None:
            return self._event is None
        stream = self._stream()
        return stream is None or stream.closed or self._work <= stream.through

    def done(self) -> bool:
        if self._stream is None:
            return self._event is None or self._event.done()
        stream = self._stream()
        return stream is None or stream.is_through(self._work)

    def is_over(self) -> bool:
        """Whether it is done, querying the GPU for events; takes no lock."""
        return self.is_known_to_be_done() or self._event is not None and self._event.done()

    def done_but(self, pending: dict[int | None, int]) -> bool:
        """As `done`, but queries no stream twice: `pending` collects, by stream, work that is known not to be done."""
        if self._stream is not None and self._work >= pending.get(self.handle, 1 << 62):
            return False
        if self.done():
            return True
        if self._stream is not None:
            pending[self.handle] = self._work
        return False

    def wait(self, waiting: Stream) -> None:
        """Makes a stream wait for this work."""
        stream = self._stream() if self._stream is not None else None
        if stream is not None and not stream.closed:
            waiting.wait_for(stream, self._work)
        elif self._event is not None:
            waiting.wait(self._event)

    def block(self) -> None:
        """Blocks this thread until the work is done; takes no lock."""
        if self.is_over():
            return
        stream = self._stream() if self._stream is not None else None
        if stream is not None and not stream.closed:
            stream.synchronize()
        elif self._event is not None:
            self._event.wait()


class UsedMemory:
    """Memory that streams use."""

    __slots__ = ("_streams",)

    _streams: list[Stream]

    def used_on(self, stream: Stream) -> None:
        """Records that `stream` reads or writes it too."""
        streams = self._streams
        if not streams or streams[-1] is not stream and all(s.closed or s.handle != stream.handle for s in streams):
            streams.append(stream)

    def uses(self) -> tuple[Use, ...]:
        """The work submitted so far that may use it."""
        streams = self._streams
        return tuple([Use(s) for s in streams if not s.closed]) if streams else ()
