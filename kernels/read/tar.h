// SPDX-License-Identifier: Apache-2.0
// The members of a tar archive: ustar, pax, GNU long names and sizes in base 256.
#pragma once
#include "read/storage.h"
#include "read/table.h"

enum TarColumn { TAR_OFFSET, TAR_SIZE, TAR_NAME_END, TAR_NAMES };

// For each regular file: where its content begins, its size, and where its name ends in TAR_NAMES.
void scan_tar(Object &input, Table &table);

constexpr int64_t kTarBlock = 512;

// Whether the checksum of a header block is correct.
bool tar_header_fits(const uint8_t *block);
// The size in a header block; negative if unreadable.
int64_t tar_header_size(const uint8_t *block);
