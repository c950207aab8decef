/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "support.h"

int
test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

uint64_t
test_scale(uint64_t n)
{
	const char *percent = getenv("WEIR_TEST_SCALE");
	uint64_t scaled = n;

	if (percent != NULL)
		scaled = n * strtoull(percent, NULL, 10) / 100;
	return scaled > 0 ? scaled : 1;
}

uint64_t
test_seed(const char *test)
{
	const char *given = getenv("WEIR_SEED");
	uint64_t seed = 0;

	if (given != NULL)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		ck_abort_msg("no randomness from the kernel");
	printf("%s: WEIR_SEED=0x%016" PRIx64 "\n", test, seed);
	fflush(stdout);
	return seed;
}

void
rng_init(struct rng *rng, uint64_t seed)
{
	rng->state = seed;
}

/* A Weyl sequence, scrambled by two multiply-and-fold rounds. */
uint64_t
rng_next(struct rng *rng)
{
	unsigned __int128 product;
	uint64_t x;

	rng->state += 0xd1342543de82ef95ull;
	product = (unsigned __int128)rng->state * 0xa0761d6478bd642full;
	x = (uint64_t)(product >> 64) ^ (uint64_t)product;
	product = (unsigned __int128)x * 0xe7037ed1a0b428dbull;
	return (uint64_t)(product >> 64) ^ (uint64_t)product ^ rng->state;
}

uint64_t
rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

uint64_t
rng_magnitude(struct rng *rng, unsigned bits)
{
	unsigned width = (unsigned)rng_below(rng, bits + 1);

	return width == 0 ? 0 : rng_next(rng) >> (64 - width);
}

struct weir_engine_params
rig_params(uint64_t capacity, uint32_t key_size)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = capacity,
		.key_size = key_size,
	};

	return params;
}

void
rig_open(struct rig *rig, const struct weir_engine_params *params)
{
	struct weir_error error;
	int rc;

	rc = weir_engine_create(params, &rig->engine, &error);
	ck_assert_msg(rc == 0, "engine: %d, %s %s", rc, error.field,
	    error.reason);
	rc = weir_worker_attach(rig->engine, &rig->worker);
	ck_assert_msg(rc == 0, "attach: %d", rc);
}

void
rig_close(struct rig *rig)
{
	weir_worker_detach(rig->worker);
	ck_assert_int_eq(weir_engine_destroy(rig->engine), 0);
}

struct weir_limit_params
limit_params(const char *name, uint64_t tokens, uint64_t period_ns,
    uint64_t capacity, enum weir_unit unit)
{
	struct weir_limit_params params = {
		.size = sizeof(params),
		.name = name,
		.tokens = tokens,
		.period_ns = period_ns,
		.capacity = capacity,
		.unit = unit,
	};

	return params;
}

uint32_t
limit_add(struct weir_engine *engine, const char *name, uint64_t tokens,
    uint64_t period_ns, uint64_t capacity, enum weir_unit unit)
{
	struct weir_limit_params params = limit_params(name, tokens, period_ns,
	    capacity, unit);
	struct weir_error error = { NULL, NULL };
	uint32_t limit = UINT32_MAX;
	int rc;

	rc = weir_limit_add(engine, &params, &limit, &error);
	ck_assert_msg(rc == 0, "limit %s: %d, %s %s", name, rc,
	    error.field != NULL ? error.field : "-",
	    error.reason != NULL ? error.reason : "-");
	return limit;
}

struct weir_decision
ask(struct rig *rig, uint32_t limit, const void *key, uint64_t cost,
    uint64_t now_ns)
{
	struct weir_request r = request(limit, key, cost);
	struct weir_decision decision;
	enum weir_verdict verdict;

	memset(&decision, 0xa5, sizeof(decision));
	verdict = weir_check(rig->worker, &r, now_ns, &decision);
	expect(verdict == decision.verdict);
	return decision;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

bool
limit_is_exact(const struct weir_limit_params *params)
{
	uint64_t divisor = common_divisor(params->tokens, params->period_ns);
	unsigned __int128 whole = (unsigned __int128)params->capacity *
	    (params->period_ns / divisor);

	return whole <= 1ull << 55 && params->tokens / divisor <= 1ull << 23;
}

/*
 * Less than one unit, and a unit is less than 2^-54 of the time to full or
 * less than 2^-22 ns.
 */
uint64_t
limit_early_ns(const struct weir_limit_params *params)
{
	unsigned __int128 to_full = (unsigned __int128)params->capacity *
	    params->period_ns / params->tokens;

	return limit_is_exact(params) ? 0 : (uint64_t)(to_full >> 54) + 1;
}
