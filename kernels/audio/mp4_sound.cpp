// SPDX-License-Identifier: Apache-2.0
// The sound of MP4, M4A and QuickTime files (ISO/IEC 14496-12 and -14, Apple's QuickTime File Format).
#include <cmath>

#include "audio/sound_track.h"
#include "video/esds.h"
#include "video/mp4.h"

using namespace mp4;

namespace {

constexpr int64_t kEntry = 28;  // bytes of a sample entry before its boxes; QuickTime's later versions have more

const char *codec_of_sound(uint32_t object_type) {
  switch (object_type) {  // mp4ra.org
    case 0x40:
    case 0x66:
    case 0x67:
    case 0x68:
      return "aac";
    case 0x69:
    case 0x6b:
      return "mp3float";
    case 0xa5:
      return "ac3";
    case 0xa6:
      return "eac3";
    default:
      return "";
  }
}

// Converts OpusSpecificBox (Encapsulation of Opus in ISO BMFF, 4.3.2) to an Ogg header (RFC 7845, 5.1), with a pre-skip
// of 0: some decoders would skip, and the edit list tells it already.
std::vector<uint8_t> opus_head(Bytes b) {
  std::vector<uint8_t> head = {'O', 'p', 'u', 's', 'H', 'e', 'a', 'd', 1, (uint8_t)b.u8(1)};
  const auto little = [&](uint32_t x, int bytes) {
    for (int i = 0; i < bytes; i++) head.push_back((uint8_t)(x >> 8 * i));
  };
  little(0, 2), little(b.be32(4), 4), little(b.be16(8), 2);
  head.insert(head.end(), b.need(10, b.size - 10), b.data + b.size);
  return head;
}

void read_boxes(Bytes b, SoundTrack *track) {
  for_boxes(b, [&](uint32_t type, Bytes c, int64_t at) {
    if (type == tag("wave")) {
      read_boxes(c, track);
    } else if (type == tag("esds")) {
      VideoIndex index;
      const uint32_t object = read_esds(c, &index);
      if (!*track->codec) track->codec = codec_of_sound(object);
      track->extradata = std::move(index.extradata);
    } else if (type == tag("alac") && c.size > 4) {
      track->codec = "alac";  // which expects the box with its header
      track->extradata.assign(b.data + at - 8, c.data + c.size);
    } else if (type == tag("dOps")) {
      track->codec = "opus", track->extradata = opus_head(c);
    } else if (type == tag("dfLa") && c.has(8, 34)) {
      track->codec = "flac", track->extradata.assign(c.data + 8, c.data + 42);
    }
  });
}

// stsd: the first sample entry.
void read_entry(Bytes b, SoundTrack *track) {
  bool found = false;
  for_boxes(b.size > 8 ? b.part(8, b.size - 8) : Bytes{b.data, 0}, [&](uint32_t type, Bytes entry, int64_t) {
    if (found || entry.size < kEntry) return;
    found = true;
    track->channels = (int32_t)entry.be16(16);
    if (type == tag("ac-3")) track->codec = "ac3";
    if (type == tag("ec-3")) track->codec = "eac3";
    if (type == tag(".mp3")) track->codec = "mp3float";
    const uint32_t version = entry.be16(8);
    const int64_t head = kEntry + (version == 1 ? 16 : version == 2 ? 36 : 0);
    if (entry.has(head, 0)) read_boxes(entry.part(head, entry.size - head), track);
    if (!*track->codec)
      fail("MP4: its sound ('%c%c%c%c') is not supported; AAC, MP3, ALAC, FLAC, Opus and AC-3 are", (int)(type >> 24),
           (int)(type >> 16 & 255), (int)(type >> 8 & 255), (int)(type & 255));
  });
  if (!found) fail("MP4: its sound has no description");
}

// Reads from an edit list (8.6.6) when sound is heard: nothing before the edit, and silence first if it begins with an
// empty edit.
void read_edits(const Track &from, int64_t movie_timescale, SoundTrack *track) {
  const auto units = [&](int64_t duration) -> int64_t {
    const double scale = (double)track->timescale / (double)movie_timescale;
    return std::llround(std::clamp((double)duration * scale, 0.0, (double)kFar));
  };
  track->length = track->duration;
  bool is_cut = false;
  for (const Edit &e : from.edits) {
    if (e.media_time < 0) {
      if (!is_cut) track->silence = std::min(track->silence + units(e.duration), kFar);
      continue;
    }
    if (is_cut) fail("MP4: edit lists that put pieces of sound together are not supported");
    is_cut = true;
    track->begin = std::min(e.media_time, track->duration);
    track->length = track->duration - track->begin;
    // The edit's end has the precision of the movie's clock; the duration of the packets is exact.
    const int64_t heard = units(e.duration), tick = track->timescale / movie_timescale + 1;
    if (e.duration > 0 && heard + tick < track->length) track->length = heard;
  }
}

}  // namespace

SoundTrack read_mp4_sound(Bytes file) {
  Movie movie = read_tracks(source_of(file), kSound);
  Track *found = nullptr;
  for (Track &t : movie.tracks)
    if (t.handler == kSound && !t.index.packets.empty() && (!found || (t.is_enabled && !found->is_enabled))) found = &t;
  if (!found) fail("MP4: there is no sound in it");
  SoundTrack track;
  read_entry(found->stsd, &track);
  track.timescale = found->index.timescale;
  track.packets = std::move(found->index.packets);
  for (int64_t d : found->durations) {
    track.duration += d;
    if (d < 0 || track.duration > kFar) fail("MP4: its sound lasts impossibly long");
  }
  read_edits(*found, movie.timescale, &track);
  return track;
}
