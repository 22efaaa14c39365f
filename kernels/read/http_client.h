// SPDX-License-Identifier: Apache-2.0
// Requests by plain HTTP/1.1 over connections that are kept: the quick way for http:// URLs. What is not quite simple
// (redirects, other encodings, refusals that last) it leaves to the general client, which knows all of that.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "read/http_exchange.h"

class HttpClient {
 public:
  explicit HttpClient(const RemoteLimits &limits) : limits_(limits) {}
  ~HttpClient();
  // Carries out the request: its state is then kDone, or kFailed if that may pass. False: it is for the general client.
  // Gives up with an exception when `is_unwanted()`. Says how often a second connection was asked for the same.
  bool carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of, int *hedged);
  // Sends a request that this thread will carry out in a moment, over a connection that was kept. Says whether there
  // was one.
  bool ask_ahead(const char *name, int64_t offset, int64_t length);
  void drop_asked();  // those of this thread that were not carried out

 private:
  struct Connection {
    int fd;       // -1: there is none
    size_t head;  // bytes of the last answer's head, which are most often those of the next one's
  };
  struct Asked {
    HttpClient *client;
    std::string name;
    int64_t offset, length;
    Connection connection;
    int64_t sent_ns;
  };
  static thread_local std::vector<Asked> asked_;  // ahead
  bool was_asked(const RemoteRequest &request, Asked *found);
  static bool parse(const std::string &name, HttpUrl *url);
  bool begin(HttpExchange &exchange, const RemoteRequest &request, bool may_be_kept);
  void race(HttpExchange &first, HttpExchange &second);
  Connection take(const HttpUrl &url);  // one that was kept
  void keep(const HttpUrl &url, Connection connection);

  const RemoteLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Connection>> kept_;  // by server
};
