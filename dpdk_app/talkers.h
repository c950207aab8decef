/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is denied most, in bounded memory: one sketch per worker, written by
 * that worker only, merged when all have stopped.
 */
#ifndef TALKERS_H
#define TALKERS_H

#include <stddef.h>
#include <stdint.h>

#include "pkt_key.h"

/* Keys that one sketch follows; up to so many the counts are exact. */
#define TALKERS_TRACKED 4096u

struct talkers;

/*
 * A key and how often it was denied: at most count times and at least
 * count - error times.
 */
struct talker {
	uint8_t key[PKT_KEY_SIZE];
	uint64_t count;
	uint64_t error;
};

/*
 * Make an empty sketch in the memory of a NUMA node. number makes its name
 * unique. => NULL: no memory. => EAL is initialised.
 */
struct talkers *
talkers_create(unsigned int number, int socket);

/* NULL is ignored. */
void
talkers_destroy(struct talkers *talkers);

/* Count one denial. => One thread at a time. */
void
talkers_add(struct talkers *talkers, const uint8_t key[PKT_KEY_SIZE]);

/*
 * The most denied keys of all sketches together, the most denied first, equal
 * ones in the order of their bytes. NULL among the sketches is ignored.
 *
 * => 0 and *found talkers (at most max) in top[], or -ENOMEM.
 */
int
talkers_top(struct talkers *const *all, size_t n, struct talker *top,
    size_t max, size_t *found);

#endif
