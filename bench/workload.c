/* SPDX-License-Identifier: BSD-3-Clause */
#include "workload.h"

#include <string.h>

#include "pages.h"

#define WORKLOADS_MAX 8u

/*
 * Long enough that neither a cache nor a branch predictor learns the order,
 * and at 8 M keys that most of them occur; short enough to make quickly.
 */
#define LENGTH_MIN (1u << 16)
#define LENGTH_MAX (1u << 23)

static struct workload workloads[WORKLOADS_MAX];

/* A bijection on 64-bit words that looks random (finaliser of SplitMix64). */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

struct bench_key
bench_key_make(uint64_t i)
{
	static const uint8_t prefix[4] = { 0x20, 0x01, 0x0d, 0xb8 };
	/* Distinct for distinct i, as mix() is a bijection. */
	uint64_t interface = mix(i + 0x9e3779b97f4a7c15u);
	uint32_t site = (uint32_t)mix(interface);
	struct bench_key key;

	memcpy(key.bytes, prefix, sizeof(prefix));
	memcpy(key.bytes + 4, &site, sizeof(site));
	memcpy(key.bytes + 8, &interface, sizeof(interface));
	return key;
}

static uint64_t
order_length(uint64_t n_keys)
{
	uint64_t length = LENGTH_MIN;

	while (length < n_keys * 2 && length < LENGTH_MAX)
		length *= 2;
	return length;
}

static bool
workload_make(struct workload *w, uint64_t n_keys)
{
	uint64_t length = order_length(n_keys);

	w->memory_bytes = (length + BENCH_BURST) * sizeof(*w->order);
	w->order = pages_alloc(&w->memory_bytes);
	if (!w->order)
		return false;
	for (uint64_t i = 0; i < length; i++) {
		/* Uniform enough: the bias is n_keys / 2^64. */
		unsigned __int128 wide = mix(n_keys + i * 0x9e3779b97f4a7c15u);

		w->order[i] = bench_key_make((uint64_t)((wide * n_keys) >> 64));
	}
	memcpy(w->order + length, w->order, BENCH_BURST * sizeof(*w->order));
	w->n_keys = n_keys;
	w->length = length;
	return true;
}

const struct workload *
workload_get(uint64_t n_keys)
{
	for (unsigned i = 0; i < WORKLOADS_MAX; i++) {
		struct workload *w = &workloads[i];

		if (w->n_keys == n_keys)
			return w;
		if (w->n_keys == 0)
			return workload_make(w, n_keys) ? w : NULL;
	}
	return NULL;
}

void
workload_free_all(void)
{
	for (unsigned i = 0; i < WORKLOADS_MAX; i++) {
		if (workloads[i].n_keys == 0)
			continue;
		pages_free(workloads[i].order, workloads[i].memory_bytes);
		memset(&workloads[i], 0, sizeof(workloads[i]));
	}
}

uint64_t
workload_sample(uint64_t n_keys, unsigned i)
{
	return (uint64_t)i * (n_keys - 1) / (WORKLOAD_SAMPLES - 1);
}
