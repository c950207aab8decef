/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit that follows the day: the operator halves a rate while traffic flows,
 * and lifts it again. No key starts anew, none is given anything for the hour
 * that has passed, and the waits that are told are those of the new rate.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#define SECOND_NS UINT64_C(1000000000)

static struct weir_engine *engine;
static struct weir_worker *worker;
static uint32_t limit;

static int
set_rate(uint64_t packets_ps, uint64_t capacity, uint64_t now_ns)
{
	const struct weir_limit_params params = {
		.size = sizeof(params),
		.name = "web",
		.tokens = packets_ps,
		.period_ns = SECOND_NS,
		.capacity = capacity,
	};
	struct weir_error error;
	int result = weir_limit_set(engine, limit, &params, now_ns, &error);

	if (result != 0)
		printf("refused: %s: %s\n", error.field ? error.field : "?",
		    error.reason ? error.reason : "?");
	return result;
}

/* Ask for so many packets. => Whether that went as it should. */
static bool
ask(uint32_t source, uint64_t packets, uint64_t now_ns, uint64_t remaining,
    uint64_t retry_after_ns)
{
	const struct weir_request request = {
		.key = &source,
		.packets = packets,
		.limit = limit,
	};
	struct weir_decision d;

	weir_check(worker, &request, now_ns, &d);
	printf("%6.1f s: source %" PRIu32 " asks %3" PRIu64 ": %s, %" PRIu64
	       " left, wait %" PRIu64 " ms\n",
	    (double)now_ns / SECOND_NS, source, packets,
	    d.verdict == WEIR_PASS ? "pass" : "deny", d.remaining,
	    d.retry_after_ns / 1000000);
	return d.remaining == remaining && d.retry_after_ns == retry_after_ns;
}

static bool
day(void)
{
	uint64_t now_ns = SECOND_NS;
	bool fine = ask(1, 150, now_ns, 50, 0);

	if (set_rate(10, 100, now_ns) != 0)
		return false;
	/* Source 1 keeps its 50; source 2, never seen, is cut to 100. */
	fine = ask(1, 60, now_ns, 50, SECOND_NS) && fine;
	fine = ask(2, 0, now_ns, 100, 0) && fine;
	now_ns += 2 * SECOND_NS;
	fine = ask(1, 60, now_ns, 10, 0) && fine;
	/* An hour later it is full. More room then does not fill it. */
	now_ns += 3600 * SECOND_NS;
	if (set_rate(1000, 500, now_ns) != 0)
		return false;
	fine = ask(1, 0, now_ns, 100, 0) && fine;
	fine = ask(1, 200, now_ns, 100, SECOND_NS / 10) && fine;
	/* What cannot be represented changes nothing. */
	fine = set_rate(0, 500, now_ns) != 0 && fine;
	return ask(1, 500, now_ns + SECOND_NS, 0, 0) && fine;
}

int
main(void)
{
	const struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = sizeof(uint32_t),
	};
	const struct weir_limit_params web = {
		.size = sizeof(web),
		.name = "web",
		.tokens = 100,
		.period_ns = SECOND_NS,
		.capacity = 200,
	};
	bool fine;

	if (weir_engine_create(&params, &engine, NULL) != 0 ||
	    weir_limit_add(engine, &web, &limit, NULL) != 0 ||
	    weir_worker_attach(engine, &worker) != 0)
		return 1;
	fine = day();
	/* When the limit is gone, what still asks for it is denied. */
	fine = weir_limit_remove(engine, limit) == 0 && fine;
	fine = ask(1, 1, SECOND_NS, 0, 0) && fine;
	weir_worker_detach(worker);
	return weir_engine_destroy(engine) != 0 || !fine;
}
