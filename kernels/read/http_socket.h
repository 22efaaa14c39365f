// SPDX-License-Identifier: Apache-2.0
// A TCP connection, with TLS or without.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "read/tls.h"

class HttpSocket {
 public:
  HttpSocket() = default;
  explicit HttpSocket(int fd) : fd_(fd) {}
  HttpSocket(HttpSocket &&other) noexcept : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)) {}
  HttpSocket &operator=(HttpSocket &&other) noexcept {
    std::swap(fd_, other.fd_), std::swap(tls_, other.tls_);
    return *this;
  }
  ~HttpSocket() {
    tls_.reset();
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }  // -1 if there is none
  bool is_open() const { return fd_ >= 0; }
  TlsSession &begin_tls(const Tls &tls, const std::string &host) {
    return *(tls_ = std::make_unique<TlsSession>(tls, fd_, host));
  }
  ssize_t send(const char *data, size_t size) {
    return tls_ ? tls_->send(data, size) : ::send(fd_, data, size, MSG_NOSIGNAL);
  }
  // As recvmsg.
  ssize_t receive(iovec *parts, size_t n, int flags) {
    if (tls_) return tls_->receive(parts, n, flags);
    msghdr message{};
    message.msg_iov = parts, message.msg_iovlen = n;
    return recvmsg(fd_, &message, flags);
  }
  // Whether there are bytes to receive that `poll` does not tell of.
  bool has_buffered() const { return tls_ && tls_->has_buffered(); }

 private:
  int fd_ = -1;
  std::unique_ptr<TlsSession> tls_;
};
