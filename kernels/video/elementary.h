// SPDX-License-Identifier: Apache-2.0
// Picture streams in pieces, as in MPEG-TS and MPEG-PS, or as plain files.
#pragma once
#include <memory>

#include "video/index.h"

// A part of the stream.
struct Chunk {
  int64_t begin = 0, end = 0;  // of the container's packet in the file
  Bytes bytes{nullptr, 0};     // of the stream; valid until the next chunk
  bool has_time = false;       // of the first picture that begins in it, in 1 / 90000 s modulo 2^33
  int64_t pts = 0, dts = 0;
};

class Chunks {
 public:
  virtual ~Chunks() = default;
  virtual bool next(Chunk *chunk) = 0;
};

// How streams are cut: not at all, into packets of a program stream, or into transport packets of this many bytes.
enum Wrapping : int32_t { NOT_WRAPPED = 0, PROGRAM_STREAM = 1, FIRST_TRANSPORT = 188 };

// The chunks of a stream from `place` on, where one of its packets begins (`Chunk::begin`).
std::unique_ptr<Chunks> chunks_of(const Source &file, int32_t wrapping, int32_t stream, int64_t place);

// Reads a whole stream and returns an index of its pictures.
VideoIndex index_stream(Chunks &chunks, const char *codec, int32_t wrapping, int32_t stream);

// Returns the packet size of a transport stream, and where its packets begin; 0 if it is no transport stream.
int32_t find_transport_packets(const Source &file, int64_t *begin);
std::unique_ptr<Chunks> transport_chunks(const Source &file, int32_t packet_size, int32_t stream, int64_t place);
std::unique_ptr<Chunks> program_chunks(const Source &file, int32_t stream, int64_t place);
