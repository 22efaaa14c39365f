// SPDX-License-Identifier: Apache-2.0
// The head of an answer by HTTP/1.1.
#pragma once
#include <cstdint>
#include <string>

struct HttpHead {
  int status = 0;
  std::string reason;   // with the status, as in "404 Not Found"
  int64_t length = -1;  // of the body; -1: it is not said
  std::string tag, range;
  bool is_plain = true;  // the body comes as it is: neither in chunks nor compressed
  bool is_kept = false;  // the connection serves for the next request
  // Checksums of the body in base64, "" where there is none.
  std::string crc32c, md5;

  // Of the text before the empty line. False: this is not HTTP.
  bool parse(const char *text, int64_t size);
};

// "" if the body has all checksums that the head names, or which it does not have. Those are of whole objects.
const char *wrong_checksum(const HttpHead &head, const char *body, int64_t size);
