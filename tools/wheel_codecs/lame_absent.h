// SPDX-License-Identifier: Apache-2.0
#pragma once

void id3tag_genre_list(void (*handler)(int number, const char *name, void *cookie), void *cookie);
