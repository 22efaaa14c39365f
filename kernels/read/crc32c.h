// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as used in TFRecord files.
#pragma once
#include <cstdint>

uint32_t crc32c(const void *data, int64_t size);

// The stored form, masked so that a checksum over data with checksums in it does not become trivial.
inline uint32_t masked_crc32c(const void *data, int64_t size) {
  const uint32_t crc = crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
