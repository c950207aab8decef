/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More than yes or no to one request: look at a bucket without taking, take
 * what there is, give back what was not used, borrow.
 *
 * A mail gateway lets each sender have 10 messages per second.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#define SECOND 1000000000ull

static struct weir_request
messages(uint32_t limit, uint64_t n)
{
	return (struct weir_request){
		.key = "sender-1", .packets = n, .bytes = 0, .limit = limit,
	};
}

/* How many more messages may this sender have? A cost of zero just looks. */
static uint64_t
level(struct weir_worker *worker, uint32_t limit, uint64_t now_ns)
{
	struct weir_request request = messages(limit, 0);
	struct weir_decision decision;

	weir_peek(worker, &request, now_ns, &decision);
	printf("%" PRIu64 " left, all there in %" PRIu64 " ms\n",
	    decision.remaining, decision.reset_after_ns / 1000000);
	return decision.remaining;
}

/* 25 at once: as many as there are, and the rest when they are due. */
static int
newsletter(struct weir_worker *worker, uint32_t limit)
{
	uint64_t left = 25, now_ns = 0;

	while (left > 0) {
		struct weir_request request = messages(limit, left);
		struct weir_decision decision;
		uint64_t sent = weir_take(worker, &request, now_ns, &decision);

		printf("%" PRIu64 " of %" PRIu64 " sent\n", sent, left);
		left -= sent;
		/* The rest may be more than the bucket ever holds; then come
		 * back when it is full. */
		now_ns += decision.retry_after_ns != WEIR_NEVER ?
		    decision.retry_after_ns : decision.reset_after_ns;
	}
	/* 10 at once, 10 a second later, 5 half a second after that */
	return now_ns != SECOND + SECOND / 2;
}

/*
 * A message to 15 at once. There is another limit for these, which lends 10:
 * the message need not wait for 15 tokens, but whoever comes then does.
 */
static int
large_message(struct weir_worker *worker, uint32_t lending)
{
	struct weir_request large = messages(lending, 15);
	struct weir_request one = messages(lending, 1);
	struct weir_decision decision;

	if (weir_check(worker, &large, 0, &decision) != WEIR_PASS)
		return 1;
	printf("%" PRIu64 " owed\n", decision.debt);
	if (weir_check(worker, &one, 0, &decision) != WEIR_DENY)
		return 1;
	/* 5 to be paid for, and one to be there, at 10 per second */
	return decision.retry_after_ns != 6 * SECOND / 10;
}

static int
talk(struct weir_worker *worker, uint32_t limit)
{
	struct weir_request one = messages(limit, 1);

	/* Looking takes nothing: it passes as often as one likes. */
	for (int i = 0; i < 20; i++)
		if (weir_peek(worker, &one, 0, NULL) != WEIR_PASS)
			return 1;
	if (level(worker, limit, 0) != 10)
		return 1;
	weir_check(worker, &one, 0, NULL);
	if (level(worker, limit, 0) != 9)
		return 1;
	/* That message could not be delivered: it shall not count. */
	weir_refund(worker, &one, 0);
	if (level(worker, limit, 0) != 10)
		return 1;
	return newsletter(worker, limit);
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = 8,
	};
	struct weir_limit_params mail = {
		.size = sizeof(mail),
		.name = "mail",
		.tokens = 10,
		.period_ns = SECOND,
		.capacity = 10,
	};
	struct weir_limit_params lends = {
		.size = sizeof(lends),
		.name = "mail to many",
		.tokens = 10,
		.period_ns = SECOND,
		.capacity = 10,
		.debt = 10,
	};
	struct weir_engine *engine;
	struct weir_worker *worker;
	uint32_t limit, lending;
	int failed = 1;

	if (weir_engine_create(&params, &engine, NULL) != 0)
		return 1;
	if (weir_limit_add(engine, &mail, &limit, NULL) == 0 &&
	    weir_limit_add(engine, &lends, &lending, NULL) == 0 &&
	    weir_worker_attach(engine, &worker) == 0) {
		failed = talk(worker, limit) || large_message(worker, lending);
		weir_worker_detach(worker);
	}
	weir_engine_destroy(engine);
	return failed;
}
