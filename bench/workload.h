/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys, and the order in which packets bring them.
 *
 * Key i is a fixed function of i, so a table is filled without reading a list
 * of keys. The order is a long array of keys, not of numbers: a case reads it
 * as an application reads its packets, at a price that is equal for all. Both
 * are the same in every run.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "harness.h"

/*
 * One limit for weir and its peers, chosen so that every key stays what it is
 * while the clock runs: each has spent FILL at setup, which takes a thousand
 * seconds to come back, so no bucket is full again and no entry is up for
 * reuse; and what is left lasts for two thousand million packets.
 */
#define WORKLOAD_RATE_BYTES_PS 1000000u
#define WORKLOAD_CAPACITY_BYTES (1ull << 40)
#define WORKLOAD_FILL_BYTES (1u << 30)
#define WORKLOAD_PACKET_BYTES 512u

/* A key looks like an IPv6 address: a fixed prefix, the rest random. */
struct bench_key
bench_key_make(uint64_t i);

struct workload {
	uint64_t n_keys;
	uint64_t length;         /* a multiple of BENCH_CHUNK */
	size_t memory_bytes;     /* of order, see pages_free() */
	struct bench_key *order; /* length + BENCH_BURST: the end goes on as
				    the beginning does */
};

/* => The order for n_keys keys, uniformly random, or NULL. Kept until... */
const struct workload *
workload_get(uint64_t n_keys);
/* ...here. */
void
workload_free_all(void);

/*
 * A few hundred key numbers spread over n_keys, for verify(): the i-th.
 */
#define WORKLOAD_SAMPLES 256u
uint64_t
workload_sample(uint64_t n_keys, unsigned i);

#endif
