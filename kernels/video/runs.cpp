// SPDX-License-Identifier: Apache-2.0
#include "video/runs.h"

#include <algorithm>

#include "video/h264.h"

namespace {

// Finds where decoding must begin for packets.
class Starts {
 public:
  Starts(const VideoIndex &index, const std::function<Bytes(int32_t)> &read)
      : index_(index), read_(read), is_h264_(!strcmp(index.codec, "h264")), length_size_(h264_length_size(index)) {}

  // The last key picture that is neither decoded nor shown after the packet, and from which it is decoded correctly.
  // Pictures decoded after a key picture but shown before it (of an open group) may need the group before.
  int32_t of(int32_t packet) const {
    int32_t key = packet;
    for (; key > 0; key--)
      if (index_.packets[key].is_key && index_.packets[key].pts <= index_.packets[packet].pts && begins_at(key, packet))
        break;
    return key;
  }
  // H.264 may have key pictures after which output becomes correct gradually.
  bool begins_at(int32_t key, int32_t packet) const {
    if (!is_h264_) return true;
    const H264Packet p = read(key);
    if (p.is_idr || p.recovery < 0) return true;
    int64_t references = 0;
    for (int32_t i = key + 1; i <= packet && references < p.recovery; i++) references += read(i).is_reference;
    return references >= p.recovery;
  }

 private:
  H264Packet read(int32_t i) const { return read_h264_packet(read_(i), length_size_); }

  const VideoIndex &index_;
  const std::function<Bytes(int32_t)> &read_;
  const bool is_h264_;
  const int length_size_;
};

}  // namespace

std::vector<Run> runs_of(const std::vector<std::pair<int32_t, int32_t>> &asked, const VideoIndex &index,
                         const std::function<Bytes(int32_t)> &read, bool joins_adjoining) {
  const Starts starts(index, read);
  std::vector<Run> runs;
  for (const auto &[packet, frame] : asked) {
    Run run{starts.of(packet), packet + 1};
    while (!runs.empty() && run.begin < runs.back().end + joins_adjoining) {
      run.begin = std::min(run.begin, runs.back().begin);
      runs.pop_back();
    }
    runs.push_back(run);
  }
  return runs;
}

Groups::Groups(const VideoIndex &index) : index_(index) {
  const int64_t n = (int64_t)index.shown.size();
  std::vector<int32_t> first((size_t)n);  // packet of the frames from each on
  int32_t least = INT32_MAX, most = -1;
  for (int64_t i = n - 1; i >= 0; i--) first[(size_t)i] = least = std::min(least, index.shown[(size_t)i]);
  for (int64_t i = 0; i < n; i++) {
    const int32_t packet = index.shown[(size_t)i];
    if (index.packets[packet].is_key && most < packet && first[(size_t)i] == packet) starts_.push_back((int32_t)i);
    most = std::max(most, packet);
  }
}

int32_t Groups::end_of(int32_t first, int32_t least, const std::function<Bytes(int32_t)> &read) const {
  const Starts starts(index_, read);
  for (auto it = std::lower_bound(starts_.begin(), starts_.end(), first + least); it != starts_.end(); ++it)
    if (starts.begins_at(index_.shown[*it], index_.shown[*it])) return *it;
  return (int32_t)index_.shown.size();
}
