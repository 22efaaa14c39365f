// SPDX-License-Identifier: Apache-2.0
// Which pictures have to be decoded for the frames that are wanted.
#pragma once
#include <functional>
#include <utility>

#include "video/index.h"

// Packets `begin` to `end` (exclusive), decoded without a jump.
struct Run {
  int32_t begin, end;
};

// `asked`: packets, sorted, and what for. `read` gives the bytes of a packet (no bytes if they are not there).
std::vector<Run> runs_of(const std::vector<std::pair<int32_t, int32_t>> &asked, const VideoIndex &index,
                         const std::function<Bytes(int32_t)> &read);
