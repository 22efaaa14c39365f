// SPDX-License-Identifier: Apache-2.0
// Decompresses whole blocks of Snappy or zstd whose decompressed size is known.
#pragma once
#include <cstdint>

// Decompress `size` bytes at `from` to exactly `room` bytes at `to`; fail if they are damaged, or their size differs.
void unpack_snappy(const char *from, int64_t size, char *to, int64_t room);
void unpack_zstd(const char *from, int64_t size, char *to, int64_t room);

// The most that `size` bytes can decompress to. A Snappy copy of 64 bytes takes 3, a block of zstd of 128 KB takes 4.
inline int64_t most_of_snappy(int64_t size) { return size * 22; }
inline int64_t most_of_zstd(int64_t size) { return size << 15; }
