/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three parties have counted the same packets: the ports, the workers and the
 * engine. Where they disagree, or where a port says that it lost packets or
 * failed in sending them, the run is not accounted for.
 *
 * What a port does not take for sending is only counted: that it is slower
 * than the one before it is no fault in anybody's account.
 */
#include "results.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "ports.h"
#include "worker.h"

static void
add_workers(struct results *r, const struct worker *workers, size_t n)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < n; i++) {
		const struct tally *t = &workers[i].tally;

		r->passed += t->passed;
		r->dropped += t->dropped;
		r->unclassified += t->unclassified;
		r->tx_failed += t->tx_failed;
		r->rx_cut += t->cut;
		r->unstamped += t->unstamped;
		if (t->last_cycle == 0)
			continue;
		first = RTE_MIN(first, t->first_cycle);
		last = RTE_MAX(last, t->last_cycle);
	}
	if (last > first)
		r->seconds = (double)(last - first) / (double)rte_get_tsc_hz();
}

static void
add_ports(struct results *r, const struct ports *ports)
{
	struct port_losses losses;

	for (unsigned int i = 0; i < ports->n_lanes; i++)
		r->packets += ports->lanes[i].received;
	for (uint16_t i = 0; i < ports->n; i++) {
		ports_losses(ports, i, &losses);
		r->rx_missed += losses.missed;
		r->rx_errors += losses.errors;
		r->rx_no_buffer += losses.no_buffer;
		r->rx_unread += losses.unread;
		r->tx_errors += losses.tx_errors;
		if (!losses.unsound)
			continue;
		fprintf(stderr, "weir-meter: port %u (%s): its own count of "
		    "packets is not ours\n", ports->ports[i].id,
		    ports->ports[i].name);
		r->accounted = false;
	}
	if (r->seconds > 0)
		r->mpps = (double)r->packets / r->seconds / 1e6;
}

static void
add_limit(struct results *r, const struct meter *meter, uint32_t number,
    const char *name)
{
	struct result_limit *limit = &r->limits[r->n_limits++];

	limit->name = name;
	weir_engine_counters(meter->engine, number, &limit->counters);
}

static void
add_talkers(struct results *r, const struct worker *workers, size_t n)
{
	struct talkers **all = calloc(n + 1, sizeof(struct talkers *));

	for (size_t i = 0; i < n && all != NULL; i++)
		all[i] = workers[i].talkers;
	if (all == NULL ||
	    talkers_top(all, n, r->top, RESULTS_TOP, &r->n_top) != 0)
		fputs("weir-meter: no memory to sort the most denied\n",
		    stderr);
	free(all);
}

static void
expect_equal(struct results *r, const char *what, uint64_t a, uint64_t b)
{
	if (a == b)
		return;
	fprintf(stderr, "weir-meter: %s: %" PRIu64 " and %" PRIu64 "\n", what,
	    a, b);
	r->accounted = false;
}

static void
expect_none(struct results *r, const char *what, uint64_t n)
{
	if (n == 0)
		return;
	fprintf(stderr, "weir-meter: %" PRIu64 " %s\n", n, what);
	r->accounted = false;
}

static void
check_engine(struct results *r, const struct meter *meter)
{
	uint64_t passed = 0, denied = 0;

	for (size_t i = 0; i < r->n_limits; i++) {
		const struct weir_counters *c = &r->limits[i].counters;

		passed += c->passed_packets + c->full_passed_packets;
		denied += c->denied_packets + c->full_denied_packets;
	}
	expect_equal(r, "passed by the workers and by the engine",
	    r->passed, passed);
	expect_equal(r, "dropped by the workers and denied by the engine",
	    r->dropped, denied);
	expect_none(r, "packets were held to a limit that is not there",
	    weir_engine_unknown_limits(meter->engine));
}

static void
check_losses(struct results *r)
{
	expect_none(r, "packets missed: received too slowly", r->rx_missed);
	expect_none(r, "packets could not be received (is a capture damaged?)",
	    r->rx_errors);
	expect_none(r, "packets lost for want of mbufs", r->rx_no_buffer);
	expect_none(r, "errors in sending, by a port's own count",
	    r->tx_errors);
	expect_none(r, "packets arrived cut", r->rx_cut);
	expect_none(r, "packets had no time stamp", r->unstamped);
}

void
results_collect(struct results *r, const struct meter *meter,
    const struct ports *ports, const struct worker *workers, size_t n_workers)
{
	memset(r, 0, sizeof(*r));
	r->accounted = true;
	add_workers(r, workers, n_workers);
	add_ports(r, ports);
	check_losses(r);
	expect_equal(r, "received, and passed or dropped", r->packets,
	    r->passed + r->dropped);
	if (meter == NULL)
		return;
	add_limit(r, meter, meter->source, meter->policy.source.name);
	add_limit(r, meter, meter->unclassified,
	    meter->policy.unclassified.name);
	check_engine(r, meter);
	add_talkers(r, workers, n_workers);
}
