// SPDX-License-Identifier: Apache-2.0
// Requests by plain HTTP/1.1 over connections that are kept: the quick way for http:// URLs. What is not quite simple
// (redirects, other encodings, refusals that last) it leaves to the general client, which knows all of that.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "read/remote_queue.h"

class HttpClient {
 public:
  explicit HttpClient(const RemoteLimits &limits) : limits_(limits) {}
  ~HttpClient();
  // Carries out the request: its state is then kDone, or kFailed if that may pass. False: it is for the general client.
  // Gives up with an exception when `is_unwanted()`. Says how often a second connection was asked for the same.
  bool carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of, int *hedged);

 private:
  struct Url {
    std::string server, host, port, path;
  };
  class Exchange;
  static bool parse(const std::string &name, Url *url);
  bool begin(Exchange &exchange, bool may_be_kept);
  void race(Exchange &first, Exchange &second);
  int take(const Url &url);  // a kept connection; -1: there is none
  void keep(const Url &url, int fd);

  const RemoteLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::vector<int>> kept_;  // connections by server
};
