/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash: XXH3 with a secret 64-bit seed. Keys come as zero-padded words, so
 * the length is a constant and padding can never matter. The bits are used
 * thus: the low ones choose the home line, the top 16 are the tag.
 */
#ifndef WEIR_HASH_H
#define WEIR_HASH_H

#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * => count is a constant where it matters: then only the few instructions for
 *    that length remain. The public XXH3_64bits_withSeed() is the same call,
 *    but compilers leave it out of line, length dispatch and all.
 */
static inline __attribute__((always_inline)) uint64_t
hash_words(const uint64_t *words, unsigned count, uint64_t seed)
{
	return XXH3_64bits_internal(words, count * sizeof(*words), seed,
	    XXH3_kSecret, sizeof(XXH3_kSecret), XXH3_hashLong_64b_withSeed);
}

/* The same where count is not a constant: 2, 4 or 5. */
static inline uint64_t
hash_some_words(const uint64_t *words, unsigned count, uint64_t seed)
{
	switch (count) {
	case 2:
		return hash_words(words, 2, seed);
	case 4:
		return hash_words(words, 4, seed);
	default:
		return hash_words(words, 5, seed);
	}
}

/* Another seed for each limit, so that its keys have homes of their own. */
static inline uint64_t
hash_seed_of(uint64_t engine_seed, uint32_t limit)
{
	uint64_t word = limit;

	return hash_words(&word, 1, engine_seed);
}

#endif
