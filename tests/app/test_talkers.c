/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sketch of the most denied keys against plain counting: exact while all
 * keys fit, and within its own stated error beyond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_memory.h>

#include "../../dpdk_app/talkers.h"
#include "support.h"

#define KEYS_MAX 40000u
#define SKETCHES 3

/* What really was: how often each key, by number, was denied. */
static uint64_t truth[KEYS_MAX];
static struct talker top[SKETCHES * TALKERS_TRACKED];
static struct talkers *sketches[SKETCHES];

/* The number is spread over the key, so that order and hash are not its. */
static void
key_of(uint32_t number, uint8_t key[PKT_KEY_SIZE])
{
	memset(key, 0, PKT_KEY_SIZE);
	memcpy(key + 3, &number, sizeof(number));
	key[15] = (uint8_t)(number * 37);
}

static uint32_t
number_of(const uint8_t key[PKT_KEY_SIZE])
{
	uint32_t number;

	memcpy(&number, key + 3, sizeof(number));
	return number;
}

static void
setup(void)
{
	memset(truth, 0, sizeof(truth));
	for (unsigned int i = 0; i < SKETCHES; i++) {
		sketches[i] = talkers_create(i, SOCKET_ID_ANY);
		ck_assert_ptr_nonnull(sketches[i]);
	}
}

static void
teardown(void)
{
	for (unsigned int i = 0; i < SKETCHES; i++)
		talkers_destroy(sketches[i]);
	talkers_destroy(NULL);
}

static void
deny(unsigned int sketch, uint32_t number)
{
	uint8_t key[PKT_KEY_SIZE];

	key_of(number, key);
	talkers_add(sketches[sketch], key);
	truth[number]++;
}

/* Deny n times one of `keys` keys: half the time one of the first few. */
static void
deny_at_random(struct rng *rng, uint64_t n, uint32_t keys, unsigned int spread)
{
	for (uint64_t i = 0; i < n; i++) {
		uint32_t among = rng_below(rng, 2) ? keys : 40;

		deny((unsigned int)rng_below(rng, spread),
		    (uint32_t)rng_below(rng, among < keys ? among : keys));
	}
}

static size_t
read_top(size_t max)
{
	size_t found = 12345;

	ck_assert_int_eq(talkers_top(sketches, SKETCHES, top, max, &found), 0);
	ck_assert_uint_le(found, max);
	for (size_t i = 1; i < found; i++) {
		int order = memcmp(top[i - 1].key, top[i].key, PKT_KEY_SIZE);

		ck_assert(top[i - 1].count > top[i].count ||
		    (top[i - 1].count == top[i].count && order < 0));
	}
	return found;
}

/* Every key must be there, with its very count. */
static void
expect_exact(uint32_t keys)
{
	size_t found = read_top(NELEM(top)), denied = 0;

	for (uint32_t k = 0; k < keys; k++)
		denied += truth[k] > 0;
	ck_assert_uint_eq(found, denied);
	for (size_t i = 0; i < found; i++) {
		ck_assert_uint_eq(top[i].count, truth[number_of(top[i].key)]);
		ck_assert_uint_eq(top[i].error, 0);
	}
}

/* Counts within their error, and nobody missing who is denied much. */
static void
expect_bounds(uint32_t keys, uint64_t total, unsigned int spread)
{
	static bool listed[KEYS_MAX];
	size_t found = read_top(NELEM(top));

	memset(listed, 0, sizeof(listed));
	for (size_t i = 0; i < found; i++) {
		uint32_t k = number_of(top[i].key);

		ck_assert_uint_lt(k, keys);
		ck_assert(!listed[k]);
		listed[k] = true;
		ck_assert_uint_le(truth[k], top[i].count);
		ck_assert_uint_le(top[i].error, top[i].count);
		ck_assert_uint_ge(truth[k], top[i].count - top[i].error);
		/* Each sketch errs by its share of all at most. */
		ck_assert_uint_le(top[i].error,
		    total / TALKERS_TRACKED + spread);
	}
	for (uint32_t k = 0; k < keys; k++)
		ck_assert(listed[k] || truth[k] <= total / TALKERS_TRACKED);
}

START_TEST(test_nothing_denied)
{
	ck_assert_uint_eq(read_top(10), 0);
}
END_TEST

START_TEST(test_exact_while_all_fit)
{
	struct rng rng;

	rng_init(&rng, test_seed("exact"));
	deny_at_random(&rng, test_scale(200000), TALKERS_TRACKED, 1);
	expect_exact(TALKERS_TRACKED);
}
END_TEST

START_TEST(test_exact_when_merged)
{
	struct rng rng;

	rng_init(&rng, test_seed("merged"));
	deny_at_random(&rng, test_scale(200000), TALKERS_TRACKED, SKETCHES);
	expect_exact(TALKERS_TRACKED);
}
END_TEST

START_TEST(test_bounds_beyond)
{
	uint64_t n = test_scale(400000);
	struct rng rng;

	rng_init(&rng, test_seed("beyond"));
	deny_at_random(&rng, n, KEYS_MAX, 1);
	expect_bounds(KEYS_MAX, n, 1);
}
END_TEST

START_TEST(test_bounds_merged)
{
	uint64_t n = test_scale(400000);
	struct rng rng;

	rng_init(&rng, test_seed("bounds merged"));
	deny_at_random(&rng, n, KEYS_MAX, SKETCHES);
	expect_bounds(KEYS_MAX, n, SKETCHES);
}
END_TEST

/* The worst case: every denial is a key that was just thrown out. */
START_TEST(test_round_robin)
{
	const uint32_t keys = TALKERS_TRACKED + 1;
	const uint64_t n = 20 * keys;

	for (uint64_t i = 0; i < n; i++)
		deny(0, (uint32_t)(i % keys));
	expect_bounds(keys, n, 1);
}
END_TEST

/* Ten of two hundred, in a fixed order. */
START_TEST(test_ties_go_by_key)
{
	for (uint32_t k = 0; k < 200; k++)
		deny(k % SKETCHES, 199 - k);
	ck_assert_uint_eq(read_top(10), 10);
	ck_assert_uint_eq(top[0].count, 1);
	ck_assert_uint_eq(number_of(top[0].key), 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("talkers");
	TCase *t = tcase_create("talkers");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_nothing_denied);
	tcase_add_test(t, test_exact_while_all_fit);
	tcase_add_test(t, test_exact_when_merged);
	tcase_add_test(t, test_bounds_beyond);
	tcase_add_test(t, test_bounds_merged);
	tcase_add_test(t, test_round_robin);
	tcase_add_test(t, test_ties_go_by_key);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	char *arguments[] = {
		(char[]){ "test_talkers" }, (char[]){ "--no-huge" },
		(char[]){ "-m" }, (char[]){ "64" }, (char[]){ "--no-pci" },
		(char[]){ "--no-shconf" }, (char[]){ "--no-telemetry" },
		(char[]){ "--log-level=warning" }, NULL,
	};

	/* check forks for each test: all inherit this, none starts threads. */
	if (rte_eal_init(NELEM(arguments) - 1, arguments) < 0) {
		fputs("EAL does not start\n", stderr);
		return EXIT_FAILURE;
	}
	return test_run(suite());
}
