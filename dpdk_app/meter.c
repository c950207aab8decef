/* SPDX-License-Identifier: BSD-3-Clause */
#include "meter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Captures are often merged from several, or written by several cores, and
 * workers read theirs at different places: their time runs back more than that
 * of a machine. This is the most that the engine takes.
 */
#define CAPTURE_SKEW_NS 100000000u

static void
print_error(const struct policy_error *error)
{
	char text[POLICY_TEXT_SIZE];

	policy_error_print(error, text, sizeof(text));
	fprintf(stderr, "weir-meter: %s\n", text);
}

static void
print_warnings(const struct policy *policy)
{
	char text[POLICY_TEXT_SIZE];

	for (unsigned int i = 0; policy_warning(policy, i, text, sizeof(text));
	     i++)
		fprintf(stderr, "weir-meter: warning: %s\n", text);
}

static int
create_engine(struct meter *meter, const char *path, bool capture_clock)
{
	const struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = meter->policy.table_capacity,
		.key_size = PKT_KEY_SIZE,
		.full_policy = meter->policy.table_full,
		.clock_skew_ns = capture_clock ? CAPTURE_SKEW_NS : 0,
	};
	struct weir_error error;
	int ret;

	ret = weir_engine_create(&params, &meter->engine, &error);
	if (ret == 0)
		return 0;
	if (error.field != NULL)
		fprintf(stderr, "weir-meter: %s: [table] %s: %s\n", path,
		    error.field, error.reason);
	else
		fprintf(stderr, "weir-meter: %s: [table] capacity: a table "
		    "for %" PRIu64 " sources: %s\n", path,
		    (uint64_t)meter->policy.table_capacity, strerror(-ret));
	return ret;
}

static int
add_limit(struct meter *meter, const char *path,
    const struct policy_limit *limit, uint32_t *number)
{
	struct weir_limit_params params;
	struct policy_error error;
	struct weir_error refusal;
	int ret;

	policy_limit_params(limit, &params);
	ret = weir_limit_add(meter->engine, &params, number, &refusal);
	if (ret == -EINVAL) {
		policy_error_from_limit(&error, path, limit, &refusal);
		print_error(&error);
	} else if (ret != 0) {
		fprintf(stderr, "weir-meter: %s: [limit %s]: %s\n", path,
		    limit->name, strerror(-ret));
	}
	return ret;
}

int
meter_open(struct meter *meter, const char *path, bool capture_clock)
{
	struct policy_error error;
	int ret;

	memset(meter, 0, sizeof(*meter));
	ret = policy_load(path, &meter->policy, &error);
	if (ret != 0) {
		print_error(&error);
		return ret;
	}
	print_warnings(&meter->policy);

	/* The policy has checked the prefix. */
	ret = pkt_key_rules_init(&meter->rules, meter->policy.ipv6_prefix);
	if (ret == 0)
		ret = create_engine(meter, path, capture_clock);
	if (ret != 0)
		return ret;
	ret = add_limit(meter, path, &meter->policy.source, &meter->source);
	if (ret == 0)
		ret = add_limit(meter, path, &meter->policy.unclassified,
		    &meter->unclassified);
	if (ret != 0)
		meter_close(meter);
	return ret;
}

void
meter_close(struct meter *meter)
{
	weir_engine_destroy(meter->engine);
	meter->engine = NULL;
}
