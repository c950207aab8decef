/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for tables, from the same pages for everybody.
 *
 * At a million keys the page size decides as much as the table does: a table
 * in 4 kB pages pays for a page walk with nearly every decision. weir asks for
 * explicit huge pages and then for transparent ones. This does the same for
 * the floor and for the peers, so that rows compare tables and not pages.
 */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include <stddef.h>
#include <stdint.h>

#define PAGES_HUGE_BYTES (2u << 20)

/*
 * Zeroed memory, aligned to 2 MB: explicit huge pages if enough are free, else
 * what madvise(MADV_HUGEPAGE) yields. *bytes is rounded up to what was taken.
 * => NULL if there is none.
 */
void *
pages_alloc(size_t *bytes);
void
pages_free(void *memory, size_t bytes);

/* How many bytes of this process are in pages of 2 MB or more, of any kind. */
uint64_t
pages_huge_now(void);

#endif
