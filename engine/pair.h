/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two words that lie side by side, replaced at once.
 *
 * C11 has this as an atomic struct, which compilers make a call into a library.
 * On x86-64 it is one instruction, written out here.
 */
#ifndef WEIR_PAIR_H
#define WEIR_PAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pair {
	uint64_t first;
	uint64_t second;
};

/*
 * Replace both words if both are as expected. => at is aligned to 16 bytes.
 * Ordered like a seq_cst compare-and-exchange.
 */
static inline bool
pair_replace(_Atomic uint64_t *at, struct pair expected, struct pair desired)
{
#ifdef __x86_64__
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
	    : "=@ccz"(done), "+m"(*(struct pair *)(void *)at),
	    "+a"(expected.first), "+d"(expected.second)
	    : "b"(desired.first), "c"(desired.second)
	    : "memory");
	return done;
#else
	return atomic_compare_exchange_strong((_Atomic struct pair *)(void *)at,
	    &expected, desired);
#endif
}

#endif
