/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits as things that are made, named, refused and read back.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

static struct rig rig;

static void
setup(void)
{
	struct weir_engine_params params = rig_params(64, 1);

	rig_open(&rig, &params);
}

static void
teardown(void)
{
	rig_close(&rig);
}

/* Refused, for that field, with a reason, and nothing is left behind. */
static void
refused(struct weir_limit_params params, const char *field)
{
	struct weir_error error = { NULL, NULL };
	uint32_t limit = 12345;
	int rc;

	rc = weir_limit_add(rig.engine, &params, &limit, &error);
	ck_assert_msg(rc == -EINVAL, "%s: got %d instead of -EINVAL", field,
	    rc);
	ck_assert_msg(error.field != NULL && strcmp(error.field, field) == 0,
	    "blames %s instead of %s",
	    error.field != NULL ? error.field : "nothing", field);
	ck_assert_ptr_nonnull(error.reason);
	ck_assert_uint_gt(strlen(error.reason), 0);
	/* error may be NULL */
	ck_assert_int_eq(weir_limit_add(rig.engine, &params, &limit, NULL),
	    -EINVAL);
	if (params.name != NULL)
		ck_assert_int_eq(
		    weir_limit_find(rig.engine, params.name, &limit),
		    -ENOENT);
}

static void
taken(struct weir_limit_params params)
{
	struct weir_error error = { "field", "reason" };
	struct weir_limit_params back = { .size = sizeof(back) };
	uint32_t limit = 12345, found = 54321;
	int rc;

	rc = weir_limit_add(rig.engine, &params, &limit, &error);
	ck_assert_msg(rc == 0, "%s: %d: %s %s", params.name, rc,
	    error.field != NULL ? error.field : "-",
	    error.reason != NULL ? error.reason : "-");
	ck_assert_ptr_null(error.field);
	ck_assert_ptr_null(error.reason);
	ck_assert_int_eq(weir_limit_find(rig.engine, params.name, &found), 0);
	ck_assert_uint_eq(found, limit);
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), 0);
	ck_assert_str_eq(back.name, params.name);
	ck_assert_uint_eq(back.tokens, params.tokens);
	ck_assert_uint_eq(back.period_ns, params.period_ns);
	ck_assert_uint_eq(back.capacity, params.capacity);
	ck_assert_int_eq(back.unit, params.unit);
}

static struct weir_limit_params
of(uint64_t tokens, uint64_t period_ns, uint64_t capacity)
{
	static char name[32];
	static int count;

	snprintf(name, sizeof(name), "limit %d", count++);
	return limit_params(name, tokens, period_ns, capacity,
	    WEIR_UNIT_PACKETS);
}

/* B021: zero is no rate, B155: and no capacity. */
START_TEST(zero_is_refused)
{
	refused(of(0, S, 5), "tokens");
	refused(of(1, 0, 5), "period_ns");
	refused(of(1, S, 0), "capacity");
	refused(of(0, 0, 0), "tokens");
}
END_TEST

/* B107: what does not fit is refused, never clamped. */
START_TEST(capacity_range)
{
	taken(of(1, S, 1));
	taken(of(1, S, 1ull << 32));
	taken(of(1, S, (1ull << 55) - 1));
	taken(of(1, S, 1ull << 55));
	refused(of(1, S, (1ull << 55) + 1), "capacity");
	refused(of(1, S, 1ull << 63), "capacity");
	refused(of(1, S, UINT64_MAX), "capacity");
}
END_TEST

START_TEST(fastest_rate)
{
	taken(of(1 << 23, 1, 1));
	taken(of(1 << 23, 1, 1ull << 55));
	refused(of((1 << 23) + 1, 1, 1), "tokens");
	refused(of(UINT64_MAX, 1, 1), "tokens");
	refused(of(UINT64_MAX, 1, 1ull << 55), "tokens");
	/* just below and just above 2^23 per ns, as large fractions */
	taken(of(UINT64_MAX, 1ull << 41, 1));
	refused(of(UINT64_MAX, (1ull << 41) - 1, 1), "tokens");
	taken(of((1ull << 55) - 1, 1ull << 32, 1ull << 55));
	taken(of(1ull << 55, 1ull << 32, 1ull << 55));
	refused(of((1ull << 55) + 1, 1ull << 32, 1ull << 55), "tokens");
}
END_TEST

START_TEST(slowest_rate)
{
	taken(of(1, NSEC_PER_YEAR, 1));
	taken(of(1, 1ull << 63, 1));
	taken(of(1, UINT64_MAX, 1));
	taken(of(1, UINT64_MAX, 1ull << 55));
	taken(of(UINT64_MAX, UINT64_MAX, 1));
}
END_TEST

/* B095: to the letter, in the units it was set. */
START_TEST(read_back)
{
	/* 8000 kbit; 10k packets; 100 Mbit/s; 100 MB/s; not reduced */
	taken(limit_params("8000kbit", 12500000, S, 1000000, WEIR_UNIT_BYTES));
	taken(limit_params("10k", 10000, S, 10000, WEIR_UNIT_PACKETS));
	taken(limit_params("100MBps", 100000000, S, 1, WEIR_UNIT_BYTES));
	taken(limit_params("unreduced", 60, 60 * S, 60, WEIR_UNIT_PACKETS));
	/* B109: rates above 2^31 */
	taken(limit_params("40G", 5000000000, S, 125000, WEIR_UNIT_BYTES));
}
END_TEST

START_TEST(names)
{
	char longest[WEIR_LIMIT_NAME_MAX + 1], longer[sizeof(longest) + 1];
	struct weir_limit_params p = of(1, S, 1);
	struct weir_error error;
	uint32_t limit;

	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';

	p.name = NULL;
	refused(p, "name");
	p.name = "";
	refused(p, "name");
	p.name = longer;
	refused(p, "name");
	p.name = longest;
	taken(p);
	p.name = "x";
	taken(p);
	p.tokens = 2;
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, &error),
	    -EEXIST);
	ck_assert_int_eq(weir_limit_find(rig.engine, "X", &limit), -ENOENT);
	ck_assert_int_eq(weir_limit_find(rig.engine, "", &limit), -ENOENT);
	ck_assert_int_eq(weir_limit_find(rig.engine, longer, &limit),
	    -ENOENT);
}
END_TEST

/* The name is copied. */
START_TEST(name_is_kept)
{
	struct weir_limit_params back = { .size = sizeof(back) };
	char name[] = "mine";
	struct weir_limit_params p = of(1, S, 1);
	uint32_t limit;

	p.name = name;
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, NULL), 0);
	memset(name, '?', 4);
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), 0);
	ck_assert_str_eq(back.name, "mine");
}
END_TEST

START_TEST(wrong_size_or_unit)
{
	struct weir_limit_params p = of(1, S, 1), back;
	uint32_t limit;

	p.size = 0;
	refused(p, "size");
	p.size = sizeof(p) - 1;
	refused(p, "size");
	p.size = sizeof(p) + 64;
	refused(p, "size");
	p.size = sizeof(p);
	p.unit = (enum weir_unit)2;
	refused(p, "unit");
	p.unit = (enum weir_unit)-1;
	refused(p, "unit");
	p.unit = WEIR_UNIT_BYTES;
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, NULL), 0);
	back.size = 0;
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), -EINVAL);
}
END_TEST

START_TEST(unknown_numbers)
{
	struct weir_limit_params back = { .size = sizeof(back) };
	const uint32_t wrong[] = { 1, 2, 63, 64, 65, 65534, 65535, 65536,
		65537, 1u << 31, UINT32_MAX };
	uint32_t limit;

	limit = limit_add(rig.engine, "only", 1, S, 1, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), 0);
	for (size_t i = 0; i < NELEM(wrong); i++)
		ck_assert_int_eq(weir_limit_get(rig.engine,
		    limit + wrong[i], &back), -ENOENT);
}
END_TEST

/* As many as were asked for, and no more. */
static void
fill_with_limits(uint32_t asked, uint32_t most)
{
	struct weir_engine_params params = rig_params(64, 1);
	struct weir_limit_params p;
	struct rig full;
	uint32_t limit;

	params.max_limits = asked;
	rig_open(&full, &params);
	for (uint32_t i = 0; i < most; i++) {
		p = of(1 + i, S, 10);
		ck_assert_int_eq(weir_limit_add(full.engine, &p, &limit,
		    NULL), 0);
		ck_assert_int_eq(ask(&full, limit, "k", 10, 0).verdict,
		    WEIR_PASS);
		/* each its own rate: 1 s / (1 + i), rounded up */
		ck_assert_uint_eq(ask(&full, limit, "k", 1, 0).retry_after_ns,
		    (S + i) / (1 + i));
	}
	p = of(1, S, 1);
	ck_assert_int_eq(weir_limit_add(full.engine, &p, &limit, NULL),
	    -ENOSPC);
	rig_close(&full);
}

START_TEST(as_many_as_asked_for)
{
	fill_with_limits(0, 64);
	fill_with_limits(1, 1);
	fill_with_limits(3, 3);
	fill_with_limits(50, 50);
}
END_TEST

/* More than fit any byte, each under its own number. */
START_TEST(thousands)
{
	const uint32_t count = (uint32_t)test_scale(3000);
	struct weir_engine_params params = rig_params(4096, 4);
	struct rig full;
	uint32_t limit;

	params.max_limits = WEIR_LIMITS_MAX;
	rig_open(&full, &params);
	for (uint32_t i = 0; i < count; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		limit = limit_add(full.engine, name, 1, S, 1,
		    WEIR_UNIT_PACKETS);
		ck_assert_int_eq(ask(&full, limit, &i, 1, 0).verdict,
		    WEIR_PASS);
		ck_assert_int_eq(ask(&full, limit, &i, 1, 0).verdict,
		    WEIR_DENY);
	}
	ck_assert_uint_eq(weir_engine_unknown_limits(full.engine), 0);
	rig_close(&full);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("limit");
	TCase *range = tcase_create("range");
	TCase *number = tcase_create("number");

	tcase_add_checked_fixture(range, setup, teardown);
	tcase_add_test(range, zero_is_refused);
	tcase_add_test(range, capacity_range);
	tcase_add_test(range, fastest_rate);
	tcase_add_test(range, slowest_rate);
	tcase_add_test(range, read_back);
	tcase_add_test(range, names);
	tcase_add_test(range, name_is_kept);
	tcase_add_test(range, wrong_size_or_unit);
	tcase_add_test(range, unknown_numbers);
	suite_add_tcase(s, range);

	tcase_set_timeout(number, 300);
	tcase_add_test(number, as_many_as_asked_for);
	tcase_add_test(number, thousands);
	suite_add_tcase(s, number);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
