/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deciding in a poll loop that works ahead: each packet burst is prepared as
 * soon as it is received, and decided a turn later. Meanwhile its cache lines
 * are on their way. Whether that pays depends on the table and on the machine:
 * docs/benchmarks.md has figures.
 *
 * Two sets of buffers take turns, as requests must stay until their packet
 * burst is decided. If nothing comes in, what waits is decided at once: only
 * traffic may delay traffic.
 *
 * The queue is made up: IPv4 headers of many quiet sources, one packet each,
 * and of one that floods, in packet bursts of all sizes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#define TURNS 20000u
#define TURN_NS 20000u /* of a loop that finds 32 packets or less */
#define HEADER_BYTES 20u
#define SOURCE_AT 12u
#define SOURCE_BYTES 4u
#define LOUD 0x0a000001u  /* 10.0.0.1 */
#define QUIET 0xc0000000u /* 192.0.0.0 and up */

struct packet {
	uint8_t header[HEADER_BYTES];
};

/* What has to stay together until it is decided. */
struct burst {
	struct packet packets[WEIR_BURST_MAX];
	struct weir_request requests[WEIR_BURST_MAX];
	size_t n;
};

struct queue {
	unsigned int turn;
	uint32_t next_quiet;
	uint64_t loud; /* packets so far */
};

struct result {
	uint64_t quiet_passed;
	uint64_t quiet_denied;
	uint64_t loud_passed;
	uint64_t loud_denied;
};

static void
make_packet(struct packet *packet, uint32_t source, uint16_t length)
{
	memset(packet->header, 0, HEADER_BYTES);
	packet->header[0] = 0x45;
	packet->header[2] = (uint8_t)(length >> 8);
	packet->header[3] = (uint8_t)length;
	for (unsigned int i = 0; i < SOURCE_BYTES; i++)
		packet->header[SOURCE_AT + i] =
		    (uint8_t)(source >> (24 - 8 * i));
}

static bool
is_loud(const struct packet *packet)
{
	return packet->header[SOURCE_AT] == LOUD >> 24;
}

/* A real loop: rte_eth_rx_burst() or the like. Every tenth turn finds none. */
static size_t
receive(struct queue *queue, struct packet *packets)
{
	unsigned int turn = queue->turn++;
	size_t n = turn % 10 == 9 ? 0 : 1 + turn * 7 % WEIR_BURST_MAX;

	for (size_t i = 0; i < n; i++) {
		if (i % 2 == 0) {
			make_packet(&packets[i], LOUD, 1500);
			queue->loud++;
		} else {
			make_packet(&packets[i], QUIET + queue->next_quiet++,
			    64);
		}
	}
	return n;
}

/* First half. The key is read where it lies in the packet. */
static int
prepare(struct weir_worker *worker, uint32_t limit, struct burst *burst)
{
	for (size_t i = 0; i < burst->n; i++) {
		const uint8_t *header = burst->packets[i].header;

		burst->requests[i] = (struct weir_request){
			.key = header + SOURCE_AT,
			.packets = 1,
			.bytes = (uint64_t)header[2] << 8 | header[3],
			.limit = limit,
		};
	}
	return weir_prepare(worker, burst->requests, burst->n);
}

/* Second half, of the one that waits longest. => Whether it was this one. */
static bool
decide(struct weir_worker *worker, const struct burst *burst, uint64_t now_ns,
    struct result *result)
{
	uint8_t verdicts[WEIR_BURST_MAX];

	if (weir_decide(worker, now_ns, verdicts, NULL) != burst->n)
		return false;
	/* A real loop: send or drop. */
	for (size_t i = 0; i < burst->n; i++) {
		bool loud = is_loud(&burst->packets[i]);

		if (verdicts[i] == WEIR_PASS)
			++*(loud ? &result->loud_passed :
				   &result->quiet_passed);
		else
			++*(loud ? &result->loud_denied :
				   &result->quiet_denied);
	}
	return true;
}

/* One turn more than there is traffic, for the last that waits. */
static int
poll_loop(struct weir_worker *worker, uint32_t limit, struct queue *queue,
    struct result *result)
{
	struct burst bursts[2];
	struct burst *waiting = NULL;

	for (unsigned int turn = 0; turn <= TURNS; turn++) {
		struct burst *next = &bursts[turn % 2];
		/* A real loop: weir_clock_now_ns(clock). */
		uint64_t now_ns = (uint64_t)turn * TURN_NS;

		next->n = turn < TURNS ? receive(queue, next->packets) : 0;
		if (next->n > 0 && prepare(worker, limit, next) != 0)
			return 1;
		if (waiting != NULL &&
		    !decide(worker, waiting, now_ns, result))
			return 1;
		waiting = next->n > 0 ? next : NULL;
		/* What waits holds nothing that this would release. */
		weir_worker_quiesce(worker);
	}
	return 0;
}

/*
 * Every quiet source passes. The loud one asks for more than it may have all
 * the time, so it gets its 200 and then 1000/s, to the packet: of the 400 ms
 * from its first decision, in turn 1, to its last, in turn 19999.
 */
static int
judge(const struct queue *queue, const struct result *result)
{
	uint64_t asked_ns = (uint64_t)(TURNS - 2) * TURN_NS;
	uint64_t entitled = 200 + asked_ns / 1000000;

	printf("quiet sources: %" PRIu64 " passed, %" PRIu64 " denied\n",
	    result->quiet_passed, result->quiet_denied);
	printf("one loud one:  %" PRIu64 " passed, %" PRIu64 " denied\n",
	    result->loud_passed, result->loud_denied);
	return result->quiet_passed != queue->next_quiet ||
	    result->quiet_denied != 0 || result->loud_passed != entitled ||
	    result->loud_passed + result->loud_denied != queue->loud;
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 100000,
		.key_size = SOURCE_BYTES,
	};
	struct weir_limit_params per_source = {
		.size = sizeof(per_source),
		.name = "per-source",
		.tokens = 1000,
		.period_ns = 1000000000,
		.capacity = 200,
	};
	struct queue queue = { .turn = 0 };
	struct result result = { .quiet_passed = 0 };
	struct weir_engine *engine;
	struct weir_worker *worker;
	uint32_t limit;
	int failed = 1;

	if (weir_engine_create(&params, &engine, NULL) != 0)
		return 1;
	if (weir_limit_add(engine, &per_source, &limit, NULL) == 0 &&
	    weir_worker_attach(engine, &worker) == 0) {
		failed = poll_loop(worker, limit, &queue, &result);
		weir_worker_detach(worker);
	}
	return weir_engine_destroy(engine) != 0 || failed ||
	    judge(&queue, &result);
}
