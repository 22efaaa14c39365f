// SPDX-License-Identifier: Apache-2.0
// A video that Python has opened (penstock.video): any of its frames, or all of them one after the other.
#pragma once
#include "read/storage.h"
#include "video/decoder.h"

struct OpenedVideo {
  std::shared_ptr<Object> object;
  VideoIndex index;
};

// Reads packets of an opened file by pieces.
PacketReader packets_of(const OpenedVideo &video);
