/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deciding in a poll loop: several threads, each with a worker and a receive
 * queue of its own, hold every packet to two limits. Each source may send so
 * much, and all sources together may send so much, whatever the thread.
 *
 * A queue here is a function that makes packets up, and time is made from the
 * turn of the loop; where it says so, a real loop reads a queue and a clock.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <weir/weir.h>

#define WORKERS 2
#define TURNS 1000u
#define BURST 32u
#define SOURCES 16u /* of each queue */
#define TURN_NS 1000000u

struct packet {
	uint32_t source;
	uint32_t length;
};

struct shared {
	struct weir_engine *engine;
	uint32_t per_source;
	uint32_t together;
};

struct thread {
	pthread_t id;
	const struct shared *shared;
	uint32_t queue;
	int error;
	uint64_t sent; /* what is left after both limits */
	struct weir_counters per_source;
	struct weir_counters together;
};

/* A queue as receive side scaling fills it: its sources are its own. */
static size_t
receive(uint32_t queue, struct packet packets[BURST])
{
	for (uint32_t i = 0; i < BURST; i++) {
		packets[i].source = queue * SOURCES + i % SOURCES;
		packets[i].length = 100;
	}
	return BURST;
}

/* Keep those packets that the limit passes, in order. */
static size_t
filter(struct weir_worker *worker, uint32_t limit, bool by_source,
    struct packet *packets, size_t n, uint64_t now_ns)
{
	static const uint32_t everybody = UINT32_MAX;
	struct weir_request requests[BURST];
	uint8_t verdicts[BURST];
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		requests[i] = (struct weir_request){
			.key = by_source ? &packets[i].source : &everybody,
			.packets = 1,
			.bytes = packets[i].length,
			.limit = limit,
		};
	}
	weir_check_burst(worker, requests, n, now_ns, verdicts, NULL);
	for (size_t i = 0; i < n; i++) {
		if (verdicts[i] == WEIR_PASS)
			packets[kept++] = packets[i];
	}
	return kept;
}

static void *
poll_loop(void *argument)
{
	struct thread *thread = argument;
	const struct shared *shared = thread->shared;
	struct packet packets[BURST];
	struct weir_worker *worker;

	thread->error = weir_worker_attach(shared->engine, &worker);
	if (thread->error != 0)
		return NULL;
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		/* A real loop: weir_clock_now_ns(clock), once per burst. */
		uint64_t now_ns = (uint64_t)turn * TURN_NS;
		size_t n = receive(thread->queue, packets);

		n = filter(worker, shared->per_source, true, packets, n,
		    now_ns);
		n = filter(worker, shared->together, false, packets, n, now_ns);
		thread->sent += n;
		/* Once per turn, when nothing of the burst is in use. */
		weir_worker_quiesce(worker);
	}
	weir_worker_counters(worker, shared->per_source, &thread->per_source);
	weir_worker_counters(worker, shared->together, &thread->together);
	weir_worker_detach(worker);
	return NULL;
}

/* Run the loops to their end. => What was sent, or 0 if something failed. */
static uint64_t
run(struct thread *threads, const struct shared *shared)
{
	uint64_t sent = 0;
	uint32_t started = 0;
	bool failed = false;

	while (started < WORKERS) {
		struct thread *thread = &threads[started];

		*thread = (struct thread){ .shared = shared, .queue = started };
		if (pthread_create(&thread->id, NULL, poll_loop, thread) != 0)
			break;
		started++;
	}
	failed = started < WORKERS;
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(threads[i].id, NULL);
		failed = failed || threads[i].error != 0;
		sent += threads[i].sent;
	}
	return failed ? 0 : sent;
}

static void
print(const char *who, const struct weir_counters *c)
{
	printf("%-22s passed %6" PRIu64 " packets, %8" PRIu64 " bytes; "
	       "denied %6" PRIu64 " packets\n",
	    who, c->passed_packets, c->passed_bytes, c->denied_packets);
}

/*
 * Over 999 ms a source that always asks gets its capacity of 10 and then 1 per
 * ms: 1009 packets. That is more than all together may send: 20000, and next
 * to nothing afterwards. Both hold exactly, whoever of the threads was ahead.
 */
static int
judge(const struct shared *shared, const struct thread *threads, uint64_t sent)
{
	const uint64_t asked = (uint64_t)WORKERS * TURNS * BURST;
	const uint64_t entitled = (uint64_t)WORKERS * SOURCES * 1009;
	struct weir_counters source;
	struct weir_counters together;

	if (weir_engine_counters(shared->engine, shared->per_source, &source) ||
	    weir_engine_counters(shared->engine, shared->together, &together))
		return 1;
	for (int i = 0; i < WORKERS; i++)
		print("one worker, by source:", &threads[i].per_source);
	print("all, by source:", &source);
	print("all, together:", &together);
	return source.passed_packets != entitled ||
	    source.passed_packets + source.denied_packets != asked ||
	    together.passed_packets != 20000 || sent != 20000 ||
	    together.passed_packets + together.denied_packets != entitled;
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = sizeof(uint32_t),
	};
	struct weir_limit_params per_source = {
		.size = sizeof(per_source),
		.name = "per-source",
		.tokens = 1000,
		.period_ns = 1000000000,
		.capacity = 10,
	};
	struct weir_limit_params together = {
		.size = sizeof(together),
		.name = "together",
		.tokens = 1,
		.period_ns = 3600000000000,
		.capacity = 20000,
	};
	struct thread threads[WORKERS];
	struct shared shared;
	uint64_t sent;
	int failed = 1;

	if (weir_engine_create(&params, &shared.engine, NULL) != 0)
		return 1;
	if (weir_limit_add(shared.engine, &per_source, &shared.per_source,
		NULL) == 0 &&
	    weir_limit_add(shared.engine, &together, &shared.together, NULL) ==
		0) {
		sent = run(threads, &shared);
		failed = sent == 0 || judge(&shared, threads, sent);
	}
	return weir_engine_destroy(shared.engine) != 0 || failed;
}
