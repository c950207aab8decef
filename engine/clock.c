/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks. The TSC costs some 10 ns less than clock_gettime(); more to the
 * point, it is what packet loops read anyway.
 */
#include <weir/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "ratio.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define CALIBRATION_NS 20000000u

struct weir_clock {
	enum weir_clock_source source;
	struct ratio ns_per_tick;
	uint64_t base_ticks;
	uint64_t base_ns;
};

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#if defined(__x86_64__)

/* Invariant: one rate whatever the power state, and it does not stop. */
static bool
tsc_usable(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

static uint64_t
tsc(void)
{
	return __rdtsc();
}

#else

static bool
tsc_usable(void)
{
	return false;
}

static uint64_t
tsc(void)
{
	return 0;
}

#endif

/* The two clocks at one moment. */
struct sample {
	uint64_t ticks;
	uint64_t ns;
	uint64_t doubt; /* ticks between which the ns were read */
};

static struct sample
sample_once(void)
{
	struct sample s;
	uint64_t before = tsc();

	s.ns = monotonic_ns();
	s.doubt = tsc() - before;
	s.ticks = before + s.doubt / 2;
	return s;
}

/* Of several tries the one that was interrupted least. */
static struct sample
sample_best(void)
{
	struct sample best = sample_once();

	for (int i = 0; i < 15; i++) {
		struct sample s = sample_once();

		if (s.doubt < best.doubt)
			best = s;
	}
	return best;
}

static bool
calibrate(struct weir_clock *clock)
{
	struct timespec wait = {.tv_nsec = CALIBRATION_NS};
	struct sample start = sample_best(), end;

	while (nanosleep(&wait, &wait) && errno == EINTR)
		;
	end = sample_best();
	if (end.ticks <= start.ticks || end.ns <= start.ns)
		return false;
	clock->base_ticks = start.ticks;
	clock->base_ns = start.ns;
	clock->ns_per_tick = ratio_make(end.ns - start.ns,
	    end.ticks - start.ticks);
	return true;
}

int
weir_clock_open(enum weir_clock_source source, struct weir_clock **clock)
{
	struct weir_clock *c;

	if ((unsigned)source > WEIR_CLOCK_MONOTONIC)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->source = WEIR_CLOCK_MONOTONIC;
	if (source != WEIR_CLOCK_MONOTONIC && tsc_usable() && calibrate(c))
		c->source = WEIR_CLOCK_TSC;
	if (source == WEIR_CLOCK_TSC && c->source != WEIR_CLOCK_TSC) {
		free(c);
		return -ENOTSUP;
	}
	*clock = c;
	return 0;
}

void
weir_clock_close(struct weir_clock *clock)
{
	free(clock);
}

uint64_t
weir_clock_now_ns(const struct weir_clock *clock)
{
	uint64_t ticks;

	if (clock->source == WEIR_CLOCK_MONOTONIC)
		return monotonic_ns();
	/* Another core's counter may lag the one that calibrated. */
	ticks = tsc();
	if (ticks < clock->base_ticks)
		ticks = clock->base_ticks;
	return clock->base_ns + (uint64_t)ratio_apply(clock->ns_per_tick,
	    ticks - clock->base_ticks);
}

enum weir_clock_source
weir_clock_get_source(const struct weir_clock *clock)
{
	return clock->source;
}
