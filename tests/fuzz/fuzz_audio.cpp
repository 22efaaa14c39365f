// SPDX-License-Identifier: Apache-2.0
// Damages sounds and lets the decoder loose on them, under AddressSanitizer. Built and run by fuzz_audio.py.
//
//   fuzz_audio NAME LIMIT SEED FILE...
//
// FFMPEG_LIBRARIES may name libavutil and libavcodec, separated by a colon; without them the sound of MP4 and AAC files
// is not decoded.
//
// Every input lies in memory of exactly its size. The output is filled with a pattern first: a sound that is reported
// as good must have been written completely, so it must come out the same over two different patterns.
#include <cmath>
#include <memory>
#include <string>

#include "audio/audio_file.h"
#include "audio/decode_audio.h"
#include "core/kernel.h"
#include "damage.h"

extern "C" int decode_audio(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);
extern "C" int64_t ffmpeg_open(const char *util_path, const char *codec_path, char *error);

namespace {

constexpr int64_t kMostSamples = 1 << 22;  // larger headers are the caller's to refuse

struct Counts {
  int64_t inputs = 0, headers = 0, sounds = 0, large = 0;
};

void try_one(const File &file, Random &r, Scratch &scratch, Counts &counts) {
  counts.inputs++;
  std::unique_ptr<uint8_t[]> bytes(new uint8_t[file.size()]);  // exact size; no slack
  memcpy(bytes.get(), file.data(), file.size());
  AudioInfo info;
  try {
    // The beginning of a longer file.
    const int64_t there = (int64_t)below(r, file.size() + 1);
    std::unique_ptr<uint8_t[]> head(new uint8_t[there]);
    memcpy(head.get(), file.data(), there);
    info = peek_wav_head({head.get(), there}, (int64_t)file.size());
    if (info.frames < 0 || info.frames * wav_frame_bytes(info) > (int64_t)file.size()) abort();
  } catch (const std::exception &) {
  }
  try {
    info = peek_audio({bytes.get(), (int64_t)file.size()});
  } catch (const std::exception &) {
    return;
  }
  if (info.encoding == NEEDS_FFMPEG) return;
  counts.headers++;
  if (info.frames < 0 || info.channels < 1 || !(info.rate > 0)) abort();
  static const double rates[] = {0, 0, 8000, 22050, 44100};
  const double wanted = rates[below(r, 5)], rate = wanted ? wanted : info.rate;
  const double length = rate == info.rate ? (double)info.frames : std::ceil(info.frames * rate / info.rate);
  if (length * info.channels > kMostSamples || (double)info.frames * info.channels > kMostSamples) {
    counts.large++;
    return;
  }
  const bool downmix = r() % 2;
  static const int dtypes[] = {FLOAT, INT16, INT32};
  Tensor out[2] = {{nullptr, {(int64_t)length, info.channels}, downmix ? 1 : 2, dtypes[below(r, 3)]},
                   {nullptr, {}, 0, FLOAT}};
  DecodeAudioArgs a{};
  a.frames = a.length = info.frames, a.offset = info.offset, a.channels = info.channels, a.encoding = info.encoding;
  a.rate = info.rate, a.out_rate = rate, a.downmix = downmix, a.lobes = 3 + (int32_t)below(r, 20);
  if (r() % 2 && length) {
    a.first_frame = (int64_t)below(r, (uint64_t)length);
    out[0].shape[0] = 1 + (int64_t)below(r, (uint64_t)length - a.first_frame);
    if (!downmix) {
      a.first_channel = (int64_t)below(r, info.channels);
      out[0].shape[1] = 1 + (int64_t)below(r, info.channels - a.first_channel);
    }
  }
  Tensor in{bytes.get(), {(int64_t)file.size()}, 1, UINT8};
  const int64_t n = out[0].volume() * item_size(out[0].dtype);
  std::unique_ptr<uint8_t[]> first(new uint8_t[n]), second(new uint8_t[n]);
  float told;
  char error[kErrorSize];
  memset(first.get(), 0x00, n);
  out[0].data = first.get(), out[1].data = &told;
  if (decode_audio(out, &in, &a, &scratch, error)) return;
  memset(second.get(), 0xa7, n);
  // What the thread's scratch memory held before must not show either.
  for (int part = 0; part < Scratch::kParts; part++) memset(scratch.get(4096, part), 0x5c, 4096);
  out[0].data = second.get();
  if (decode_audio(out, &in, &a, &scratch, error) || memcmp(first.get(), second.get(), n)) {
    fprintf(stderr, "a sound of encoding %d was not written completely\n", info.encoding);
    abort();
  }
  counts.sounds++;
}

}  // namespace

int main(int argc, char **argv) {
  if (const char *names = getenv("FFMPEG_LIBRARIES")) {
    const std::string both = names;
    char error[kErrorSize];
    if (!ffmpeg_open(both.substr(0, both.find(':')).c_str(), both.substr(both.find(':') + 1).c_str(), error)) {
      fprintf(stderr, "%s\n", error);
      return 1;
    }
  }
  Scratch scratch;
  Counts counts;
  if (int failed = fuzz(argc, argv, [&](const File &file, Random &r) { try_one(file, r, scratch, counts); }))
    return failed;
  printf("%lld inputs, %lld with a readable header (%lld of them too large), %lld decoded\n", (long long)counts.inputs,
         (long long)counts.headers, (long long)counts.large, (long long)counts.sounds);
  return 0;
}
