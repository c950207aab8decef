/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * At most one live entry for a key, on the bare table, with every key's hash
 * the same: equal home, equal tag, so that inserters of different keys take
 * each other for rivals and kill, give way and retry all the time.
 *
 * A value is the number of the round it was written in, and an entry of an
 * earlier round is idle: slots change hands in every round.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "table.h"

enum {
	ROUNDS = 4000,
	KEYS = 5,
	PATIENCE = 4,
};

static const unsigned sizes[] = { 2, 3, 8 };

struct race {
	struct table table;
	uint64_t rounds, hash;
	bool retire; /* the same keys in each round, freed before use; else
	                new keys that reuse the slots of the old */
	/* counts of a round's spendings: what a value stands for */
	uint64_t spent[CREW_MAX][KEYS];
};

static bool
is_old(void *context, uint32_t limit, const struct cell *cell)
{
	const uint64_t *round = context;

	(void)limit;
	return cell->word[0] >> 8 < *round;
}

/* The bytes of key k; its number can be had back. */
static uint64_t
key_of(const struct race *race, uint64_t round, uint64_t k)
{
	return (race->retire ? 0 : round << 8) | k;
}

static struct probe
probe_of(const struct race *race, uint64_t key)
{
	return (struct probe){
		.hash = race->hash,
		.identity = probe_identity(race->hash, 1),
		.word = { key, ~key },
	};
}

static uint64_t
claim_of(struct member *m)
{
	/* passed serves as a count here */
	return (uint64_t)m->index << 32 | m->passed++;
}

/*
 * Add one to the key's value of this round, making the entry if there is
 * none: the sum over all threads is then known.
 */
static void
add_one(struct member *m, struct race *race, uint64_t round, uint64_t k)
{
	const struct cell fresh = { .word = { round << 8 | 1 } };
	struct probe p = probe_of(race, key_of(race, round, k));
	uint64_t value;
	struct view view;

	for (unsigned tries = 0; tries < 1000000; tries++) {
		if (!table_find(&race->table, &p, 0, &view)) {
			if (table_insert(&race->table, &p, &fresh,
			    claim_of(m), tries >= PATIENCE, is_old,
			    &round) == INSERT_DONE)
				return;
			continue;
		}
		value = state_value(view.state);
		if (value >> 8 < round)
			table_retire(&race->table, &view);
		else if (table_replace(&view, value + 1))
			return;
	}
	m->trouble = "an insert that never ends";
}

/* After a round, by one thread: one entry a key, nothing left claimed. */
static void
judge(struct member *m, const struct race *race, uint64_t round)
{
	unsigned live[KEYS] = { 0 };
	uint64_t sum[KEYS] = { 0 };

	for (unsigned i = 0; i < WINDOW_SLOTS; i++) {
		struct entry *e = line_entry(race->table.base, i *
		    race->table.entry_bytes);
		uint64_t state = atomic_load(&e->state);
		_Atomic uint64_t *word = entry_key(e, race->table.key_words);
		uint64_t key = atomic_load(&word[0]);

		if ((state & STATE_KIND_MASK) == STATE_CLAIMED)
			m->trouble = "a claim was left behind";
		if ((state & STATE_KIND_MASK) != STATE_LIVE)
			continue;
		if ((key & 0xff) >= KEYS || atomic_load(&word[1]) != ~key) {
			m->trouble = "a key that nobody wrote";
			continue;
		}
		if (state_value(state) >> 8 > round)
			m->trouble = "an entry from the future";
		if (key != key_of(race, round, key & 0xff))
			continue; /* of an old round */
		live[key & 0xff]++;
		sum[key & 0xff] += state_value(state) & 0xff;
		if (state_value(state) >> 8 != round)
			m->trouble = "a value of an old round";
	}
	for (unsigned k = 0; k < KEYS; k++) {
		uint64_t spent = 0;

		for (unsigned i = 0; i < m->crew->size; i++)
			spent += race->spent[i][k];
		if (live[k] > 1)
			m->trouble = "two live entries of one key";
		else if (live[k] == 0 && spent > 0)
			m->trouble = "an entry was lost";
		else if (live[k] == 1 && sum[k] != spent)
			m->trouble = "an addition was lost or done twice";
	}
}

static void
race_job(struct member *m)
{
	struct race *race = m->crew->shared;
	uint64_t *spent = race->spent[m->index];

	for (uint64_t round = 1; round <= race->rounds; round++) {
		memset(spent, 0, sizeof(race->spent[0]));
		crew_meet(m);
		/* All keys once, from another one on, and some again. */
		for (unsigned n = 0, k = (unsigned)rng_below(&m->rng, KEYS);
		     n < KEYS + 3; n++, k = (k + 1) % KEYS) {
			add_one(m, race, round, k);
			spent[k]++;
		}
		crew_meet(m);
		if (m->index == 0)
			judge(m, race, round);
		crew_meet(m);
	}
}

static void
race_on(unsigned key_words, bool retire)
{
	uint64_t seed = test_seed("table race");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		static struct race race;
		struct weir_engine_params params = rig_params(1, 8);
		size_t bytes = WINDOW_SLOTS * table_entry_bytes(key_words);
		void *memory = aligned_alloc(LINE_BYTES, bytes);
		struct crew crew;
		struct rig rig;

		ck_assert_ptr_nonnull(memory);
		memset(memory, 0, bytes);
		memset(&race, 0, sizeof(race));
		table_init(&race.table, memory, WINDOW_SLOTS, key_words);
		race.rounds = test_scale(ROUNDS);
		race.retire = retire;
		/* a home near the end of the array, whose window wraps */
		race.hash = 0xabcdull << 48 | (race.table.line_mask - 3);
		rig_open(&rig, &params); /* for the crew to attach to */
		crew_run(&crew, rig.engine, sizes[s], seed, race_job, &race);
		rig_close(&rig);
		free(memory);
	}
}

START_TEST(small_entries)
{
	race_on(KEY_WORDS_SMALL, false);
}
END_TEST

START_TEST(large_entries)
{
	race_on(KEY_WORDS_MAX, false);
}
END_TEST

START_TEST(retired_entries)
{
	race_on(KEY_WORDS_SMALL, true);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("table race");
	TCase *tc = tcase_create("equal hashes");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, small_entries);
	tcase_add_test(tc, large_entries);
	tcase_add_test(tc, retired_entries);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
