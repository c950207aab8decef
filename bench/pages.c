/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void *
map(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Map more than asked for and cut it to a piece that starts on 2 MB. */
static void *
map_aligned(size_t bytes)
{
	uint8_t *memory = map(bytes + PAGES_HUGE_BYTES, 0);
	size_t head, tail;

	if (!memory)
		return NULL;
	head = -(uintptr_t)memory & (PAGES_HUGE_BYTES - 1);
	tail = PAGES_HUGE_BYTES - head;
	if (head)
		munmap(memory, head);
	if (tail)
		munmap(memory + head + bytes, tail);
	return memory + head;
}

void *
pages_alloc(size_t *bytes)
{
	size_t rounded =
	    (*bytes + PAGES_HUGE_BYTES - 1) & ~(size_t)(PAGES_HUGE_BYTES - 1);
	void *memory = map(rounded, MAP_HUGETLB);

	if (!memory) {
		memory = map_aligned(rounded);
		if (!memory)
			return NULL;
		/* Where this fails, huge_bytes in the row shows it. */
		(void)madvise(memory, rounded, MADV_HUGEPAGE);
	}
	*bytes = rounded;
	return memory;
}

void
pages_free(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

uint64_t
pages_huge_now(void)
{
	static const char *const kinds[] = {
		"AnonHugePages:",
		"ShmemPmdMapped:",
		"FilePmdMapped:",
		"Shared_Hugetlb:",
		"Private_Hugetlb:",
	};
	FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
	char line[256], kind[64];
	uint64_t total_kb = 0;
	unsigned long long kb;

	if (!rollup)
		return 0;
	while (fgets(line, sizeof(line), rollup)) {
		if (sscanf(line, "%63s %llu kB", kind, &kb) != 2)
			continue;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(kind, kinds[i]) == 0)
				total_kb += kb;
		}
	}
	fclose(rollup);
	return total_kb * 1024;
}
