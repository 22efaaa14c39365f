// SPDX-License-Identifier: Apache-2.0
// A video opened from Python (penstock.video): gives any of its frames, or all in sequence.
#pragma once
#include "read/storage.h"
#include "video/decoder.h"

struct OpenedVideo {
  std::shared_ptr<Object> object;
  VideoIndex index;
};

// Reads packets of an opened file in pieces.
PacketReader packets_of(const OpenedVideo &video);
