// SPDX-License-Identifier: Apache-2.0
// Stands in for LAME, of which libsndfile asks a list of genres when it reads MP3 files: there are none.
#include "lame_absent.h"

void id3tag_genre_list(void (*handler)(int number, const char *name, void *cookie), void *cookie) {
  (void)handler, (void)cookie;
}
