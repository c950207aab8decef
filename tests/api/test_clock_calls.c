/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock one may read now_ns from: the only calls that time cannot be
 * injected into, so they are held against the system's clock, which is read
 * before and after. How long that takes does not matter.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <weir/weir.h>

#define READINGS 200000u

static int faults;

static void
expect(bool good, const char *what)
{
	if (!good) {
		printf("not so: %s\n", what);
		faults++;
	}
}

static uint64_t
system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Every reading lies between two readings of the system's clock, give or take
 * slack for the calibration: 1 ms, and 1 per mille of what has passed since.
 */
static void
expect_steady(const struct weir_clock *clock, uint64_t slack_ns)
{
	const uint64_t start_ns = system_ns();
	uint64_t last_ns = 0;
	uint64_t backward = 0;
	uint64_t early = 0;
	uint64_t late = 0;

	for (uint32_t i = 0; i < READINGS; i++) {
		uint64_t before_ns = system_ns();
		uint64_t now_ns = weir_clock_now_ns(clock);
		uint64_t after_ns = system_ns();
		uint64_t slack = slack_ns;

		if (slack_ns > 0)
			slack += (after_ns - start_ns) / 1000;
		backward += now_ns < last_ns;
		early += now_ns + slack < before_ns;
		late += now_ns > after_ns + slack;
		last_ns = now_ns;
	}
	printf("%u readings in %" PRIu64 " ns: %" PRIu64 " backward, %" PRIu64
	       " early, %" PRIu64 " late\n",
	    READINGS, system_ns() - start_ns, backward, early, late);
	expect(backward == 0, "never backward on one thread");
	expect(early == 0 && late == 0, "as the system's clock");
}

static void
test_monotonic(void)
{
	struct weir_clock *clock = NULL;

	expect(weir_clock_open(WEIR_CLOCK_MONOTONIC, &clock) == 0,
	    "the system's clock can always be had");
	if (clock == NULL)
		return;
	expect(weir_clock_get_source(clock) == WEIR_CLOCK_MONOTONIC,
	    "what was asked for is what is read");
	expect_steady(clock, 0);
	weir_clock_close(clock);
}

/* => Whether the processor has a counter to be relied on. */
static bool
test_tsc(void)
{
	struct weir_clock *clock = NULL;
	int result = weir_clock_open(WEIR_CLOCK_TSC, &clock);

	if (result != 0) {
		printf("no invariant time stamp counter here\n");
		expect(result == -ENOTSUP, "a missing counter is ENOTSUP");
		expect(clock == NULL, "a refusal leaves the pointer alone");
		return false;
	}
	expect(weir_clock_get_source(clock) == WEIR_CLOCK_TSC,
	    "the counter is not quietly replaced");
	expect_steady(clock, 1000000);
	weir_clock_close(clock);
	return true;
}

static void
test_auto(bool tsc)
{
	struct weir_clock *clock = NULL;

	expect(weir_clock_open(WEIR_CLOCK_AUTO, &clock) == 0,
	    "there is always some clock");
	if (clock == NULL)
		return;
	expect(weir_clock_get_source(clock) ==
		(tsc ? WEIR_CLOCK_TSC : WEIR_CLOCK_MONOTONIC),
	    "the counter where there is one");
	weir_clock_close(clock);
}

int
main(void)
{
	struct weir_clock *clock = NULL;

	expect(weir_clock_open((enum weir_clock_source)77, &clock) == -EINVAL,
	    "an unknown source is EINVAL");
	expect(clock == NULL, "a refusal leaves the pointer alone");
	weir_clock_close(NULL);
	test_monotonic();
	test_auto(test_tsc());
	return faults != 0;
}
