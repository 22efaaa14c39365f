// SPDX-License-Identifier: Apache-2.0
// The values of an LMDB file, found by walking its B+ tree. The format is that of the library
// (http://www.lmdb.tech/doc/), data version 1, little-endian, 64 bits.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum LmdbColumn { LMDB_OFFSET, LMDB_LENGTH, LMDB_KEY_END, LMDB_KEYS };

// For each entry of the main database, in key order: where its value lies in the file.
void scan_lmdb(Object &input, Table &table);
