/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The default allocator. Large blocks are mapped: on explicit huge pages if
 * the host has some free, else aligned so that transparent ones can serve, for
 * a table of many lines at random is bound by address translation otherwise.
 *
 * Every page is touched here: memory that is short is short at creation and
 * not under the first flood, and no decision takes a page fault.
 */
#define _GNU_SOURCE

#include "memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64u
#define SMALL_PAGE 4096u
#define HUGE_PAGE ((size_t)2 << 20)

static size_t
round_up(size_t size, size_t step)
{
	return (size + step - 1) / step * step;
}

static void *
map(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* => False: there is not that much memory. */
static bool
populate(void *memory, size_t size)
{
	volatile unsigned char *byte = memory;

#ifdef MADV_POPULATE_WRITE
	if (madvise(memory, size, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL) /* that is: a kernel before 5.14 */
		return false;
#endif
	for (size_t i = 0; i < size; i += SMALL_PAGE)
		byte[i] = 0;
	return true;
}

/* Map one huge page more than needed and cut off what is not aligned. */
static void *
map_aligned(size_t size)
{
	unsigned char *p = map(size + HUGE_PAGE, 0), *start;

	if (!p)
		return NULL;
	start = p + (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (start != p)
		munmap(p, (size_t)(start - p));
	munmap(start + size, (size_t)(p + HUGE_PAGE - start));
	madvise(start, size, MADV_HUGEPAGE); /* a wish; may be refused */
	return start;
}

static void *
populated(void *p, size_t size)
{
	if (p && !populate(p, size)) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

static void *
map_large(size_t size)
{
	void *p;

	if (size > SIZE_MAX - 2 * HUGE_PAGE)
		return NULL;
	size = round_up(size, HUGE_PAGE);
	p = populated(map(size, MAP_HUGETLB), size);
	return p ? p : populated(map_aligned(size), size);
}

static void *
default_alloc(size_t size, size_t align, void *context)
{
	void *p;

	(void)context;
	if (size >= HUGE_PAGE)
		return map_large(size);
	p = aligned_alloc(align, round_up(size, align));
	if (p)
		memset(p, 0, size);
	return p;
}

static void
default_free(void *memory, size_t size, void *context)
{
	(void)context;
	if (size >= HUGE_PAGE)
		munmap(memory, round_up(size, HUGE_PAGE));
	else
		free(memory);
}

void
memory_init(struct memory *m,
    void *(*alloc_hook)(size_t size, size_t align, void *context),
    void (*free_hook)(void *memory, size_t size, void *context), void *context)
{
	m->alloc = alloc_hook ? alloc_hook : default_alloc;
	m->free = free_hook ? free_hook : default_free;
	m->context = context;
	atomic_init(&m->bytes, 0);
}

void *
memory_take(struct memory *m, size_t size)
{
	void *p = m->alloc(size, LINE, m->context);

	if (p) /* relaxed: a statistic */
		atomic_fetch_add_explicit(&m->bytes, size,
		    memory_order_relaxed);
	return p;
}

void
memory_give(struct memory *m, void *memory, size_t size)
{
	if (!memory)
		return;
	m->free(memory, size, m->context);
	atomic_fetch_sub_explicit(&m->bytes, size, memory_order_relaxed);
}
