/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits without a bucket: unlimited and closed.
 */
#include <errno.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

static struct rig rig;
static uint32_t open_to_all, closed, bucket;

static struct weir_limit_params
constant(const char *name, enum weir_algorithm algorithm)
{
	return (struct weir_limit_params){
		.size = sizeof(struct weir_limit_params),
		.name = name,
		.algorithm = algorithm,
	};
}

/* With a table of 64 slots, any of which every key may use. */
static void
setup(void)
{
	struct weir_engine_params params = rig_params(1, 1);
	struct weir_limit_params p;

	rig_open(&rig, &params);
	p = constant("open", WEIR_UNLIMITED);
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &open_to_all, NULL),
	    0);
	p = constant("closed", WEIR_CLOSED);
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &closed, NULL), 0);
	bucket = limit_add(rig.engine, "bucket", 1, S, 2, WEIR_UNIT_PACKETS);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static void
passes(const struct weir_decision *d)
{
	ck_assert_int_eq(d->verdict, WEIR_PASS);
	ck_assert_int_eq(d->decided_by, WEIR_BY_SETTING);
	ck_assert_uint_eq(d->remaining, d->limit == closed ? 0 : UINT64_MAX);
	ck_assert_uint_eq(d->retry_after_ns, 0);
	ck_assert_uint_eq(d->reset_after_ns, 0);
	ck_assert_uint_eq(d->debt, 0);
}

static void
is_refused(const struct weir_decision *d)
{
	ck_assert_int_eq(d->verdict, WEIR_DENY);
	ck_assert_int_eq(d->decided_by, WEIR_BY_SETTING);
	ck_assert_uint_eq(d->limit, closed);
	ck_assert_uint_eq(d->remaining, 0);
	ck_assert_uint_eq(d->retry_after_ns, WEIR_NEVER);
	ck_assert_uint_eq(d->reset_after_ns, 0);
}

static const uint64_t costs[] = {
	1, 2, 1ull << 32, 1ull << 55, 1ull << 58, 1ull << 63, UINT64_MAX,
};
static const uint64_t times_ns[] = {
	0, 1, S, 1ull << 58, 1ull << 63, UINT64_MAX, 5,
};

START_TEST(all_or_nothing)
{
	for (size_t i = 0; i < NELEM(costs); i++) {
		struct weir_decision d = ask(&rig, open_to_all, "k", costs[i],
		    times_ns[i]);

		passes(&d);
		d = ask(&rig, closed, "k", costs[i], times_ns[i]);
		is_refused(&d);
		d = ask(&rig, closed, "k", 0, times_ns[i]);
		passes(&d);
		d = ask(&rig, open_to_all, "k", 0, times_ns[i]);
		passes(&d);
	}
}
END_TEST

/* Among requests of other limits, in one call or two, with details or not. */
START_TEST(in_bursts)
{
	struct weir_request requests[30];
	struct weir_decision d[NELEM(requests)];
	uint8_t verdicts[NELEM(requests)];

	for (int way = 0; way < 4; way++) {
		uint64_t now_ns = (uint64_t)way * 10 * S;

		for (size_t i = 0; i < NELEM(requests); i++)
			requests[i] = request(i % 3 == 0 ? open_to_all :
			    i % 3 == 1 ? closed : bucket, &"ab"[i / 3 % 2], 1);
		memset(verdicts, 0xa5, sizeof(verdicts));
		if (way < 2) {
			weir_check_burst(rig.worker, requests,
			    NELEM(requests), now_ns, verdicts,
			    way == 0 ? d : NULL);
		} else {
			ck_assert_int_eq(weir_prepare(rig.worker, requests,
			    NELEM(requests)), 0);
			ck_assert_uint_eq(weir_decide(rig.worker, now_ns,
			    verdicts, way == 2 ? d : NULL), NELEM(requests));
		}
		for (size_t i = 0; i < NELEM(requests); i++) {
			/* of the bucket's, the first two of each key */
			ck_assert_uint_eq(verdicts[i], i % 3 == 0 ||
			    (i % 3 == 2 && i < 12));
			if (i % 3 == 0)
				passes(&d[i]);
			else if (i % 3 == 1)
				is_refused(&d[i]);
		}
	}
}
END_TEST

START_TEST(counted)
{
	struct weir_request r = { .key = "k", .packets = 3, .bytes = 500 };
	struct weir_counters c;

	r.limit = open_to_all;
	weir_check(rig.worker, &r, 0, NULL);
	weir_take(rig.worker, &r, 0, NULL);
	weir_peek(rig.worker, &r, 0, NULL);
	r.limit = closed;
	weir_check(rig.worker, &r, 0, NULL);
	weir_take(rig.worker, &r, 0, NULL);
	weir_peek(rig.worker, &r, 0, NULL);
	ck_assert_int_eq(weir_engine_counters(rig.engine, open_to_all, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 6);
	ck_assert_uint_eq(c.passed_bytes, 1000);
	ck_assert_uint_eq(c.denied_packets, 0);
	ck_assert_uint_eq(c.denied_bytes, 0);
	ck_assert_int_eq(weir_engine_counters(rig.engine, closed, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 0);
	ck_assert_uint_eq(c.passed_bytes, 0);
	ck_assert_uint_eq(c.denied_packets, 6);
	ck_assert_uint_eq(c.denied_bytes, 1000);
}
END_TEST

START_TEST(other_calls)
{
	struct weir_request r = request(open_to_all, "k", UINT64_MAX);
	struct weir_decision d;

	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, &d), UINT64_MAX);
	passes(&d);
	ck_assert_int_eq(weir_peek(rig.worker, &r, 0, &d), WEIR_PASS);
	passes(&d);
	ck_assert_uint_eq(weir_refund(rig.worker, &r, 0), 0);
	r.limit = closed;
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, &d), 0);
	is_refused(&d);
	ck_assert_int_eq(weir_peek(rig.worker, &r, 0, &d), WEIR_DENY);
	is_refused(&d);
	ck_assert_uint_eq(weir_refund(rig.worker, &r, 0), 0);
	r.packets = 0;
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, &d), 0);
	passes(&d);
}
END_TEST

/* Nothing is kept, and no room is needed: others may fill the table before, or
 * find it empty behind. */
START_TEST(no_entries)
{
	struct weir_decision d;

	for (int key = 0; key < 256; key++) {
		d = ask(&rig, open_to_all, &(uint8_t){ (uint8_t)key }, 5, 0);
		passes(&d);
		d = ask(&rig, closed, &(uint8_t){ (uint8_t)key }, 5, 0);
		is_refused(&d);
	}
	for (uint8_t key = 0; key < 64; key++)
		ck_assert_int_eq(ask(&rig, bucket, &key, 2, 0).decided_by,
		    WEIR_BY_BUCKET);
	ck_assert_int_eq(ask(&rig, bucket, "\377", 2, 0).decided_by,
	    WEIR_BY_FULL);
	d = ask(&rig, open_to_all, "\377", 5, 0);
	passes(&d);
	d = ask(&rig, closed, "\377", 5, 0);
	is_refused(&d);
}
END_TEST

/* Numbers would be a misunderstanding, and are named. */
START_TEST(no_numbers)
{
	static const char *const fields[] = {
		"tokens", "period_ns", "capacity", "debt",
	};
	struct weir_error error;
	uint32_t other;

	for (int i = 0; i < 8; i++) {
		struct weir_limit_params p = constant("bad",
		    i < 4 ? WEIR_UNLIMITED : WEIR_CLOSED);

		p.tokens = i % 4 == 0;
		p.period_ns = i % 4 == 1;
		p.capacity = i % 4 == 2;
		p.debt = i % 4 == 3;
		ck_assert_int_eq(weir_limit_add(rig.engine, &p, &other,
		    &error), -EINVAL);
		ck_assert_str_eq(error.field, fields[i % 4]);
		p.name = i < 4 ? "open" : "closed";
		ck_assert_int_eq(weir_limit_set(rig.engine, i < 4 ?
		    open_to_all : closed, &p, 0, &error), -EINVAL);
		ck_assert_str_eq(error.field, fields[i % 4]);
	}
}
END_TEST

/* Read back to the letter; no other than it is, whatever comes. */
START_TEST(stays_what_it_is)
{
	struct weir_limit_params back = { .size = sizeof(back) };
	struct weir_error error;

	ck_assert_int_eq(weir_limit_get(rig.engine, closed, &back), 0);
	ck_assert_int_eq(back.algorithm, WEIR_CLOSED);
	ck_assert_uint_eq(back.tokens, 0);
	ck_assert_uint_eq(back.capacity, 0);
	ck_assert_int_eq(weir_limit_set(rig.engine, closed, &back, S, &error),
	    0);
	back.algorithm = WEIR_UNLIMITED;
	ck_assert_int_eq(weir_limit_set(rig.engine, closed, &back, S, &error),
	    -EINVAL);
	ck_assert_str_eq(error.field, "algorithm");
	back.algorithm = (enum weir_algorithm)77;
	ck_assert_int_eq(weir_limit_set(rig.engine, closed, &back, S, &error),
	    -EINVAL);
	ck_assert_str_eq(error.field, "algorithm");
	ck_assert_int_eq(ask(&rig, closed, "k", 1, S).verdict, WEIR_DENY);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("constant");
	TCase *tc = tcase_create("constant");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_or_nothing);
	tcase_add_test(tc, in_bursts);
	tcase_add_test(tc, counted);
	tcase_add_test(tc, other_calls);
	tcase_add_test(tc, no_entries);
	tcase_add_test(tc, no_numbers);
	tcase_add_test(tc, stays_what_it_is);
	suite_add_tcase(s, tc);
	return test_run(s);
}
