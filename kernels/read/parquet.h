// SPDX-License-Identifier: Apache-2.0
// The values of a column in a row group of a Parquet file: columns that are neither lists nor in lists, of numbers or
// bytes, in the encodings and compressions that most files have. pyarrow reads the others.
#pragma once
#include <cstdint>

struct ParquetChunk {
  enum Codec { kNone, kSnappy, kZstd };
  const char *data;  // the pages of the column, as they are in the file
  int64_t size, n_rows;
  int32_t codec;
  int32_t width;         // of a value in bytes; 0: each says how many it has
  int32_t most_defined;  // the definition level of a row that has a value
};

// Of each row where its value is and how many bytes it has, -1 if it has none. Values lie in the chunk, or in `memory`
// of the pool, which is the caller's even if it fails.
struct ParquetValues {
  uint64_t *address;
  int64_t *length;
  char *memory;
  int64_t bytes;  // of `memory`
};

struct ParquetUnknown {};  // thrown where a page is encoded in another way

void read_parquet_column(const ParquetChunk &chunk, ParquetValues &values);
