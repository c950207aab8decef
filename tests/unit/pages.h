/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocator hooks that take whole pages and remember the largest block, so that
 * a test can make the table read-only.
 */
#ifndef TESTS_UNIT_PAGES_H
#define TESTS_UNIT_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* The largest block there is: the table. */
struct pages {
	void *memory;
	size_t size;
};

static inline void *
pages_alloc(size_t size, size_t align, void *context)
{
	struct pages *p = context;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)align; /* a page's will do */
	if (memory == MAP_FAILED)
		return NULL;
	if (size > p->size)
		*p = (struct pages){ memory, size };
	return memory;
}

static inline void
pages_free(void *memory, size_t size, void *context)
{
	(void)context;
	munmap(memory, size);
}

#endif
