/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "results.h"

FILE *
report_open(void)
{
	int fd = dup(STDOUT_FILENO);
	FILE *out;

	if (fd < 0)
		return NULL;
	out = fdopen(fd, "w");
	if (out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		close(fd);
		return NULL;
	}
	return out;
}

/* What the table had no room for: decided otherwise than by the bucket. */
static uint64_t
table_full(const struct weir_counters *c)
{
	return c->full_passed_packets + c->full_denied_packets;
}

static const char *
clock_name(const struct args *args)
{
	return args->clock == ARGS_CLOCK_CAPTURE ? "capture" : "tsc";
}

/*
 * Text.
 */

static void
print_totals(FILE *out, const struct args *args, const struct results *r)
{
	fprintf(out, "%-24s %14" PRIu64 "   in %.6f s, %.3f Mpps, clock %s\n",
	    "received packets", r->packets, r->seconds, r->mpps,
	    clock_name(args));
	fprintf(out, "%-24s %14" PRIu64 "\n", "  passed", r->passed);
	fprintf(out, "%-24s %14" PRIu64 "\n", "  dropped", r->dropped);
	fprintf(out, "%-24s %14" PRIu64 "\n", "  unclassified",
	    r->unclassified);
}

static void
print_if_any(FILE *out, const char *what, uint64_t n)
{
	if (n != 0)
		fprintf(out, "%-24s %14" PRIu64 "\n", what, n);
}

static void
print_faults(FILE *out, const struct results *r)
{
	print_if_any(out, "not taken for sending", r->tx_failed);
	print_if_any(out, "failed in sending", r->tx_errors);
	print_if_any(out, "missed in receiving", r->rx_missed);
	print_if_any(out, "failed in receiving", r->rx_errors);
	print_if_any(out, "without an mbuf", r->rx_no_buffer);
	print_if_any(out, "left in a queue", r->rx_unread);
	print_if_any(out, "arrived cut", r->rx_cut);
	print_if_any(out, "without a time stamp", r->unstamped);
	if (!r->accounted)
		fputs("NOT everything received is accounted for\n", out);
}

/* Of the column of names. */
static int
name_width(const struct results *r)
{
	size_t width = 24;

	for (size_t i = 0; i < r->n_limits; i++) {
		size_t length = strlen(r->limits[i].name);

		width = length > width ? length : width;
	}
	return (int)width;
}

static void
print_limits(FILE *out, const struct results *r)
{
	int width = name_width(r);

	if (r->n_limits == 0) {
		fputs("\nno limits: metering is off\n", out);
		return;
	}
	fprintf(out, "\n%-*s %14s %14s %14s %14s %12s %15s\n", width, "limit",
	    "passed packets", "bytes", "denied packets", "bytes",
	    "table full", "of which passed");
	for (size_t i = 0; i < r->n_limits; i++) {
		const struct weir_counters *c = &r->limits[i].counters;

		fprintf(out, "%-*s %14" PRIu64 " %14" PRIu64 " %14" PRIu64
		    " %14" PRIu64 " %12" PRIu64 " %15" PRIu64 "\n", width,
		    r->limits[i].name, c->passed_packets, c->passed_bytes,
		    c->denied_packets, c->denied_bytes, table_full(c),
		    c->full_passed_packets);
	}
}

static void
print_top(FILE *out, const struct results *r, const struct meter *meter)
{
	char key[PKT_KEY_TEXT_SIZE];

	if (r->n_top == 0)
		return;
	fprintf(out, "\n%-24s %14s\n", "most denied", "denied packets");
	for (size_t i = 0; i < r->n_top; i++) {
		const struct talker *t = &r->top[i];

		pkt_key_print(t->key, &meter->rules, key, sizeof(key));
		fprintf(out, "%-24s %14" PRIu64, key, t->count);
		if (t->error > 0)
			fprintf(out, "   (at least %" PRIu64 ")",
			    t->count - t->error);
		fputc('\n', out);
	}
}

static int
write_text(FILE *out, const struct args *args, const struct results *r,
    const struct meter *meter)
{
	print_totals(out, args, r);
	print_faults(out, r);
	print_limits(out, r);
	print_top(out, r, meter);
	return 0;
}

/*
 * JSON. The members that stand first in each object are promised; more may
 * follow. Counters above 2^63 - 1 do not happen in the life of a machine.
 */

static json_t *
number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *
limit_to_json(const struct result_limit *limit)
{
	const struct weir_counters *c = &limit->counters;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "name", limit->name,
	    "passed_packets", number(c->passed_packets),
	    "passed_bytes", number(c->passed_bytes),
	    "denied_packets", number(c->denied_packets),
	    "denied_bytes", number(c->denied_bytes),
	    "table_full", number(table_full(c)),
	    "table_full_passed_packets", number(c->full_passed_packets),
	    "table_full_passed_bytes", number(c->full_passed_bytes),
	    "table_full_denied_packets", number(c->full_denied_packets),
	    "table_full_denied_bytes", number(c->full_denied_bytes));
}

static json_t *
limits_to_json(const struct results *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_limits; i++)
		json_array_append_new(list, limit_to_json(&r->limits[i]));
	return list;
}

static json_t *
top_to_json(const struct results *r, const struct meter *meter)
{
	json_t *list = json_array();
	char key[PKT_KEY_TEXT_SIZE];

	for (size_t i = 0; i < r->n_top; i++) {
		const struct talker *t = &r->top[i];

		pkt_key_print(t->key, &meter->rules, key, sizeof(key));
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}",
		    "key", key,
		    "limit", meter->policy.source.name,
		    "denied_packets", number(t->count),
		    "error", number(t->error)));
	}
	return list;
}

static json_t *
report_to_json(const struct args *args, const struct results *r,
    const struct meter *meter)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:b, s:s, s:f, "
	    "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "packets", number(r->packets),
	    "passed", number(r->passed),
	    "dropped", number(r->dropped),
	    "unclassified", number(r->unclassified),
	    "mpps", r->mpps,
	    "limits", limits_to_json(r),
	    "top_denied", top_to_json(r, meter),
	    "accounted", r->accounted,
	    "clock", clock_name(args),
	    "seconds", r->seconds,
	    "tx_failed", number(r->tx_failed),
	    "tx_errors", number(r->tx_errors),
	    "rx_missed", number(r->rx_missed),
	    "rx_errors", number(r->rx_errors),
	    "rx_no_buffer", number(r->rx_no_buffer),
	    "rx_unread", number(r->rx_unread),
	    "rx_cut", number(r->rx_cut),
	    "unstamped", number(r->unstamped));
}

static int
write_json(FILE *out, const struct args *args, const struct results *r,
    const struct meter *meter)
{
	json_t *report = report_to_json(args, r, meter);
	size_t expected = r->n_limits;
	int ret = -ENOMEM;

	/* A part that could not be made would be missing, not half there. */
	if (json_array_size(json_object_get(report, "limits")) == expected &&
	    json_array_size(json_object_get(report, "top_denied")) ==
	    r->n_top && json_dumpf(report, out, JSON_REAL_PRECISION(9)) == 0) {
		fputc('\n', out);
		ret = 0;
	}
	json_decref(report);
	return ret;
}

int
report_write(FILE *out, const struct args *args, const struct results *results,
    const struct meter *meter)
{
	int ret;

	if (args->stats == ARGS_STATS_JSON)
		ret = write_json(out, args, results, meter);
	else
		ret = write_text(out, args, results, meter);
	errno = 0;
	if (fclose(out) != 0 && ret == 0)
		ret = errno != 0 ? -errno : -EIO;
	return ret;
}
