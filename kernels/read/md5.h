// SPDX-License-Identifier: Apache-2.0
// MD5, as servers name it for bodies (RFC 1321).
#pragma once
#include <cstdint>

void md5(const void *data, int64_t size, unsigned char digest[16]);
