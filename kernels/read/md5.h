// SPDX-License-Identifier: Apache-2.0
// MD5 (RFC 1321), which servers use as a checksum of bodies.
#pragma once
#include <cstdint>

void md5(const void *data, int64_t size, unsigned char digest[16]);
