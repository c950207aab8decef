/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits by name, from a configuration one does not control: add them, find
 * them, read them back, and say what is wrong with those that are refused.
 * What cannot be represented is never rounded or clamped into something else.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#define SECOND_NS UINT64_C(1000000000)
#define YEAR_NS (UINT64_C(31557600) * SECOND_NS)

/* What a configuration might hold, and what has to come of it. */
static const struct row {
	struct weir_limit_params params;
	int result;
	const char *field; /* at fault, if refused for that */
} rows[] = {
	{ { .name = "web", .tokens = 1000, .period_ns = SECOND_NS,
	      .capacity = 200 },
	    0, NULL },
	{ { .name = "one-a-year", .tokens = 1, .period_ns = YEAR_NS,
	      .capacity = 1 },
	    0, NULL },
	{ { .name = "1.6-Tbit/s", .tokens = 200, .period_ns = 1,
	      .capacity = 100000000, .unit = WEIR_UNIT_BYTES },
	    0, NULL },
	{ { .name = "web", .tokens = 5, .period_ns = 1, .capacity = 5 },
	    -EEXIST, NULL },
	{ { .name = "no-rate", .tokens = 0, .period_ns = 1, .capacity = 1 },
	    -EINVAL, "tokens" },
	{ { .name = "no-period", .tokens = 1, .period_ns = 0, .capacity = 1 },
	    -EINVAL, "period_ns" },
	{ { .name = "no-room", .tokens = 1, .period_ns = 1, .capacity = 0 },
	    -EINVAL, "capacity" },
	{ { .name = "", .tokens = 1, .period_ns = 1, .capacity = 1 },
	    -EINVAL, "name" },
};

/* Add one. => Whether that went as it should. */
static bool
add(struct weir_engine *engine, const struct row *row)
{
	struct weir_limit_params params = row->params;
	struct weir_error error = { NULL, NULL };
	uint32_t limit;
	int result;

	params.size = sizeof(params);
	result = weir_limit_add(engine, &params, &limit, &error);
	if (result == 0)
		printf("%-12s is limit %" PRIu32 "\n", params.name, limit);
	else if (error.field != NULL)
		printf("%-12s %s: %s\n", params.name, error.field,
		    error.reason);
	else
		printf("%-12s %s\n", params.name, strerror(-result));
	if (result != row->result)
		return false;
	return row->field == NULL ||
	    (error.field != NULL && strcmp(error.field, row->field) == 0);
}

/* Read one back. => Whether it is what was added first under this name. */
static bool
read_back(struct weir_engine *engine, const struct row *row)
{
	const struct weir_limit_params *want = &row->params;
	struct weir_limit_params got = { .size = sizeof(got) };
	uint32_t limit;

	if (weir_limit_find(engine, want->name, &limit) != 0 ||
	    weir_limit_get(engine, limit, &got) != 0)
		return false;
	printf("%-12s %" PRIu64 " per %" PRIu64 " ns, capacity %" PRIu64
	       " %s\n",
	    got.name, got.tokens, got.period_ns, got.capacity,
	    got.unit == WEIR_UNIT_BYTES ? "bytes" : "packets");
	return strcmp(got.name, want->name) == 0 &&
	    got.tokens == want->tokens && got.period_ns == want->period_ns &&
	    got.capacity == want->capacity && got.unit == want->unit;
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = WEIR_KEY_SIZE_MAX + 1,
	};
	struct weir_engine *engine;
	struct weir_error error;
	uint32_t limit;
	bool fine = true;

	/* An engine says the same way what it does not take. */
	if (weir_engine_create(&params, &engine, &error) != -EINVAL ||
	    strcmp(error.field, "key_size") != 0)
		return 1;
	printf("engine       %s: %s\n", error.field, error.reason);
	params.key_size = 4;
	if (weir_engine_create(&params, &engine, &error) != 0)
		return 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		fine = add(engine, &rows[i]) && fine;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].result == 0)
			fine = read_back(engine, &rows[i]) && fine;
	}
	fine = weir_limit_find(engine, "no-rate", &limit) == -ENOENT && fine;
	return weir_engine_destroy(engine) != 0 || !fine;
}
