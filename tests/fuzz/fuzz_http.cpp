// SPDX-License-Identifier: Apache-2.0
// Lets the client for http:// URLs loose on damaged answers, under AddressSanitizer. Built and run by fuzz_http.py.
//
//   fuzz_http NAME LIMIT SEED FILE...
//
// A thread answers requests on the loopback device with the bytes of the input and then closes the connection. Where a
// good answer comes before it, over the same connection, the client expects the head to be as long as that one's.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "core/memory.h"
#include "damage.h"
#include "read/http_client.h"

namespace {

class Server {
 public:
  Server() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, (sockaddr *)&address, size) || listen(listener_, 16)) abort();
    getsockname(listener_, (sockaddr *)&address, &size);
    port = ntohs(address.sin_port);
    std::thread([this] { run(); }).detach();
  }
  // `head`: of good answers.
  void answer_with(const File &f, size_t head) {
    std::lock_guard<std::mutex> lock(mutex_);
    answer_ = f, good_head_ = head;
  }
  int port;

 private:
  void run() {
    for (;;) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      while (serve(fd)) {
      }
      close(fd);
    }
  }
  // Whether the connection stays open.
  bool serve(int fd) {
    std::string request;
    char data[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = recv(fd, data, sizeof data, 0);
      if (n <= 0) return false;
      request.append(data, (size_t)n);
    }
    const bool is_good = request.find(" /good ") != std::string::npos;
    std::string answer;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      answer = is_good ? good_answer(request) : std::string(answer_.begin(), answer_.end());
    }
    for (size_t done = 0; done < answer.size();) {
      const ssize_t n = send(fd, answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return false;
      done += (size_t)n;
    }
    return is_good;
  }
  std::string good_answer(const std::string &request) const {
    const bool is_part = request.find("\r\nRange: ") != std::string::npos;
    std::string head =
        is_part ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-109/5000\r\n" : "HTTP/1.1 200 OK\r\n";
    head += "ETag: \"abc\"\r\nContent-Length: 10\r\nX: ";
    if (head.size() + 4 < good_head_) head.append(good_head_ - 4 - head.size(), 'x');
    return head + "\r\n\r\n" + (request.compare(0, 4, "HEAD") ? "0123456789" : "");
  }
  int listener_;
  std::mutex mutex_;
  File answer_;
  size_t good_head_ = 0;
};

struct Counts {
  int64_t inputs = 0, done = 0, failed = 0, left = 0;
};

void try_one(const File &file, Random &r, Server &server, Counts &counts) {
  counts.inputs++;
  const std::string text(file.begin(), file.end());
  const size_t end = text.find("\r\n\r\n"), head = end == std::string::npos ? 0 : end + 4;
  server.answer_with(file, r() % 4 ? head : below(r, 200));
  constexpr int64_t second = 1000000000;
  HttpClient client({second, 1, second, second, second, 0});
  char place[10];
  const int64_t kinds[] = {RemoteRequest::kToTheEnd, RemoteRequest::kOnlySize, 10, 10};
  const int kind = (int)below(r, 4);
  const std::string at = "http://127.0.0.1:" + std::to_string(server.port), unless = r() % 4 ? "" : "\"abc\"";
  RemoteRequest good(at + "/good", kind >= 2 ? 100 : 0, kinds[kind], kind == 3 ? place : nullptr, "");
  RemoteRequest bad(at + "/a%20b?c", kind >= 2 ? 100 : 0, kinds[kind], kind == 3 ? place : nullptr, unless);
  bad.expected = r() % 4 ? 10 : below(r, 6000);
  for (int i = r() % 2; i < 2; i++) {
    RemoteRequest &request = i ? bad : good;
    int hedged = 0;
    if (!client.carry_out(
            request, request.name, [](const void *) { return false; }, nullptr, &hedged)) {
      counts.left++;
      return;
    }
    if (request.state == RemoteRequest::kFailed) {
      if (request.error.empty()) abort();
      counts.failed++;
      return;
    }
    if (request.state != RemoteRequest::kDone) abort();
    counts.done++;
    if (request.is_unchanged) continue;
    const int64_t n = request.content.size;
    if (n < 0 || n > request.found.size || (kind >= 2 && n != 10)) abort();
    uint64_t sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (uint8_t)request.content.data[k];
    static volatile uint64_t kept;
    kept = sum;
    if (request.content.data && request.content.data != place) memory_give(request.content.data);
    request.content = {nullptr, 0};
  }
}

}  // namespace

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  Server &server = *new Server;  // its thread goes on until the end
  Counts counts;
  const int status = fuzz(argc, argv, [&](const File &file, Random &r) { try_one(file, r, server, counts); });
  printf("%lld inputs: %lld answers, %lld failures, %lld left to the general client\n", (long long)counts.inputs,
         (long long)counts.done, (long long)counts.failed, (long long)counts.left);
  return status;
}
