/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: what a decision costs if finding the entry costs nothing.
 *
 * A limiter that threads share must change one word of one line with a locked
 * instruction, and the lines are as far apart as the table is large. So: an
 * array of the size and the page kind of weir's table, a slot that follows
 * from the key without hashing, a prefetch and a locked add. No clock, no
 * comparison, no arithmetic. Nothing that decides with an atomic can be below.
 */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "pages.h"

struct floor {
	uint8_t *memory;
	size_t memory_bytes;
	uint64_t slots;
	uint32_t stride;
};

static inline uint64_t *
word_of(const struct floor *f, const struct bench_key *key)
{
	uint64_t random;

	memcpy(&random, key->bytes + 8, sizeof(random));
	/* slots is a power of two */
	return (uint64_t *)(void *)(f->memory +
	    (random & (f->slots - 1)) * f->stride);
}

static const char *
floor_setup(uint64_t n_keys, void **state, struct bench_table *table)
{
	struct floor *f = calloc(1, sizeof(*f));

	if (!f)
		return "no memory";
	if (!bench_weir_shape(n_keys, &f->slots, &f->stride)) {
		free(f);
		return "weir's engine cannot be made";
	}
	if (f->slots & (f->slots - 1)) {
		free(f);
		return "weir's slots are no power of two";
	}
	f->memory_bytes = f->slots * f->stride;
	f->memory = pages_alloc(&f->memory_bytes);
	if (!f->memory) {
		free(f);
		return "no memory for the array";
	}
	memset(f->memory, 0, f->memory_bytes); /* take the pages now */
	table->bytes = f->slots * f->stride;
	*state = f;
	return NULL;
}

/*
 * The prefetch runs one packet burst ahead of the add. Prefetching a packet
 * burst at once and then adding to it, or doing so while adding to the one
 * before, was slower by a quarter to a half at a million keys; a distance of
 * 48 to 128 keys was no faster.
 */
static uint64_t
floor_run(void *state, const struct bench_key *keys, size_t n)
{
	/* A copy: nothing but the array is read between two adds. */
	const struct floor f = *(const struct floor *)state;

	for (size_t i = 0; i < n; i++) {
		__builtin_prefetch(word_of(&f, &keys[i + BENCH_BURST]), 1);
		/* relaxed: one thread; it is the lock prefix that is timed */
		__atomic_fetch_add(word_of(&f, &keys[i]), 1, __ATOMIC_RELAXED);
	}
	return n;
}

/* Every add must be in the array. */
static const char *
floor_verify(void *state, uint64_t decisions)
{
	const struct floor *f = state;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < f->slots; i++)
		sum += *(uint64_t *)(void *)(f->memory + i * f->stride);
	return sum == decisions ? NULL : "adds got lost";
}

static void
floor_teardown(void *state)
{
	struct floor *f = state;

	pages_free(f->memory, f->memory_bytes);
	free(f);
}

const struct bench_case bench_floor_line = {
	.name = "floor/line",
	.setup = floor_setup,
	.run = floor_run,
	.verify = floor_verify,
	.teardown = floor_teardown,
};
