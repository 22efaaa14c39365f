// SPDX-License-Identifier: Apache-2.0
// Packets of streams that their container cuts into pieces.
#pragma once
#include "video/index.h"

// The bytes of packet i, put together from the part of the file where they lie: `span`, from Packet::offset on.
// Fewer, if they are not there. `to` holds them.
Bytes unwrap(Bytes span, const VideoIndex &index, int32_t i, std::vector<uint8_t> &to);
