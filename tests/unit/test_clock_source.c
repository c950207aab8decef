/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clocks that may be read for now_ns. The only test that looks at real
 * time, and it depends on no speed: readings are held against others taken
 * before and after.
 */
#include <errno.h>
#include <time.h>

#include "../support.h"

static const enum weir_clock_source sources[] = {
	WEIR_CLOCK_AUTO, WEIR_CLOCK_TSC, WEIR_CLOCK_MONOTONIC,
};

/* NULL: this machine has no such clock. */
static struct weir_clock *
opened(enum weir_clock_source source)
{
	struct weir_clock *clock = NULL;
	int rc = weir_clock_open(source, &clock);

	if (rc == -ENOTSUP && source == WEIR_CLOCK_TSC)
		return NULL;
	ck_assert_int_eq(rc, 0);
	ck_assert_ptr_nonnull(clock);
	return clock;
}

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

START_TEST(never_backward)
{
	for (size_t i = 0; i < NELEM(sources); i++) {
		struct weir_clock *clock = opened(sources[i]);
		uint64_t last_ns = 0;

		if (clock == NULL)
			continue;
		for (int n = 0; n < 1000000; n++) {
			uint64_t now_ns = weir_clock_now_ns(clock);

			expect(now_ns >= last_ns);
			last_ns = now_ns;
		}
		weir_clock_close(clock);
	}
}
END_TEST

/*
 * It starts at the system's clock, and then goes as fast: an interval by this
 * clock lies between the one that encloses it and the one it encloses, but for
 * what 20 ms of calibration can tell.
 */
START_TEST(as_fast_as_the_system)
{
	for (size_t i = 0; i < NELEM(sources); i++) {
		struct weir_clock *clock = opened(sources[i]);
		uint64_t outer[2], inner[2], mine[2], shortest, longest;

		if (clock == NULL)
			continue;
		for (int end = 0; end < 2; end++) {
			outer[end] = monotonic_ns();
			mine[end] = weir_clock_now_ns(clock);
			inner[end] = monotonic_ns();
			while (end == 0 &&
			    monotonic_ns() - outer[0] < 100 * NSEC_PER_MS)
				;
		}
		shortest = outer[1] - inner[0];
		longest = inner[1] - outer[0];
		ck_assert_uint_ge(mine[1] - mine[0],
		    shortest - shortest / 100);
		ck_assert_uint_le(mine[1] - mine[0], longest + longest / 100);
		ck_assert_uint_ge(mine[0], outer[0] - 100 * NSEC_PER_MS);
		ck_assert_uint_le(mine[0], inner[0] + 100 * NSEC_PER_MS);
		weir_clock_close(clock);
	}
}
END_TEST

START_TEST(sources_are_told)
{
	struct weir_clock *clock;

	clock = opened(WEIR_CLOCK_MONOTONIC);
	ck_assert_int_eq(weir_clock_get_source(clock), WEIR_CLOCK_MONOTONIC);
	weir_clock_close(clock);
	clock = opened(WEIR_CLOCK_TSC);
	if (clock != NULL) {
		ck_assert_int_eq(weir_clock_get_source(clock),
		    WEIR_CLOCK_TSC);
		weir_clock_close(clock);
		/* where there is one, it is the one to be had */
		clock = opened(WEIR_CLOCK_AUTO);
		ck_assert_int_eq(weir_clock_get_source(clock),
		    WEIR_CLOCK_TSC);
	} else {
		clock = opened(WEIR_CLOCK_AUTO);
		ck_assert_int_eq(weir_clock_get_source(clock),
		    WEIR_CLOCK_MONOTONIC);
	}
	weir_clock_close(clock);
	weir_clock_close(NULL);
}
END_TEST

START_TEST(no_such_source)
{
	struct weir_clock *clock;

	ck_assert_int_eq(weir_clock_open((enum weir_clock_source)3, &clock),
	    -EINVAL);
	ck_assert_int_eq(weir_clock_open((enum weir_clock_source)-1, &clock),
	    -EINVAL);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("clock source");
	TCase *tc = tcase_create("clock");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, never_backward);
	tcase_add_test(tc, as_fast_as_the_system);
	tcase_add_test(tc, sources_are_told);
	tcase_add_test(tc, no_such_source);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
