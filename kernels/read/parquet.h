// SPDX-License-Identifier: Apache-2.0
// The values of a column in a row group of a Parquet file: columns of numbers or bytes that are not nested in lists, in
// the most common encodings and compressions. pyarrow reads the others.
#pragma once
#include <cstdint>

struct ParquetChunk {
  enum Codec { kNone, kSnappy, kZstd };
  const char *data;  // the pages of the column as stored in the file
  int64_t size, n_rows;
  int32_t codec;
  int32_t width;         // of a value in bytes; 0: each has its own size
  int32_t most_defined;  // the definition level of a row with a value
};

// Per row: the address of its value and its size in bytes, -1 if null. Values are in the chunk, or in `memory` from the
// pool, which belongs to the caller even on failure.
struct ParquetValues {
  uint64_t *address;
  int64_t *length;
  char *memory;
  int64_t bytes;  // of `memory`
};

struct ParquetUnknown {};  // thrown for unsupported page encodings

void read_parquet_column(const ParquetChunk &chunk, ParquetValues &values);
