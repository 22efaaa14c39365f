// SPDX-License-Identifier: Apache-2.0
// MP4 and QuickTime: ISO/IEC 14496-12. The tables of `moov` (and of `moof`, in fragmented files) say where each picture
// lies and when it is shown; the media data itself is not read.
#include "video/mp4.h"

#include <cmath>

#include "video/codecs.h"
#include "video/esds.h"

using namespace mp4;

namespace {

constexpr int kMaxDepth = 12;

// stsd: the first sample entry. Samples that refer to another one, of another codec or size, fail when they are
// decoded.
bool read_entry(Bytes b, Track *track) {
  bool found = false;
  for_boxes(b.size > 8 ? b.part(8, b.size - 8) : Bytes{b.data, 0}, [&](uint32_t type, Bytes entry, int64_t) {
    if (found || entry.size < 78) return;
    found = true;
    VideoIndex &index = track->index;
    index.codec = codec_of_fourcc(type);
    index.width = (int32_t)entry.be16(24), index.height = (int32_t)entry.be16(26);
    for_boxes(entry.part(78, entry.size - 78), [&](uint32_t kind, Bytes content, int64_t) {
      if (kind == tag("avcC") || kind == tag("hvcC") || kind == tag("av1C"))
        index.extradata.assign(content.data, content.data + content.size);
      else if (kind == tag("esds"))
        read_esds(content, &index);
    });
  });
  return found;
}

// The rotation of a matrix (tkhd); mirrored or skewed pictures are used as they are.
int32_t rotation_of(Bytes b, int64_t at) {
  const auto fixed = [&](int i) { return (double)(int32_t)b.be32(at + 4 * i) / 65536; };
  const double a = fixed(0), c = fixed(1), degrees = std::atan2(c, a) * 180 / 3.14159265358979323846;
  const int quarter = (int)std::lround(-degrees / 90);
  return (quarter % 4 + 4) % 4 * 90;
}

void read_track(Bytes b, Track *track, int depth) {
  if (depth > kMaxDepth) return;
  for_boxes(b, [&](uint32_t type, Bytes c, int64_t) {
    if (type == tag("mdia") || type == tag("minf") || type == tag("stbl") || type == tag("edts"))
      return read_track(c, track, depth + 1);
    if (type == tag("tkhd")) {
      const int64_t wide = c.u8(0) == 1 ? 12 : 0;
      track->is_enabled = c.be32(0) & 1;
      track->id = c.be32(wide ? 20 : 12);
      track->index.rotation = rotation_of(c, 40 + wide);
    } else if (type == tag("mdhd")) {
      track->index.timescale = c.be32(c.u8(0) == 1 ? 20 : 12);
    } else if (type == tag("hdlr")) {
      const uint32_t kind = c.be32(8);
      if (kind == kPictures || kind == kSound) track->handler = kind;  // QuickTime has other handlers as well
    } else if (type == tag("elst")) {
      const bool wide = c.u8(0) == 1;
      const int64_t n = std::min<int64_t>(c.be32(4), (c.size - 8) / (wide ? 20 : 12));
      for (int64_t i = 0; i < n; i++)
        track->edits.push_back(
            wide ? Edit{be64(c, 8 + 20 * i), be64(c, 16 + 20 * i)}
                 : Edit{c.be32(8 + 12 * i), c.be32(12 + 12 * i) == ~0u ? -1 : (int64_t)c.be32(12 + 12 * i)});
    } else if (type == tag("stsd")) {
      track->stsd = c;
    } else if (type == tag("stts")) {
      track->stts = c;
    } else if (type == tag("ctts")) {
      track->ctts = c;
    } else if (type == tag("stss")) {
      track->stss = c;
    } else if (type == tag("stsz")) {
      track->stsz = c;
    } else if (type == tag("stz2")) {
      track->stz2 = c;
    } else if (type == tag("stsc")) {
      track->stsc = c;
    } else if (type == tag("stco")) {
      track->stco = c;
    } else if (type == tag("co64")) {
      track->co64 = c;
    }
  });
}

// The number of a table's entries, at most those present.
int64_t entries(Bytes b, int64_t width) { return b.size < 8 ? 0 : std::min<int64_t>(b.be32(4), (b.size - 8) / width); }

void add_packet(Track *track, Packet packet, int64_t duration) {
  track->index.packets.push_back(packet);
  track->durations.push_back(duration);
}

void read_tables(int64_t file_size, Track *track) {
  const int64_t uniform = track->stsz.size >= 12 ? track->stsz.be32(4) : 0;
  const int bits = track->stz2.size >= 12 ? (int)track->stz2.u8(7) : 0;
  int64_t n = 0;
  if (bits)
    n = std::min<int64_t>(track->stz2.be32(8), (track->stz2.size - 12) * 8 / bits);
  else if (track->stsz.size >= 12)
    n = uniform ? track->stsz.be32(8) : std::min<int64_t>(track->stsz.be32(8), (track->stsz.size - 12) / 4);
  n = std::min(n, file_size);  // every picture has at least one byte
  if (n > INT32_MAX) fail("MP4: more than 2^31 pictures");
  const auto size_of = [&](int64_t i) -> int64_t {
    if (uniform) return uniform;
    if (!bits) return track->stsz.be32(12 + 4 * i);
    if (bits == 16) return track->stz2.be16(12 + 2 * i);
    if (bits == 8) return track->stz2.u8(12 + i);
    return track->stz2.u8(12 + i / 2) >> (i % 2 ? 0 : 4) & 15;
  };
  const bool wide = track->co64.size > 0;
  const int64_t n_chunks = wide ? entries(track->co64, 8) : entries(track->stco, 4), n_runs = entries(track->stsc, 12);
  std::vector<Packet> &packets = track->index.packets;
  packets.reserve((size_t)n);
  track->durations.reserve((size_t)n);
  int64_t i = 0;
  for (int64_t run = 0; run < n_runs && i < n; run++) {
    const int64_t first = track->stsc.be32(8 + 12 * run), each = track->stsc.be32(12 + 12 * run);
    const int64_t end = run + 1 < n_runs ? (int64_t)track->stsc.be32(20 + 12 * run) : n_chunks + 1;
    for (int64_t chunk = first; chunk < end && chunk >= 1 && chunk <= n_chunks && i < n; chunk++) {
      int64_t at = wide ? be64(track->co64, 8 * chunk) : (int64_t)track->stco.be32(4 + 4 * chunk);
      for (int64_t k = 0; k < each && i < n; k++, i++) {
        const int64_t size = size_of(i);
        if (at < 0 || at > kFar || size > INT32_MAX)
          fail("MP4: picture %lld lies at an impossible place", (long long)i);
        packets.push_back({at, 0, (int32_t)size, track->stss.size == 0});
        at += size;
      }
    }
  }
  n = i;
  int64_t dts = 0;
  i = 0;
  const int64_t n_times = entries(track->stts, 8);
  int64_t delta = 1;
  for (int64_t e = 0; e < n_times; e++) {
    const int64_t count = track->stts.be32(8 + 8 * e);
    delta = track->stts.be32(12 + 8 * e);
    for (int64_t k = 0; k < count && i < n; k++, i++)
      packets[i].pts = dts, track->durations.push_back(delta), dts += delta;
  }
  for (; i < n; i++) packets[i].pts = dts, track->durations.push_back(delta), dts += delta;
  i = 0;
  const int64_t n_offsets = entries(track->ctts, 8);
  for (int64_t e = 0; e < n_offsets; e++) {
    const int64_t count = track->ctts.be32(8 + 8 * e);
    const int32_t offset = (int32_t)track->ctts.be32(12 + 8 * e);
    for (int64_t k = 0; k < count && i < n; k++, i++) packets[i].pts += offset;
  }
  const int64_t n_keys = entries(track->stss, 4);
  for (int64_t e = 0; e < n_keys; e++) {
    const int64_t number = track->stss.be32(8 + 4 * e);
    if (number >= 1 && number <= n) packets[number - 1].is_key = true;
  }
  track->next_dts = dts;
}

void read_run(int64_t file_size, Bytes b, Track *track, int64_t base, int64_t *at, uint32_t duration, uint32_t size,
              uint32_t flags) {
  const uint32_t has = b.be32(0) & 0xffffff, version = b.u8(0);
  const int64_t count = b.be32(4);
  int64_t p = 8;
  if (has & 1) *at = base + (int32_t)b.be32(p), p += 4;
  uint32_t first_flags = flags;
  if (has & 4) first_flags = b.be32(p), p += 4;
  const int64_t each = 4 * (!!(has & 0x100) + !!(has & 0x200) + !!(has & 0x400) + !!(has & 0x800));
  if (count > file_size || (each && count > (b.size - p) / each))
    fail("MP4: a fragment promises %lld pictures, more than it holds", (long long)count);
  if ((int64_t)track->index.packets.size() + count > file_size) fail("MP4: more pictures than bytes");
  for (int64_t i = 0; i < count; i++) {
    uint32_t own_duration = duration, own_size = size, own_flags = i == 0 ? first_flags : flags;
    int64_t offset = 0;
    if (has & 0x100) own_duration = b.be32(p), p += 4;
    if (has & 0x200) own_size = b.be32(p), p += 4;
    if (has & 0x400) own_flags = b.be32(p), p += 4;
    if (has & 0x800) offset = version ? (int64_t)(int32_t)b.be32(p) : (int64_t)b.be32(p), p += 4;
    if (*at < 0 || *at > kFar || own_size > INT32_MAX) fail("MP4: a picture of a fragment lies at an impossible place");
    if (track->next_dts < 0 || track->next_dts > kFar)
      fail("MP4: a picture of a fragment is shown at an impossible time");
    const bool is_key = !(own_flags & 0x10000);  // sample_is_non_sync_sample
    add_packet(track, {*at, track->next_dts + offset, (int32_t)own_size, is_key}, own_duration);
    *at += own_size, track->next_dts += own_duration;
  }
}

void read_fragment(int64_t file_size, Bytes moof, int64_t begin, uint32_t handler, Movie *movie) {
  for_boxes(moof, [&](uint32_t type, Bytes traf, int64_t) {
    if (type != tag("traf")) return;
    Track *track = nullptr;
    int64_t base = begin, at = begin;
    uint32_t duration = 0, size = 0, flags = 0;
    for_boxes(traf, [&](uint32_t kind, Bytes b, int64_t) {
      if (kind == tag("tfhd")) {
        const uint32_t has = b.be32(0) & 0xffffff, id = b.be32(4);
        for (Track &t : movie->tracks)
          if (t.id == id) track = &t;
        if (!track) return;
        int64_t p = 8;
        if (has & 1) base = be64(b, p), p += 8;
        if (base < 0 || base > kFar) fail("MP4: a fragment lies at an impossible place");
        if (has & 2) p += 4;
        duration = track->default_duration, size = track->default_size, flags = track->default_flags;
        if (has & 8) duration = b.be32(p), p += 4;
        if (has & 16) size = b.be32(p), p += 4;
        if (has & 32) flags = b.be32(p), p += 4;
        at = base;
      } else if (kind == tag("tfdt") && track) {
        track->next_dts = b.u8(0) == 1 ? be64(b, 4) : (int64_t)b.be32(4);
      } else if (kind == tag("trun") && track && track->handler == handler) {
        read_run(file_size, b, track, base, &at, duration, size, flags);
      }
    });
  });
}

void read_movie(Bytes b, Movie *movie) {
  for_boxes(b, [&](uint32_t type, Bytes c, int64_t) {
    if (type == tag("mvhd")) {
      movie->timescale = std::max<int64_t>(1, c.be32(c.u8(0) == 1 ? 20 : 12));
    } else if (type == tag("trak")) {
      movie->tracks.emplace_back();
      read_track(c, &movie->tracks.back(), 0);
    } else if (type == tag("mvex")) {
      for_boxes(c, [&](uint32_t kind, Bytes t, int64_t) {
        if (kind != tag("trex")) return;
        for (Track &track : movie->tracks)
          if (track.id == t.be32(4))
            track.default_duration = t.be32(12), track.default_size = t.be32(16), track.default_flags = t.be32(20);
      });
    }
  });
}

// Frames in presentation order: those of each edit, one edit after another.
void apply_edits(Track *track, int64_t movie_timescale) {
  VideoIndex &index = track->index;
  index.show_all();
  bool trims = false;
  for (const Edit &e : track->edits) trims |= e.media_time >= 0;
  if (!trims) return;
  const std::vector<int32_t> all = std::move(index.shown);
  index.shown.clear(), index.times.clear();
  int64_t begin = 0;  // of the edit, in the media's timescale
  for (const Edit &e : track->edits) {
    const double scale = (double)index.timescale / (double)movie_timescale;
    const int64_t duration = std::llround(std::clamp((double)e.duration * scale, 0.0, (double)kFar));
    if (e.media_time >= 0) {
      const auto early = [&](int32_t i, int64_t time) { return index.packets[i].pts < time; };
      auto it = std::lower_bound(all.begin(), all.end(), e.media_time, early);
      for (; it != all.end(); ++it) {
        const int64_t time = index.packets[*it].pts - e.media_time;
        if (duration > 0 && time >= duration) break;
        if (index.shown.size() >= 2 * all.size() + 16) fail("MP4: the edit list repeats the video too often");
        index.shown.push_back(*it), index.times.push_back(begin + time);
      }
    }
    begin += duration;
    if (begin > kFar) fail("MP4: the edit list ends at an impossible time");
  }
}

}  // namespace

Movie mp4::read_tracks(const Source &file, uint32_t handler) {
  Movie movie;
  bool found = false;
  for (int64_t at = 0; at + 8 <= file.size;) {
    uint8_t head[16] = {};
    file.read(at, std::min<int64_t>(16, file.size - at), head);
    const Bytes h{head, std::min<int64_t>(16, file.size - at)};
    int64_t size = h.be32(0), n_head = 8;
    const uint32_t type = h.be32(4);
    if (size == 1) {
      if (h.size < 16) break;
      size = be64(h, 8), n_head = 16;
    } else if (size == 0) {
      size = file.size - at;
    }
    if (size < n_head || file.size - at < n_head) break;
    const int64_t content = std::min(size, file.size - at) - n_head;
    if ((type == tag("moov") && !found) || type == tag("moof")) {
      movie.kept.emplace_back((size_t)content);
      file.read(at + n_head, content, movie.kept.back().data());
      const Bytes b{movie.kept.back().data(), content};
      if (type == tag("moof")) {
        read_fragment(file.size, b, at, handler, &movie);
      } else {
        found = true;
        read_movie(b, &movie);
        for (Track &t : movie.tracks)
          if (t.handler == handler) read_tables(file.size, &t);
      }
    }
    if (size > file.size - at) break;
    at += size;
  }
  if (!found)
    fail("MP4: there is no table of contents (moov) in the %lld bytes; the file is cut off", (long long)file.size);
  for (Track &t : movie.tracks) {
    if (t.index.packets.size() > INT32_MAX) fail("MP4: more than 2^31 pictures");
    t.index.timescale = std::max<int64_t>(1, t.index.timescale);
  }
  return movie;
}

VideoIndex read_mp4(const Source &file) {
  Movie movie = read_tracks(file, kPictures);
  Track *best = nullptr;
  const auto rank = [](const Track &t) {  // a cover picture is a track as well
    return std::make_pair(std::min<size_t>(t.index.packets.size(), 5), (int64_t)t.index.width * t.index.height);
  };
  for (Track &t : movie.tracks)
    if (t.handler == kPictures && read_entry(t.stsd, &t) && !t.index.packets.empty() &&
        (!best || rank(t) > rank(*best)))
      best = &t;
  if (!best) fail("MP4: there is no video in it");
  apply_edits(best, movie.timescale);
  return std::move(best->index);
}
