// SPDX-License-Identifier: Apache-2.0
// A video opened from Python (penstock.video): gives any of its frames, or all in sequence.
#pragma once
#include <map>
#include <mutex>

#include "read/storage.h"
#include "video/decoder.h"

struct OpenedVideo {
  std::shared_ptr<Object> object;
  VideoIndex index;
  // By address, see stream.cpp. An interrupt in Python may lose one before it is closed; it ends with the video.
  std::mutex streams_lock;
  std::map<void *, std::shared_ptr<void>> streams;
};

// Reads packets of an opened file in pieces.
PacketReader packets_of(const OpenedVideo &video);
