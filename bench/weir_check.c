/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir: one decision at a time, and a packet burst at a time.
 *
 * Timed is what an application pays: filling the requests in, deciding,
 * reading the verdicts, reading the clock once per packet burst and saying at
 * the end of it that nothing is held. The engine is as it comes, with its own
 * allocator and a random seed.
 */
#include <stdlib.h>

#include <weir/weir.h>

#include "cases.h"
#include "workload.h"

struct weir_state {
	struct weir_engine *engine;
	struct weir_worker *worker;
	struct weir_clock *clock;
	uint64_t n_keys;
	uint32_t limit;
	struct weir_counters filled; /* after setup */
};

static int
engine_make(uint64_t n_keys, struct weir_engine **engine)
{
	const struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = n_keys,
		.key_size = sizeof(struct bench_key),
	};

	return weir_engine_create(&params, engine, NULL);
}

bool
bench_weir_shape(uint64_t n_keys, uint64_t *slots, uint32_t *entry_bytes)
{
	struct weir_engine *engine;
	struct weir_engine_info info;

	if (engine_make(n_keys, &engine) != 0)
		return false;
	weir_engine_describe(engine, &info);
	*slots = info.slots;
	*entry_bytes = info.entry_bytes;
	weir_engine_destroy(engine);
	return true;
}

static int
limit_make(struct weir_state *s)
{
	const struct weir_limit_params params = {
		.size = sizeof(params),
		.name = "bench",
		.tokens = WORKLOAD_RATE_BYTES_PS,
		.period_ns = 1000000000u,
		.capacity = WORKLOAD_CAPACITY_BYTES,
		.unit = WEIR_UNIT_BYTES,
	};

	return weir_limit_add(s->engine, &params, &s->limit, NULL);
}

static inline struct weir_request
request_make(const struct weir_state *s, const struct bench_key *key,
    uint64_t bytes)
{
	return (struct weir_request){
		.key = key,
		.packets = 1,
		.bytes = bytes,
		.limit = s->limit,
	};
}

/* Enter every key, and let it spend so much that its entry stays. */
static bool
table_fill(struct weir_state *s)
{
	struct bench_key keys[BENCH_BURST];
	struct weir_request requests[BENCH_BURST];
	uint8_t verdicts[BENCH_BURST];

	for (uint64_t i = 0; i < s->n_keys;) {
		size_t n = 0;

		for (; n < BENCH_BURST && i < s->n_keys; n++, i++) {
			keys[n] = bench_key_make(i);
			requests[n] =
			    request_make(s, &keys[n], WORKLOAD_FILL_BYTES);
		}
		weir_check_burst(s->worker, requests, n,
		    weir_clock_now_ns(s->clock), verdicts, NULL);
		for (size_t j = 0; j < n; j++) {
			if (verdicts[j] != WEIR_PASS)
				return false;
		}
		weir_worker_quiesce(s->worker);
	}
	return true;
}

static void
weir_teardown(void *state)
{
	struct weir_state *s = state;

	weir_worker_detach(s->worker);
	weir_engine_destroy(s->engine);
	weir_clock_close(s->clock);
	free(s);
}

static const char *
weir_setup(uint64_t n_keys, void **state, struct bench_table *table)
{
	struct weir_state *s = calloc(1, sizeof(*s));
	struct weir_engine_info info;
	const char *error = NULL;

	if (!s)
		return "no memory";
	s->n_keys = n_keys;
	if (weir_clock_open(WEIR_CLOCK_AUTO, &s->clock) != 0)
		error = "no clock";
	else if (engine_make(n_keys, &s->engine) != 0)
		error = "the engine cannot be made";
	else if (limit_make(s) != 0)
		error = "the limit was refused";
	else if (weir_worker_attach(s->engine, &s->worker) != 0)
		error = "no worker";
	else if (!table_fill(s))
		error = "a key found no room";
	else if (weir_worker_counters(s->worker, s->limit, &s->filled) != 0)
		error = "no counters";
	if (error) {
		weir_teardown(s);
		return error;
	}
	weir_engine_describe(s->engine, &info);
	table->bytes = info.memory_bytes;
	table->slots = info.slots;
	*state = s;
	return NULL;
}

static inline void
requests_make(const struct weir_state *s, const struct bench_key *keys,
    struct weir_request *requests)
{
	for (size_t j = 0; j < BENCH_BURST; j++)
		requests[j] = request_make(s, &keys[j], WORKLOAD_PACKET_BYTES);
}

static inline uint64_t
passes(const uint8_t *verdicts)
{
	uint64_t passed = 0;

	for (size_t j = 0; j < BENCH_BURST; j++)
		passed += verdicts[j] == WEIR_PASS;
	return passed;
}

static uint64_t
burst_run(void *state, const struct bench_key *keys, size_t n)
{
	const struct weir_state *s = state;
	struct weir_request requests[BENCH_BURST];
	uint8_t verdicts[BENCH_BURST];
	uint64_t passed = 0;

	for (size_t i = 0; i < n; i += BENCH_BURST) {
		uint64_t now_ns = weir_clock_now_ns(s->clock);

		requests_make(s, &keys[i], requests);
		weir_check_burst(s->worker, requests, BENCH_BURST, now_ns,
		    verdicts, NULL);
		passed += passes(verdicts);
		weir_worker_quiesce(s->worker);
	}
	return passed;
}

/* Each packet burst is prepared before the one ahead of it is decided. */
static uint64_t
pipelined_run(void *state, const struct bench_key *keys, size_t n)
{
	const struct weir_state *s = state;
	struct weir_request requests[WEIR_PREPARED_MAX][BENCH_BURST];
	uint8_t verdicts[BENCH_BURST];
	uint64_t passed = 0;

	for (size_t i = 0; i <= n; i += BENCH_BURST) {
		struct weir_request *next =
		    requests[i / BENCH_BURST % WEIR_PREPARED_MAX];

		if (i < n) {
			requests_make(s, &keys[i], next);
			weir_prepare(s->worker, next, BENCH_BURST);
		}
		if (i > 0) {
			weir_decide(s->worker, weir_clock_now_ns(s->clock),
			    verdicts, NULL);
			passed += passes(verdicts);
			weir_worker_quiesce(s->worker);
		}
	}
	return passed;
}

static uint64_t
one_run(void *state, const struct bench_key *keys, size_t n)
{
	const struct weir_state *s = state;
	uint64_t passed = 0;

	for (size_t i = 0; i < n; i += BENCH_BURST) {
		uint64_t now_ns = weir_clock_now_ns(s->clock);

		for (size_t j = 0; j < BENCH_BURST; j++) {
			struct weir_request request = request_make(s,
			    &keys[i + j], WORKLOAD_PACKET_BYTES);

			passed += weir_check(s->worker, &request, now_ns,
				      NULL) == WEIR_PASS;
		}
		weir_worker_quiesce(s->worker);
	}
	return passed;
}

/*
 * Keys still show what they spent at setup: they were found, not made anew. A
 * request for nothing reads the level and leaves no trace.
 */
static bool
entries_remember(const struct weir_state *s)
{
	uint64_t now_ns = weir_clock_now_ns(s->clock);

	for (unsigned i = 0; i < WORKLOAD_SAMPLES; i++) {
		struct bench_key key =
		    bench_key_make(workload_sample(s->n_keys, i));
		struct weir_request nothing = {
			.key = &key,
			.limit = s->limit,
		};
		struct weir_decision decision;

		weir_check(s->worker, &nothing, now_ns, &decision);
		if (decision.remaining >
		    WORKLOAD_CAPACITY_BYTES - WORKLOAD_FILL_BYTES / 2)
			return false;
	}
	return true;
}

static const char *
weir_verify(void *state, uint64_t decisions)
{
	const struct weir_state *s = state;
	struct weir_counters c;

	if (weir_worker_counters(s->worker, s->limit, &c) != 0)
		return "no counters";
	if (c.passed_packets - s->filled.passed_packets != decisions ||
	    c.passed_bytes - s->filled.passed_bytes !=
		decisions * WORKLOAD_PACKET_BYTES)
		return "the worker's counters disagree";
	if (c.denied_packets || c.full_passed_packets || c.full_denied_packets)
		return "not every decision was made by a key's own bucket";
	if (!entries_remember(s))
		return "an entry was lost";
	return NULL;
}

const struct bench_case bench_check_one = {
	.name = "check/one",
	.setup = weir_setup,
	.run = one_run,
	.verify = weir_verify,
	.teardown = weir_teardown,
};

const struct bench_case bench_check_pipelined = {
	.name = "check/pipelined",
	.setup = weir_setup,
	.run = pipelined_run,
	.verify = weir_verify,
	.teardown = weir_teardown,
};

const struct bench_case bench_check_burst = {
	.name = "check/burst",
	.setup = weir_setup,
	.run = burst_run,
	.verify = weir_verify,
	.teardown = weir_teardown,
};
