// SPDX-License-Identifier: Apache-2.0
// The sound of Matroska and WebM files (RFC 9559; codecs: draft-ietf-cellar-codec).
#include <algorithm>

#include "audio/sound_track.h"
#include "video/matroska.h"

using namespace matroska;

namespace {

struct Name {
  const char *matroska, *ffmpeg;
};
constexpr Name kNames[] = {{"A_OPUS", "opus"},        {"A_VORBIS", "vorbis"}, {"A_AAC", "aac"},   {"A_FLAC", "flac"},
                           {"A_MPEG/L3", "mp3float"}, {"A_AC3", "ac3"},       {"A_EAC3", "eac3"}, {"A_ALAC", "alac"}};
constexpr int64_t kSkipAt = 10;  // offset in an Opus header of the pre-skip (RFC 7845, 5.1), 2 bytes

}  // namespace

SoundTrack read_matroska_sound(Bytes bytes) {
  File file = read_tracks(source_of(bytes), kSound);
  Track *found = nullptr;
  for (Track &t : file.tracks)
    if (t.type == kSound && !found && !t.index.packets.empty()) found = &t;
  if (!found) fail("Matroska: there is no sound in it");
  if (!found->is_readable) fail("Matroska: the sound is encrypted, or compressed in a way that is not supported");
  SoundTrack track;
  for (const Name &name : kNames)
    if (found->codec_id == name.matroska) track.codec = name.ffmpeg;
  if (!*track.codec)
    fail("Matroska: its sound (%.32s) is not supported; Opus, Vorbis, AAC, FLAC, MP3, AC-3 and ALAC are",
         found->codec_id.c_str());
  track.extradata = std::move(found->index.extradata), track.prefix = std::move(found->index.prefix);
  track.packets = std::move(found->index.packets);
  // The delay includes it; some decoders skip it themselves.
  if (found->codec_id == "A_OPUS" && track.extradata.size() >= kSkipAt + 2)
    track.extradata[kSkipAt] = track.extradata[kSkipAt + 1] = 0;
  track.channels = (int32_t)std::min<uint64_t>(found->channels, kMostChannels);
  track.timescale = 1000000000;
  track.begin = found->delay, track.padding = found->padding;
  const double first = (double)track.packets[0].pts * (double)file.scale;
  track.silence = (int64_t)std::clamp(first, 0.0, (double)(INT64_MAX >> 2));
  track.duration = track.length = -1;
  return track;
}
