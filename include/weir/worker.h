/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers: one handle per deciding thread.
 *
 * A worker belongs to the thread that attached it: only that thread may pass
 * it to weir_check*(), quiesce it or detach it. The exception is reading
 * counters, which any thread may do. One thread may hold workers of several
 * engines, or several of one.
 *
 * Underneath is liburcu's QSBR flavour: a worker that is online promises to
 * quiesce regularly, and in return reads shared structures for free.
 */
#ifndef WEIR_WORKER_H
#define WEIR_WORKER_H

#include <weir/base.h>

WEIR_BEGIN_DECLS

/*
 * Attach the calling thread. The worker is online, and so are all others that
 * the thread holds.
 *
 * => 0 and *worker, or -ENOMEM.
 * => A thread must detach its workers before it ends. One that uses
 *    liburcu-qsbr itself must be registered and online when it attaches its
 *    first worker, and stay registered until it has detached the last.
 * => After fork() the child may use no engine of its parent: it lacks the
 *    threads that a grace period would wait for. It may exec or exit.
 */
WEIR_API int
weir_worker_attach(struct weir_engine *engine, struct weir_worker **worker);

/*
 * Detach. What the worker counted stays in weir_engine_counters().
 *
 * => Attaching thread only. NULL is ignored.
 */
WEIR_API void
weir_worker_detach(struct weir_worker *worker);

/*
 * Say that this worker holds nothing: call it once per turn of the poll loop,
 * between packet bursts. Costs a store and two or three loads. A worker that stops
 * quiescing delays control calls that wait for a grace period, never the
 * decisions of others.
 */
WEIR_API void
weir_worker_quiesce(struct weir_worker *worker);

/*
 * Before blocking (sleeping, waiting for input) go offline: an offline worker
 * may not decide, and nobody waits for it. Come back with online. The state
 * is one per thread: it covers all workers that the thread holds.
 */
WEIR_API void
weir_worker_offline(struct weir_worker *worker);
WEIR_API void
weir_worker_online(struct weir_worker *worker);

/*
 * What became of requests. Every request for an existing limit is in exactly
 * one class, so they add up to all packets, and all bytes, asked for:
 *
 *	passed, denied		decided by the key's own bucket, or by a limit
 *				that is unlimited or closed
 *	yellow			passed by a colour meter with WEIR_YELLOW
 *	delayed			let into a queue: WEIR_DELAY
 *	full_passed, full_denied	the table had no room for the key; decided
 *				by the engine's full policy
 *
 * Packets and bytes are what the requests said. 64 bits, and never reset while
 * the limit exists.
 */
struct weir_counters {
	uint64_t passed_packets;
	uint64_t passed_bytes;
	uint64_t denied_packets;
	uint64_t denied_bytes;
	uint64_t full_passed_packets;
	uint64_t full_passed_bytes;
	uint64_t full_denied_packets;
	uint64_t full_denied_bytes;
	uint64_t yellow_packets;
	uint64_t yellow_bytes;
	uint64_t delayed_packets;
	uint64_t delayed_bytes;
};

/*
 * Read the counters of one limit: of one worker, or of all workers that are
 * or ever were attached. While workers run, a reading is a moment's view of
 * each number; after they stopped it is exact.
 *
 * => 0, or -ENOENT: no such limit.
 * => Any thread (for a worker: while it is attached).
 */
WEIR_API int
weir_worker_counters(struct weir_worker *worker, uint32_t limit,
    struct weir_counters *counters);
WEIR_API int
weir_engine_counters(struct weir_engine *engine, uint32_t limit,
    struct weir_counters *counters);

/*
 * How many requests named a limit that does not exist. They were denied and
 * are in no limit's counters. => Any thread.
 */
WEIR_API uint64_t
weir_engine_unknown_limits(struct weir_engine *engine);

WEIR_END_DECLS

#endif
