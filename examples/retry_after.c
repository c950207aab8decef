/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telling a client when to come back. A decision says how many tokens are left
 * and, on a denial, how long to wait: waiting that long suffices if nobody
 * else takes the tokens, and one nanosecond less does not.
 *
 * The limit here counts bytes: 10 Mbit/s, and up to 3000 bytes at once.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

static const char *
decider_name(enum weir_decider decider)
{
	switch (decider) {
	case WEIR_BY_BUCKET:
		return "its bucket";
	case WEIR_BY_FULL:
		return "the full table";
	case WEIR_BY_NO_LIMIT:
		return "a missing limit";
	case WEIR_BY_SETTING:
		return "a limit that is unlimited or closed";
	}
	return "?";
}

/* Ask, and say what came of it. */
static struct weir_decision
ask(struct weir_worker *worker, uint32_t limit, uint64_t bytes, uint64_t now_ns)
{
	struct weir_request request = {
		.key = "client-1",
		.packets = 1,
		.bytes = bytes,
		.limit = limit,
	};
	struct weir_decision decision;
	const char *verdict;

	weir_check(worker, &request, now_ns, &decision);
	verdict = decision.verdict == WEIR_PASS ? "passed" : "denied";
	printf("%8" PRIu64 " ns: %4" PRIu64 " bytes %s by %s, %4" PRIu64
	       " left",
	    now_ns, bytes, verdict, decider_name(decision.decided_by),
	    decision.remaining);
	if (decision.retry_after_ns == WEIR_NEVER)
		printf(", never");
	else if (decision.retry_after_ns != 0)
		printf(", again in %" PRIu64 " ns", decision.retry_after_ns);
	printf("\n");
	return decision;
}

/*
 * 1,250,000 bytes/s are 800 ns for a byte. After 3000 - 1500 - 1400 = 100
 * bytes are left, a request for 1500 lacks 1400: 1,120,000 ns.
 */
static int
talk(struct weir_worker *worker, uint32_t limit)
{
	struct weir_decision decision;
	uint64_t wait_ns;

	ask(worker, limit, 1500, 0);
	ask(worker, limit, 1400, 0);
	decision = ask(worker, limit, 1500, 0);
	wait_ns = decision.retry_after_ns;
	if (decision.verdict != WEIR_DENY || decision.remaining != 100 ||
	    wait_ns != 1120000)
		return 1;
	decision = ask(worker, limit, 1500, wait_ns - 1);
	if (decision.verdict != WEIR_DENY || decision.retry_after_ns != 1)
		return 1;
	decision = ask(worker, limit, 1500, wait_ns);
	if (decision.verdict != WEIR_PASS || decision.remaining != 0)
		return 1;
	/* More than the bucket ever holds: no wait helps. */
	decision = ask(worker, limit, 3001, wait_ns);
	if (decision.retry_after_ns != WEIR_NEVER)
		return 1;
	/* A number that is no limit: denied, and not by a bucket. */
	decision = ask(worker, limit + 1, 1, wait_ns);
	return decision.verdict != WEIR_DENY ||
	    decision.decided_by != WEIR_BY_NO_LIMIT;
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = 8,
	};
	struct weir_limit_params uplink = {
		.size = sizeof(uplink),
		.name = "uplink",
		.tokens = 1250000,
		.period_ns = 1000000000,
		.capacity = 3000,
		.unit = WEIR_UNIT_BYTES,
	};
	struct weir_engine *engine;
	struct weir_worker *worker;
	uint32_t limit;
	int failed = 1;

	if (weir_engine_create(&params, &engine, NULL) != 0)
		return 1;
	if (weir_limit_add(engine, &uplink, &limit, NULL) == 0 &&
	    weir_worker_attach(engine, &worker) == 0) {
		failed = talk(worker, limit) ||
		    weir_engine_unknown_limits(engine) != 1;
		weir_worker_detach(worker);
	}
	return weir_engine_destroy(engine) != 0 || failed;
}
