// SPDX-License-Identifier: Apache-2.0
// Which pictures must be decoded for the wanted frames.
#pragma once
#include <functional>
#include <utility>

#include "video/index.h"

// Packets [begin, end), decoded without a jump.
struct Run {
  int32_t begin, end;
};

// `asked`: (packet, frame), sorted by packet. `read` returns the bytes of a packet (empty if missing).
std::vector<Run> runs_of(const std::vector<std::pair<int32_t, int32_t>> &asked, const VideoIndex &index,
                         const std::function<Bytes(int32_t)> &read);
