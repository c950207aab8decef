/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a packet burst: receive, read keys, ask, act, quiesce. Nothing
 * here locks, allocates or logs; nothing but the engine is shared with other
 * cores.
 */
#include "worker.h"

#include <stdatomic.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include "ports.h"

/* relaxed everywhere, no partner: it carries nothing, and late is soon
 * enough. Being lock-free, a signal handler may set it. */
static atomic_bool stop;

/* A packet burst on its way; packets[i] has requests[i] and verdicts[i]. */
struct burst {
	struct worker *worker;
	struct weir_worker *weir;
	uint64_t stamp_ns; /* the last one seen */
	uint16_t n;
	struct rte_mbuf *packets[WORKER_BURST];
	struct weir_request requests[WORKER_BURST];
	uint8_t verdicts[WORKER_BURST];
	uint8_t keys[WORKER_BURST][PKT_KEY_SIZE];
	uint64_t stamps_ns[WORKER_BURST];
};

void
workers_stop(void)
{
	atomic_store_explicit(&stop, true, memory_order_relaxed);
}

/*
 * The pcap driver up to DPDK 22.11 at least copies what is beyond 64 KiB of a
 * captured packet only modulo 64 KiB, yet gives its whole length. Believe what
 * is there: nobody downstream checks.
 */
static void
mend(struct rte_mbuf *m, struct tally *tally)
{
	uint32_t length = 0;

	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		length += s->data_len;
	if (length != m->pkt_len) {
		m->pkt_len = length;
		tally->cut++;
	}
}

static void
receive(struct burst *b, struct lane *lane)
{
	b->n = rte_eth_rx_burst(lane->rx_port, lane->rx_queue, b->packets,
	    WORKER_BURST);
	lane->received += b->n;
	for (uint16_t i = 0; i < b->n; i++) {
		struct rte_mbuf *m = b->packets[i];

		rte_prefetch0(rte_pktmbuf_mtod(m, void *));
		if (unlikely(m->pkt_len != m->data_len))
			mend(m, &b->worker->tally);
	}
}

static void
read_keys(struct burst *b)
{
	const struct meter *meter = b->worker->meter;

	for (uint16_t i = 0; i < b->n; i++) {
		struct weir_request *r = &b->requests[i];

		r->bytes = rte_pktmbuf_pkt_len(b->packets[i]);
		r->limit = meter->source;
		if (unlikely(!pkt_key_read(b->packets[i], &meter->rules,
		    b->keys[i]))) {
			r->limit = meter->unclassified;
			b->worker->tally.unclassified++;
		}
	}
}

static void
read_stamps(struct burst *b, const struct lane *lane)
{
	for (uint16_t i = 0; i < b->n; i++) {
		if (!stamp_read(b->packets[i], &b->worker->stamps,
		    lane->stamp_unit_ns, &b->stamp_ns))
			b->worker->tally.unstamped++;
		b->stamps_ns[i] = b->stamp_ns;
	}
}

/* Each packet at its own time: one question for every run of equal stamps. */
static void
ask_at_stamps(struct burst *b)
{
	uint16_t from, to;

	for (from = 0; from < b->n; from = to) {
		uint64_t now_ns = b->stamps_ns[from];

		for (to = from + 1; to < b->n; to++) {
			if (b->stamps_ns[to] != now_ns)
				break;
		}
		weir_check_burst(b->weir, b->requests + from,
		    (size_t)(to - from), now_ns, b->verdicts + from, NULL);
	}
}

static void
ask(struct burst *b, const struct lane *lane)
{
	const struct weir_clock *clock = b->worker->clock;

	if (clock != NULL) {
		weir_check_burst(b->weir, b->requests, b->n,
		    weir_clock_now_ns(clock), b->verdicts, NULL);
	} else {
		read_stamps(b, lane);
		ask_at_stamps(b);
	}
}

static bool
all_pass(const struct burst *b)
{
	unsigned int others = 0;

	for (uint16_t i = 0; i < b->n; i++)
		others |= b->verdicts[i] ^ WEIR_PASS;
	return others == 0;
}

/* Take what is denied out of the burst, in order, and free it. */
static void
drop(struct burst *b)
{
	struct worker *w = b->worker;
	struct rte_mbuf *denied[WORKER_BURST];
	uint16_t n_denied = 0, n_passed = 0;

	if (all_pass(b))
		return;
	for (uint16_t i = 0; i < b->n; i++) {
		if (b->verdicts[i] == WEIR_PASS) {
			b->packets[n_passed++] = b->packets[i];
			continue;
		}
		denied[n_denied++] = b->packets[i];
		if (b->requests[i].limit == w->meter->source)
			talkers_add(w->talkers, b->keys[i]);
	}
	b->n = n_passed;
	w->tally.dropped += n_denied;
	rte_pktmbuf_free_bulk(denied, n_denied);
}

/*
 * Some drivers stop at a packet that they cannot send, a long one for example:
 * go on behind it, once, so that one source does not cost others their packets.
 *
 * => How many are sent: those that stand first now.
 */
static uint16_t
transmit(struct burst *b, const struct lane *lane)
{
	uint16_t sent, more;
	struct rte_mbuf *refused;

	sent = rte_eth_tx_burst(lane->tx_port, lane->tx_queue, b->packets,
	    b->n);
	if (likely(sent + 1 >= b->n))
		return sent;
	refused = b->packets[sent];
	more = rte_eth_tx_burst(lane->tx_port, lane->tx_queue,
	    b->packets + sent + 1, (uint16_t)(b->n - sent - 1));
	sent = (uint16_t)(sent + more);
	b->packets[sent] = refused; /* in the place of one that is gone */
	return sent;
}

static void
forward(struct burst *b, const struct lane *lane)
{
	struct tally *tally = &b->worker->tally;
	uint16_t sent = 0;

	tally->passed += b->n;
	if (lane->tx_port != PORT_NONE) {
		sent = transmit(b, lane);
		tally->tx_failed += (uint64_t)(b->n - sent);
	}
	rte_pktmbuf_free_bulk(b->packets + sent, b->n - (unsigned int)sent);
}

/* => Whether there was something to do. */
static bool
serve(struct burst *b, struct lane *lane)
{
	struct tally *tally = &b->worker->tally;

	receive(b, lane);
	if (b->n == 0)
		return false;
	if (tally->last_cycle == 0)
		tally->first_cycle = rte_rdtsc();
	if (b->worker->meter != NULL) {
		read_keys(b);
		ask(b, lane);
		drop(b);
	}
	forward(b, lane);
	tally->last_cycle = rte_rdtsc();
	return true;
}

/* One turn over all lanes; those that have run dry leave the list. */
static void
turn(struct burst *b)
{
	struct worker *w = b->worker;
	bool busy = false;

	for (unsigned int i = 0; i < w->n_lanes; i++) {
		struct lane *lane = w->lanes[i];

		if (serve(b, lane))
			busy = true;
		else if (lane->runs_dry)
			w->lanes[i--] = w->lanes[--w->n_lanes];
	}
	if (!busy)
		rte_pause();
}

int
worker_run(void *argument)
{
	struct worker *w = argument;
	struct burst b = { .worker = w };

	for (unsigned int i = 0; i < WORKER_BURST; i++) {
		b.requests[i].key = b.keys[i];
		b.requests[i].packets = 1;
	}
	if (w->meter != NULL)
		w->error = weir_worker_attach(w->meter->engine, &b.weir);
	if (w->error != 0) {
		workers_stop();
		return w->error;
	}
	/* One turn at least, however short the run and busy the machine. */
	do {
		turn(&b);
		if (b.weir != NULL)
			weir_worker_quiesce(b.weir);
	} while (w->n_lanes > 0 &&
	    !atomic_load_explicit(&stop, memory_order_relaxed));
	weir_worker_detach(b.weir);
	return 0;
}
