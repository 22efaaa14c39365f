# SPDX-License-Identifier: Apache-2.0
"""Decompresses shards that are compressed as a whole, so that samples can be read in any order."""

from __future__ import annotations

import ctypes
import os
import zlib

import numpy as np

from ...core import storage
from ...core.kernels import ERROR_SIZE, library
from ...core.new_files import replacing
from ...core.rows import address


def folder() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "penstock", "shards")


def unpacked(path: str, packed: str, compression: str, size: int, local: str | None) -> str:
    """The path of the decompressed shard `packed`, of `size` bytes: `path` if it exists, otherwise a file in the folder
    `local`, where it is kept. Raises ValueError or OSError if it can't be decompressed."""
    if not storage.is_url(path) and os.path.isfile(path) and os.path.getsize(path) == size:
        return path
    import hashlib  # imported here to keep `import penstock` fast

    version = storage.version(packed)
    identity = f"{storage.absolute(packed)}\0{version.size}\0{version.tag}\0{size}"
    name = f"{hashlib.sha256(os.fsencode(identity)).hexdigest()[:32]}.mds"
    to = os.path.join(os.path.expanduser(local) if local else folder(), name)
    if os.path.isfile(to) and os.path.getsize(to) == size:
        return to
    content = _decompress(storage.read(packed), compression, size)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with replacing(to) as file:
        file.write(content)
    return to


def _decompress(data: bytes, compression: str, size: int) -> bytes | memoryview:
    """The content, which must have `size` bytes."""
    if compression in ("zstd", "snappy"):
        try:
            out = np.empty(size, "u1")
        except (MemoryError, ValueError):
            raise ValueError(f"the index says that it has {size} bytes when decompressed, more than memory") from None
        error = ctypes.create_string_buffer(ERROR_SIZE)
        at = address(out) if size else 0
        unpack = library().zstd_decompress if compression == "zstd" else library().snappy_decompress
        if unpack(data, len(data), at, size, ctypes.addressof(error)):
            raise ValueError(error.value.decode("utf-8", "replace"))
        return out.data
    if compression == "br":
        content = _brotli(data, size)
        if len(content) != size:
            raise ValueError(f"it does not have {size} bytes when decompressed, as the index says")
        return content
    if compression not in ("gz", "bz2"):
        raise ValueError(f"it is compressed by {compression!r}; zstd, gz, bz2, br and snappy can be read")
    import bz2  # imported here to keep `import penstock` fast

    stream = zlib.decompressobj(zlib.MAX_WBITS | 16) if compression == "gz" else bz2.BZ2Decompressor()
    try:
        content = stream.decompress(data, size + 1)
    except (zlib.error, OSError) as e:
        raise ValueError(f"it can't be decompressed: {e}") from None
    if len(content) != size or not stream.eof:
        raise ValueError(f"it does not have {size} bytes when decompressed, as the index says")
    return content


def _brotli(data: bytes, size: int) -> bytes:
    """The content; truncated if it has more than `size` bytes."""
    try:
        import brotli
    except ImportError:
        raise ValueError("it is compressed by brotli; to read it, install it: pip install 'brotli>=1.2'") from None
    unpack = brotli.Decompressor()
    try:
        parts = [unpack.process(data, output_buffer_limit=size + 1)]
        n = len(parts[0])
        while parts[-1] and n <= size and not unpack.is_finished():
            parts.append(unpack.process(b"", output_buffer_limit=size + 1 - n))
            n += len(parts[-1])
    except brotli.error as e:
        raise ValueError(f"it can't be decompressed: {e}") from None
    except TypeError:
        raise ValueError(f"brotli {brotli.__version__} is too old: pip install 'brotli>=1.2'") from None
    if not unpack.is_finished() and n <= size:
        raise ValueError("it can't be decompressed: it ends too early")
    return b"".join(parts)
