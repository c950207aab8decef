/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clock to read now_ns from, once per packet burst. Using it is optional.
 */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <weir/base.h>

WEIR_BEGIN_DECLS

enum weir_clock_source {
	WEIR_CLOCK_AUTO = 0,  /* the TSC where it is invariant, else the next */
	WEIR_CLOCK_TSC,       /* the processor's time stamp counter */
	WEIR_CLOCK_MONOTONIC, /* clock_gettime(CLOCK_MONOTONIC) */
};

/*
 * Open a clock. The TSC is calibrated against CLOCK_MONOTONIC, which takes
 * some 20 ms, and starts at its value; from then on it is a multiplication
 * away from a register and follows no later adjustment.
 *
 * => 0 and *clock, -ENOTSUP (WEIR_CLOCK_TSC asked for, but the processor's
 *    counter is missing or not invariant), -EINVAL or -ENOMEM.
 * => Any thread.
 */
WEIR_API int
weir_clock_open(enum weir_clock_source source, struct weir_clock **clock);

/* Close a clock. NULL is ignored. */
WEIR_API void
weir_clock_close(struct weir_clock *clock);

/* Nanoseconds, never backward on one thread. => Any thread. */
WEIR_API uint64_t
weir_clock_now_ns(const struct weir_clock *clock);

/* What the clock reads from: _TSC or _MONOTONIC. => Any thread. */
WEIR_API enum weir_clock_source
weir_clock_get_source(const struct weir_clock *clock);

WEIR_END_DECLS

#endif
