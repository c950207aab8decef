/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all tests share: the runner, how much to do, where chance comes from,
 * and an engine with one worker on it.
 *
 * Time is always injected: no test reads a clock or sleeps to be right.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <check.h>

#include <weir/weir.h>

#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MS 1000000ull
#define NSEC_PER_DAY (86400 * NSEC_PER_SEC)
#define NSEC_PER_YEAR (365 * NSEC_PER_DAY)

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

/* ck_assert() for inner loops: that one tells of itself through a pipe, each
 * time it is met. */
#define expect(condition) \
	do { \
		if (!(condition)) \
			ck_abort_msg("expected: %s", #condition); \
	} while (0)

/* Run a suite; the exit status of the program. */
int test_run(Suite *suite);

/* n, scaled by $WEIR_TEST_SCALE (percent, default 100); at least 1. */
uint64_t test_scale(uint64_t n);

/* $WEIR_SEED, or a new one each time; printed, so that a run can be redone. */
uint64_t test_seed(const char *test);

struct rng {
	uint64_t state;
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* 0 .. n - 1; n > 0. The bias of the remainder is of no concern here. */
uint64_t rng_below(struct rng *rng, uint64_t n);
/* A number of random magnitude: 0 .. 2^bits - 1, small ones as likely. */
uint64_t rng_magnitude(struct rng *rng, unsigned bits);

/* An engine with the calling thread attached. */
struct rig {
	struct weir_engine *engine;
	struct weir_worker *worker;
};

/* A params struct for a table that is larger than the test needs. */
struct weir_engine_params rig_params(uint64_t capacity, uint32_t key_size);
void rig_open(struct rig *rig, const struct weir_engine_params *params);
void rig_close(struct rig *rig);

struct weir_limit_params limit_params(const char *name, uint64_t tokens,
    uint64_t period_ns, uint64_t capacity, enum weir_unit unit);
/* Add a limit of which nobody doubts that it will be taken. */
uint32_t limit_add(struct weir_engine *engine, const char *name,
    uint64_t tokens, uint64_t period_ns, uint64_t capacity,
    enum weir_unit unit);

/* Ask for cost tokens, whatever the limit's unit: both fields say it. */
static inline struct weir_request
request(uint32_t limit, const void *key, uint64_t cost)
{
	struct weir_request r = {
		.key = key, .packets = cost, .bytes = cost, .limit = limit,
	};

	return r;
}

struct weir_decision ask(struct rig *rig, uint32_t limit, const void *key,
    uint64_t cost, uint64_t now_ns);

/*
 * Whether verdicts, remaining and retry of this limit must equal those of
 * exact rational arithmetic. Elsewhere a token may come early, by at most
 * limit_early_ns(), and never late.
 */
bool limit_is_exact(const struct weir_limit_params *params);
uint64_t limit_early_ns(const struct weir_limit_params *params);

#endif
