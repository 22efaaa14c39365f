// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1.1 response.
#pragma once
#include <cstdint>
#include <string>

struct HttpHead {
  int status = 0;
  std::string reason;   // with the status, as in "404 Not Found"
  int64_t length = -1;  // of the body; -1 if not given
  std::string tag, range;
  bool is_plain = true;  // the body is neither chunked nor compressed
  bool is_kept = false;  // the connection stays open
  // Checksums of the body in base64, or "".
  std::string crc32c, md5;

  // Parses the text before the empty line. Returns false if this is not HTTP.
  bool parse(const char *text, int64_t size);
};

// The name of a checksum in the head that the body does not match, or "". The checksums are those of whole objects.
const char *wrong_checksum(const HttpHead &head, const char *body, int64_t size);
