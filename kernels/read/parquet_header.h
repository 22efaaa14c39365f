// SPDX-License-Identifier: Apache-2.0
// The header of a page in a Parquet file, in Thrift's compact protocol.
#pragma once
#include <cstdint>

struct ParquetPage {
  enum Type { kData, kIndex, kDictionary, kDataV2 };
  enum Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kDeltaLengths = 6, kRleDictionary = 8 };
  // Numbered as in the format; -1 if missing.
  int32_t type = -1, size = -1, packed_size = -1, n_values = -1, encoding = -1;
  int32_t definition_encoding = -1;                    // for data pages of version 1
  int32_t definition_bytes = 0, repetition_bytes = 0;  // for data pages of version 2
  bool is_packed = true;
};

// Reads the header that begins at `at`, and moves `at` past it. Fails if it is damaged.
ParquetPage read_page_header(const uint8_t *&at, const uint8_t *end);

// A number of seven bits per byte; fails if it exceeds `end`.
uint64_t read_varint(const uint8_t *&at, const uint8_t *end);
inline int64_t unzigzag(uint64_t x) { return (int64_t)(x >> 1) ^ -(int64_t)(x & 1); }
