/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small harness for the benchmark's cases.
 *
 * A case is a table of some kind and a way to decide with it. The harness
 * gives every case the same keys in the same order, keeps one table alive at
 * a time, and asks the case afterwards whether what it did was real. It times
 * nothing itself: one C++ file puts Google Benchmark around bench_run().
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_BURST 32u   /* keys per packet burst, in all cases */
#define BENCH_CHUNK 2048u /* decisions per call of bench_run() */

struct bench_key {
	uint8_t bytes[16];
};

/* What a table is made of; printed with its row. */
struct bench_table {
	uint64_t bytes;      /* filled in by setup() */
	uint64_t slots;      /* filled in by setup(); 0: load has no meaning */
	uint64_t huge_bytes; /* of bytes, in 2 MB pages; the harness measures */
	uint64_t n_keys;
};

/*
 * setup()	makes the state, with n_keys keys in it that bench_key_make()
 *		names. On failure it keeps nothing and says why.
 * run()	decides on n keys, n a multiple of BENCH_BURST. The BENCH_BURST
 *		keys after the last may be looked at, to prefetch.
 *		=> how many decisions came out as they should.
 * verify()	looks for traces in the state of `decisions` decisions, all
 *		that run() made since setup(). => NULL, or what is wrong.
 *
 * Messages are static strings.
 */
struct bench_case {
	const char *name; /* rows are called name/keys:K */
	const char *(
	    *setup)(uint64_t n_keys, void **state, struct bench_table *table);
	uint64_t (*run)(void *state, const struct bench_key *keys, size_t n);
	const char *(*verify)(void *state, uint64_t decisions);
	void (*teardown)(void *state);
};

/* All cases, ended by NULL, and the numbers of keys, ended by 0. */
extern const struct bench_case *const bench_cases[];
extern const uint64_t bench_keys[];

/*
 * Pin the process to one processor: the last one it may run on.
 * => false if that failed.
 */
bool
bench_open(void);
/* Give everything back. */
void
bench_close(void);

/* Hand out what is known about the machine, as pairs of strings. */
typedef void (*bench_fact_fn)(const char *name, const char *value);
void
bench_facts(bench_fact_fn emit);

/*
 * Make the case with n_keys keys the current one, set up and warm. It stays
 * so until another is asked for, so that the repeated calls by which Google
 * Benchmark finds a number of iterations don't fill the table anew.
 * => NULL, or what went wrong.
 */
const char *
bench_begin(const struct bench_case *c, uint64_t n_keys,
    struct bench_table *table);

/* Make BENCH_CHUNK decisions with the current case: this is what is timed. */
void
bench_run(void);

/* Was it real? => NULL, or what is wrong. */
const char *
bench_end(void);

#ifdef __cplusplus
}
#endif

#endif
