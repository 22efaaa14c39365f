// SPDX-License-Identifier: Apache-2.0
// MPEG-TS: transport packets of 188 bytes (ISO/IEC 13818-1), optionally with 4 bytes before them (as from cameras and
// Blu-ray) or 16 after them; and the PES packets in them, which carry the times.
#include <algorithm>
#include <map>

#include "video/codecs.h"
#include "video/elementary.h"
#include "video/pes.h"
#include "video/pieces.h"

namespace {

constexpr int64_t kPacket = 188;
constexpr uint8_t kSync = 0x47;
constexpr int64_t kReadAtOnce = 1 << 18;
constexpr int kProbed = 5;  // consecutive packets needed
constexpr int64_t kLongestSection = 4096;
constexpr int32_t kPrograms = 0;  // the stream that lists programs

int64_t prefix_of(int32_t packet_size) { return packet_size == 192 ? 4 : 0; }

// The packets of a file in sequence; after a bad start byte, it searches for the next packet.
class Packets {
 public:
  Packets(const Source &file, int32_t packet_size, int64_t place)
      : file_(file, kReadAtOnce), size_(packet_size), prefix_(prefix_of(packet_size)), at_(place) {}

  struct One {
    int64_t begin, end;
    int32_t stream;
    bool begins, is_scrambled;
    Bytes payload;
  };
  bool next(One *one) {
    for (;;) {
      const Bytes b = file_.at(at_, prefix_ + kPacket);
      if (b.size < prefix_ + kPacket) return false;
      if (b.data[prefix_] != kSync) {
        at_++;
        continue;
      }
      const uint8_t *p = b.data + prefix_;
      one->begin = at_, one->end = std::min(at_ + size_, file_.size());
      at_ += size_;
      one->stream = (p[1] & 31) << 8 | p[2];
      one->begins = p[1] & 0x40, one->is_scrambled = p[3] & 0xc0;
      const int64_t begin = 4 + (p[3] & 0x20 ? 1 + p[4] : 0);
      if ((p[1] & 0x80) || !(p[3] & 0x10) || begin >= kPacket) continue;  // damaged, or without a payload
      one->payload = {p + begin, kPacket - begin};
      return true;
    }
  }

 private:
  Pieces file_;
  const int64_t size_, prefix_;
  int64_t at_;
};

class Transport : public Chunks {
 public:
  Transport(const Source &file, int32_t packet_size, int32_t stream, int64_t place)
      : packets_(file, packet_size, place), stream_(stream) {}

  bool next(Chunk *c) override {
    for (Packets::One p; packets_.next(&p);) {
      if (p.stream != stream_) continue;
      if (p.is_scrambled) fail("MPEG-TS: the video is encrypted");
      *c = {};
      c->begin = p.begin, c->end = p.end, c->bytes = p.payload;
      if (p.begins) {
        const int64_t head = read_pes(p.payload, c);
        if (head < 0) continue;
        left_ = head;
      }
      const int64_t n = std::min(left_, c->bytes.size);  // of the PES packet's header
      left_ -= n, c->bytes = {c->bytes.data + n, c->bytes.size - n};
      return true;
    }
    return false;
  }

 private:
  Packets packets_;
  const int32_t stream_;
  int64_t left_ = 0;
};

// Tables that come in sections: the list of programs, and the streams of each.
class Tables {
 public:
  // Returns the number of the video stream; -1 while it is unknown.
  int32_t add(const Packets::One &p, const char **codec) {
    if (p.stream != kPrograms && !programs_.count(p.stream)) return -1;
    std::vector<uint8_t> &section = sections_[p.stream];
    Bytes b = p.payload;
    if (p.begins) {
      const int64_t skip = 1 + b.data[0];
      if (skip >= b.size) return -1;
      b = {b.data + skip, b.size - skip};
      section.clear();
    } else if (section.empty()) {
      return -1;
    }
    section.insert(section.end(), b.data, b.data + b.size);
    const Bytes s{section.data(), (int64_t)section.size()};
    if (s.size < 3) return -1;
    const int64_t size = 3 + (s.be16(1) & 0xfff);
    if (s.size < size && s.size < kLongestSection) return -1;
    const int32_t found = p.stream == kPrograms ? read_programs(s, size) : read_streams(s, size, codec);
    section.clear();
    return found;
  }

 private:
  int32_t read_programs(Bytes s, int64_t size) {
    for (int64_t at = 8; at + 4 + 4 <= size && s.has(at, 4); at += 4)
      if (s.be16(at)) programs_[(int32_t)(s.be16(at + 2) & 0x1fff)] = true;
    return -1;
  }
  static int32_t read_streams(Bytes s, int64_t size, const char **codec) {
    if (!s.has(0, 12) || s.data[0] != 2) return -1;
    int64_t at = 12 + (s.be16(10) & 0xfff);
    while (at + 5 + 4 <= size && s.has(at, 5)) {
      *codec = codec_of_stream_type(s.data[at]);
      if (**codec) return (int32_t)(s.be16(at + 1) & 0x1fff);
      at += 5 + (s.be16(at + 3) & 0xfff);
    }
    return -1;
  }

  std::map<int32_t, bool> programs_;
  std::map<int32_t, std::vector<uint8_t>> sections_;
};

}  // namespace

int32_t find_transport_packets(const Source &file, int64_t *begin) {
  std::vector<uint8_t> head((size_t)std::min<int64_t>(file.size, 204 * (kProbed + 1)));
  if (head.empty()) return 0;
  file.read(0, (int64_t)head.size(), head.data());
  for (const int32_t size : {188, 192, 204})
    for (int64_t first = prefix_of(size); first < size + prefix_of(size); first++) {
      int n = 0;
      while (first + n * size < (int64_t)head.size() && head[(size_t)(first + n * size)] == kSync) n++;
      // A short file may have fewer packets.
      if (n >= kProbed || (n >= 2 && first == prefix_of(size) && first + n * size >= file.size))
        return *begin = first - prefix_of(size), size;
    }
  return 0;
}

std::unique_ptr<Chunks> transport_chunks(const Source &file, int32_t packet_size, int32_t stream, int64_t place) {
  return std::make_unique<Transport>(file, packet_size, stream, place);
}

VideoIndex read_transport(const Source &file) {
  int64_t begin = 0;
  const int32_t size = find_transport_packets(file, &begin);
  Packets packets(file, size, begin);
  Tables tables;
  const char *codec = "";
  int32_t stream = -1;
  for (Packets::One p; stream < 0 && packets.next(&p);) stream = tables.add(p, &codec);
  if (stream < 0) fail("MPEG-TS: there is no video in it");
  Transport chunks(file, size, stream, begin);
  return index_stream(chunks, codec, size, stream);
}
