// SPDX-License-Identifier: Apache-2.0
// How many objects a second a server sends over kept connections: http_load PORT OBJECTS BYTES THREADS SECONDS. Asks
// for /objects/0 to OBJECTS - 1 in turn and prints the rate.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int port, objects, bytes, done;
static double until;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *work(void *unused) {
  (void)unused;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  if (connect(s, (struct sockaddr *)&to, sizeof to)) exit(1);
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const int room = bytes + 65536;
  char *data = malloc((size_t)room), request[256];
  while (now() < until) {
    const int i = __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    const int n = snprintf(request, sizeof request, "GET /objects/%d HTTP/1.1\r\nHost: x\r\n\r\n", i % objects);
    if (write(s, request, (size_t)n) != n) exit(1);
    for (int got = 0, wanted = room; got < wanted;) {
      const ssize_t r = read(s, data + got, (size_t)(room - got));
      if (r <= 0) exit(1);
      got += (int)r;
      const char *end = wanted == room ? memmem(data, (size_t)got, "\r\n\r\n", 4) : NULL;
      if (end) wanted = (int)(end - data) + 4 + bytes;
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  port = atoi(argv[1]), objects = atoi(argv[2]), bytes = atoi(argv[3]);
  const int n = atoi(argv[4]);
  const double begin = now();
  until = begin + atof(argv[5]);
  pthread_t threads[256];
  for (int i = 0; i < n && i < 256; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < n && i < 256; i++) pthread_join(threads[i], NULL);
  printf("%.1f\n", done / (now() - begin));
  return 0;
}
