/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* sched_setaffinity */
#include "harness.h"

#include <sched.h>

#include "cases.h"
#include "pages.h"
#include "workload.h"

#define WARM_UP_DECISIONS (1u << 20)

const struct bench_case *const bench_cases[] = {
	&bench_floor_line,
	&bench_check_one,
	&bench_check_burst,
	&bench_check_pipelined,
	&bench_rte_hash_meter,
	&bench_rte_hash_meter_spinlock,
	&bench_rte_hash_meter_prefetch,
	NULL,
};

const uint64_t bench_keys[] = { 1000, 100000, 1000000, 8000000, 0 };

/* The one table that is alive. */
static struct {
	const struct bench_case *c; /* NULL: none */
	const struct workload *workload;
	struct bench_table table;
	void *state;
	uint64_t next;      /* where in the order to go on */
	uint64_t decisions; /* since setup */
	uint64_t good;      /* of these */
} current;

bool
bench_open(void)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return false;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	return false;
}

static void
current_drop(void)
{
	if (!current.c)
		return;
	current.c->teardown(current.state);
	current.c = NULL;
}

void
bench_close(void)
{
	current_drop();
	workload_free_all();
	bench_rte_close();
}

/* What became huge during setup is the table: nothing else is made there. */
static const char *
current_set(const struct bench_case *c, uint64_t n_keys)
{
	struct bench_table *table = &current.table;
	uint64_t huge_before, huge_after;
	const char *error;

	current.workload = workload_get(n_keys);
	if (!current.workload)
		return "no memory for the keys";
	*table = (struct bench_table){ .n_keys = n_keys };
	huge_before = pages_huge_now();
	error = c->setup(n_keys, &current.state, table);
	if (error)
		return error;
	huge_after = pages_huge_now();
	if (huge_after > huge_before)
		table->huge_bytes = huge_after - huge_before;
	if (table->huge_bytes > table->bytes)
		table->huge_bytes = table->bytes; /* the last page's rest */
	current.c = c;
	current.next = 0;
	current.decisions = 0;
	current.good = 0;
	return NULL;
}

const char *
bench_begin(const struct bench_case *c, uint64_t n_keys,
    struct bench_table *table)
{
	if (current.c != c || current.table.n_keys != n_keys) {
		const char *error;

		current_drop();
		error = current_set(c, n_keys);
		if (error)
			return error;
		for (unsigned i = 0; i < WARM_UP_DECISIONS; i += BENCH_CHUNK)
			bench_run();
	}
	*table = current.table;
	return NULL;
}

void
bench_run(void)
{
	const struct bench_key *keys = current.workload->order + current.next;

	current.good += current.c->run(current.state, keys, BENCH_CHUNK);
	current.decisions += BENCH_CHUNK;
	current.next += BENCH_CHUNK;
	if (current.next == current.workload->length)
		current.next = 0;
}

const char *
bench_end(void)
{
	if (current.good != current.decisions)
		return "not every decision came out as a pass";
	return current.c->verify(current.state, current.decisions);
}
