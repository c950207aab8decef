/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decisions. Nothing here locks, allocates, logs or calls the system. Not for
 * signal handlers that may interrupt a decision of the same worker.
 */
#ifndef WEIR_CHECK_H
#define WEIR_CHECK_H

#include <weir/base.h>

WEIR_BEGIN_DECLS

enum weir_verdict {
	WEIR_DENY = 0,   /* of a colour meter: red */
	WEIR_PASS = 1,   /* of a colour meter: green */
	WEIR_YELLOW = 2, /* passes, but not within the committed rate */
	WEIR_DELAY = 3,  /* passes, release_after_ns from now: a queue */
};

/* The colour that a request comes with, for meters that are aware of it. */
enum weir_colour {
	WEIR_COLOUR_GREEN = 0,
	WEIR_COLOUR_YELLOW,
	WEIR_COLOUR_RED,
};

/* Who spoke the verdict. */
enum weir_decider {
	WEIR_BY_BUCKET = 0, /* the key's own bucket */
	WEIR_BY_FULL,       /* no room for the key: the full policy */
	WEIR_BY_NO_LIMIT,   /* no such limit: always denied */
	WEIR_BY_SETTING,    /* the limit is unlimited or closed */
};

/*
 * May `key` spend this now, under `limit`? The limit's unit says whether the
 * cost is `packets` or `bytes`; the other one is only counted. A cost of zero
 * always passes and leaves no trace in the table; a cost above the capacity
 * (and the debt that the limit allows) never passes.
 */
struct weir_request {
	const void *key;  /* key_size bytes, any alignment; read, not kept */
	uint64_t packets; /* 1 for a packet; more for a merged one */
	uint64_t bytes;   /* its length */
	uint32_t limit;   /* from weir_limit_add() */
	uint32_t colour;  /* enum weir_colour; 0: green */
};

/* All there is to say about one decision. */
struct weir_decision {
	enum weir_verdict verdict;
	enum weir_decider decided_by;
	/* Whole tokens left after this decision. Under WEIR_FULL_ALLOW and
	 * _DENY, and without a limit, there is no bucket: 0. Unlimited:
	 * UINT64_MAX. Closed: 0. */
	uint64_t remaining;
	/* 0 on a pass. On a denial the smallest wait after which the same
	 * request passes if nobody else takes tokens: waiting that long
	 * suffices, 1 ns less does not. WEIR_NEVER if no wait helps. A wait
	 * past the end of the 64-bit clock is given as WEIR_NEVER - 1, and so
	 * is that of a clock that fell back further than an entry can tell
	 * (275 s at the fastest rates, 104 days at a token per ns, 73
	 * years at 1000 per second). Denied for
	 * want of room or of a limit: 0, there is nothing to wait for. */
	uint64_t retry_after_ns;
	/* The smallest wait after which the bucket is full if nobody takes
	 * tokens: at that time `remaining` is the capacity, 1 ns earlier it is
	 * not. 0 if it is full, or if there is no bucket. WEIR_NEVER - 1 as
	 * above. */
	uint64_t reset_after_ns;
	/* Tokens that the bucket is below zero, a part counting as one: owed by
	 * a limit with debt, or missing for a clock that is late. UINT64_MAX
	 * for one too late to tell. */
	uint64_t debt;
	/* The limit that decided: that of the request. */
	uint32_t limit;
	/* On WEIR_DELAY: how long to hold the request before it goes out. */
	uint64_t release_after_ns;
	/* What weir_cancel() needs to know of a delayed request. */
	uint64_t reservation;
};

/*
 * Decide one request at the time now_ns.
 *
 * now_ns is any steady count of nanoseconds that all workers share, such as
 * weir_clock_now_ns(). A time before one that was used already is answered
 * with what the bucket would have held then, less what was taken since: it
 * adds nothing, and nothing is lost to those who come later. (A key may have been
 * dropped from the table meanwhile, once full again by the later time. A clock
 * that runs back further than clock_skew_ns then meets it new, and full.)
 *
 * decision may be NULL; if it is not, it costs a division or two more.
 *
 * => The verdict. => The worker's own thread.
 */
WEIR_API enum weir_verdict
weir_check(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision);

/*
 * Decide n requests at one instant. verdicts[i] becomes the enum weir_verdict
 * of requests[i]; decisions, if not NULL, gets the details. The result is that
 * of n calls of weir_check() in order, at a fraction of the price: memory
 * latencies overlap, and equal (limit, key) pairs share one atomic update. Only
 * in a full table may the order of different keys show: which of several new
 * ones finds the last room, and who draws first on a shared bucket.
 *
 * => n may be anything, 0 included; 32 to 64 is a good size.
 * => The worker's own thread.
 */
WEIR_API void
weir_check_burst(struct weir_worker *worker,
    const struct weir_request *requests, size_t n, uint64_t now_ns,
    uint8_t *verdicts, struct weir_decision *decisions);

#define WEIR_BURST_MAX 32
#define WEIR_PREPARED_MAX 2

/*
 * weir_check_burst() in two calls, for callers who have something to do in
 * between, best of all the next packet burst:
 *
 *	weir_prepare(worker, next_requests, n);   its lines are on their way
 *	weir_decide(worker, now_ns, verdicts, NULL);   the one before
 *
 * weir_prepare() reads the keys and fetches what they will need; it decides
 * nothing and changes nothing. Up to WEIR_PREPARED_MAX packet bursts may be
 * waiting. The requests must stay as they are until they are decided; the keys
 * need not. A request whose limit does not exist yet stays without one.
 * Between the two calls everything is allowed, weir_check(), weir_check_burst()
 * and weir_worker_quiesce() included.
 *
 * => 0. -EINVAL: n is 0 or above WEIR_BURST_MAX. -EBUSY: WEIR_PREPARED_MAX are
 *    waiting already.
 * => The worker's own thread.
 */
WEIR_API int
weir_prepare(struct weir_worker *worker, const struct weir_request *requests,
    size_t n);

/*
 * Decide the packet burst that was prepared first of those that wait, as
 * weir_check_burst() would decide it at the time of this call.
 *
 * => How many requests it had, each with its verdict; 0: none was waiting.
 * => The worker's own thread.
 */
WEIR_API size_t
weir_decide(struct weir_worker *worker, uint64_t now_ns, uint8_t *verdicts,
    struct weir_decision *decisions);

/*
 * What weir_check() would say now. Nothing changes: no tokens are taken, no
 * entry is made, nothing is counted. A cost of zero asks for the level:
 * `remaining` and reset_after_ns. By the time the answer is used others may
 * have taken what it promised.
 *
 * => The verdict. => The worker's own thread.
 */
WEIR_API enum weir_verdict
weir_peek(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision);

/*
 * Take as many whole tokens of the request's cost as the bucket holds, at once:
 * all of them, some, or none. None are borrowed, whatever debt the limit allows. Of a batch of ten packets that may be the first
 * four.
 *
 * decision says WEIR_PASS if all of the cost was taken. Otherwise it says
 * WEIR_DENY, and retry_after_ns is about the rest, cost less what was taken: the
 * smallest wait after which weir_check() lets that pass if nobody else takes
 * tokens; WEIR_NEVER if it is more than the bucket ever holds. If the table has
 * no room, WEIR_FULL_ALLOW gives all, WEIR_FULL_DENY none, and WEIR_FULL_SHARED
 * what the shared bucket has.
 *
 * What was taken counts as passed, the rest as denied; of packets and bytes the
 * one that the limit does not charge is divided in the same proportion, what
 * passed being rounded down.
 *
 * => How many tokens were taken. 0 if there is no such limit, which counts as
 *    one request denied for that.
 * => The worker's own thread.
 */
WEIR_API uint64_t
weir_take(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision);

/*
 * Give back what was taken and not used: the request's cost, or as much of it
 * as the bucket has room for, as it never holds more than its capacity. From
 * then on in any interval of length t at most
 *
 *	capacity + debt + rate * t + what was given back in it
 *
 * passes for the key. That what is given back was ever taken is the caller's
 * word; whoever gives back more than he took raises the limit by as much.
 *
 * It is the key's own bucket that gets the tokens: one that is full, or that
 * was dropped from the table for having been full, gets none, and what the full
 * policy let pass comes back to nobody. Of a fixed window it is the newest in
 * which the key took tokens that gets them. A clock that is late fills the bucket
 * only as far as it sees it. Counters are left as they are: they say what was
 * decided, and that stays true.
 *
 * => How many tokens found room, without the fraction of one.
 * => The worker's own thread. Lock-free, as a decision is.
 */
WEIR_API uint64_t
weir_refund(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns);

WEIR_END_DECLS

#endif
