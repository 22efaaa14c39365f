// SPDX-License-Identifier: Apache-2.0
// The GPU's video decoders: a number of lanes, each with a stream and, once needed, a decoder that is kept for later
// videos.
#pragma once
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "video/cuvid.h"
#include "video/parameter_sets.h"

struct Lane {
  void *stream = nullptr, *done = nullptr;  // a CUstream, and a CUevent after its work
  cuvid::Decoder decoder = nullptr;
  int32_t codec = -1, chroma = 0, bits = 0;
  uint32_t n_surfaces = 0, max_width = 0, max_height = 0;
  uint32_t width = 0, height = 0;  // as coded, of the current video
  bool is_busy = false;

  void close(const cuvid::Functions &f);
};

// Makes a CUDA context current in this thread during its lifetime.
class Current {
 public:
  explicit Current(void *context);
  ~Current();
  Current(const Current &) = delete;
};

class VideoEngines {
 public:
  VideoEngines(const cuvid::Functions &functions, void *context, std::vector<Lane> lanes)
      : f(functions), context_(context), lanes_(std::move(lanes)) {}
  ~VideoEngines();

  // What can be decoded; `is_supported` is 0 if it can't. This and the following functions need the context to be
  // current.
  cuvid::Caps caps(int codec, const StreamFormat &format);
  // A lane for one video, preferably with a decoder of its kind.
  Lane &take(int codec, const StreamFormat &format);
  void give_back(Lane &lane);
  // Makes the lane's decoder fit the sequence. Returns its number of surfaces. Fails if the GPU can't decode it.
  int prepare(Lane &lane, const cuvid::Format &format);

  const cuvid::Functions f;
  void *context() const { return context_; }
  int64_t n_created = 0, n_reconfigured = 0;

 private:
  void *const context_;
  std::mutex mutex_, creating_;
  std::vector<Lane> lanes_;
  std::map<std::tuple<int, int, int>, cuvid::Caps> caps_;
};

// The number of a codec; -1 if GPU decoders are not used for it.
int codec_on_gpu(const char *name);

// Fails if a decoder function returned an error.
void check_cuvid(int code, const char *doing);
