// SPDX-License-Identifier: Apache-2.0
// Packets of streams that their container cuts into pieces.
#pragma once
#include "video/index.h"

// Reassembles packet i from `span`, its part of the file from Packet::offset on, into `to`. Returns fewer bytes if some
// are missing.
Bytes unwrap(Bytes span, const VideoIndex &index, int32_t i, std::vector<uint8_t> &to);
