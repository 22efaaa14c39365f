// SPDX-License-Identifier: Apache-2.0
// Which pictures must be decoded for the wanted frames.
#pragma once
#include <functional>
#include <utility>

#include "video/index.h"

// Packets [begin, end), decoded without a jump. Between two runs the decoder is emptied.
struct Run {
  int32_t begin, end;
};

// `asked`: (packet, frame), sorted by packet. `read` returns the bytes of a packet (empty if missing). Runs that
// overlap are joined. Those that only adjoin may be, too, which costs no more than a restart. But what FFmpeg makes of
// a damaged picture depends on all that it has decoded before: unless they are joined, each frame is decoded from the
// same packet on, whatever else is asked for.
std::vector<Run> runs_of(const std::vector<std::pair<int32_t, int32_t>> &asked, const VideoIndex &index,
                         const std::function<Bytes(int32_t)> &read, bool joins_adjoining);

// Cuts a video into groups of frames that are decoded by themselves.
class Groups {
 public:
  explicit Groups(const VideoIndex &index);
  // The end of the group that begins with frame `first`: the next frame, at least `least` frames behind it, from which
  // on decoding can begin anew; or the number of frames.
  int32_t end_of(int32_t first, int32_t least, const std::function<Bytes(int32_t)> &read) const;

 private:
  const VideoIndex &index_;
  std::vector<int32_t> starts_;  // key frames with all frames decoded before them also shown before them
};
