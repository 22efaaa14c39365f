// SPDX-License-Identifier: Apache-2.0
#include "read/sound_head.h"

#include "audio/audio_file.h"
#include "read/parser.h"

constexpr int64_t kHead = 4096;  // bytes that include the header of most WAV files, and of FLAC without pictures

static bool is_known(const char *head, int64_t n, int64_t size) {
  try {
    const AudioInfo info = peek_audio_head({(const uint8_t *)head, n}, size);
    return info.encoding == FLAC || wav_frame_bytes(info) > 0;
  } catch (const std::exception &) {  // the decoder will report it
    return false;
  }
}

static void parse(Sample &s, const SoundHeadArgs &args) {
  const int64_t size = s.object_length(0);
  if (!size) fail("the file is empty");
  if (size >= kHead && (size >= args.least || s.is_at_hand(0))) {
    char *head = (char *)s.take(kHead);
    s.read(0, 0, kHead, head);
    if (is_known(head, kHead, size)) {
      s.give(0, head, size);
      return s.leave_rest(0, head, kHead);
    }
  }
  char *data = (char *)s.take(size);
  s.read(0, 0, size, data);
  s.give(0, data, size);
}

EXPORT_PARSER(sound_head, SoundHeadArgs, parse)
