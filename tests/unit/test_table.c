/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table by itself, with hashes chosen by the test: equal ones, homes at
 * the end of the array, windows that are full, slots that others have claimed.
 */
#include <stdlib.h>
#include <string.h>

#include "../support.h"
#include "table.h"

#define TAG(n) ((uint64_t)(n) << 48)

/* Ages instead of buckets: an entry is idle if its value is below `now`. */
struct ages {
	uint64_t now;
	uint32_t limit; /* what idle() was told last */
	uint32_t era;
};

/* Small entries, wide ones, and those of long keys. */
#define FOR_EACH_LAYOUT(words) \
	for (unsigned words = KEY_WORDS_SMALL; words <= KEY_WORDS_MAX; \
	     words += words == KEY_WORDS_SMALL ? 2 : 1)

static struct table table;
static void *memory;
static struct ages ages;
static uint64_t claims;

static bool
is_old(void *context, uint32_t limit, const struct cell *cell)
{
	struct ages *a = context;

	a->limit = limit;
	a->era = cell->era[0];
	return cell->word[0] < a->now;
}

static void
open_table(uint64_t slots, unsigned key_words)
{
	size_t bytes = table_bytes(slots, table_entry_bytes(key_words));

	memory = aligned_alloc(LINE_BYTES, bytes);
	ck_assert_ptr_nonnull(memory);
	memset(memory, 0, bytes);
	table_init(&table, memory, slots, key_words);
	ages = (struct ages){ 0 };
}

static void
close_table(void)
{
	free(memory);
	memory = NULL;
}

/* Key number n under a limit; its hash is the test's choice. */
static struct probe
probe_of(uint64_t hash, uint32_t limit, uint64_t n)
{
	struct probe p = {
		.hash = hash,
		.identity = probe_identity(hash, limit),
		.word = { n },
	};

	if (table.key_words > KEY_WORDS_SMALL)
		p.word[table.key_words - 1] = n * 3;
	return p;
}

static enum insert_result
insert_cell(const struct probe *p, uint64_t value, uint32_t era,
    bool impatient)
{
	const struct cell cell = { .word = { value }, .era = { era } };

	return table_insert(&table, p, &cell, claims++, impatient, is_old,
	    &ages);
}

static enum insert_result
insert(const struct probe *p, uint64_t value)
{
	return insert_cell(p, value, 7, false);
}

static bool
find(const struct probe *p, struct view *view)
{
	if (!table_find(&table, p, 0, view))
		return false;
	if (table_is_wide(&table))
		table_look_wide(view);
	return true;
}

static uint64_t
found_value(const struct probe *p)
{
	struct view view;

	ck_assert(find(p, &view));
	return state_value(view.state);
}

static struct entry *
slot(uint64_t hash, unsigned i)
{
	return line_entry(table_line(&table, hash & table.line_mask,
	    i / table.line_slots), i % table.line_slots * table.entry_bytes);
}

static enum state_kind
kind(const struct entry *e)
{
	return (enum state_kind)(atomic_load(&e->state) & STATE_KIND_MASK);
}

static unsigned
count_kind(enum state_kind wanted)
{
	unsigned count = 0;
	uint64_t slots = (table.line_mask + 1) * table.line_slots;

	for (uint64_t i = 0; i < slots; i++)
		count += kind(line_entry(memory,
		    (unsigned)i * table.entry_bytes)) == wanted;
	return count;
}

START_TEST(sizes)
{
	const struct {
		uint64_t capacity, slots;
	} row[] = {
		{ 1, 64 }, { 16, 64 }, { 17, 128 }, { 32, 128 }, { 33, 256 },
		{ 1000000, 1 << 22 }, { 1 << 20, 1 << 22 },
		{ (1 << 20) + 1, 1 << 23 }, { 1ull << 32, 1ull << 34 },
	};

	for (size_t i = 0; i < NELEM(row); i++)
		ck_assert_uint_eq(table_slots_for(row[i].capacity),
		    row[i].slots);
	ck_assert_uint_eq(table_entry_bytes(KEY_WORDS_SMALL), 32);
	ck_assert_uint_eq(table_entry_bytes(KEY_WORDS_MAX), 64);
	ck_assert_uint_eq(table_bytes(1 << 26, 64), 1ull << 32);
	ck_assert_uint_eq(table_bytes(1ull << 33, 64), 1ull << 39);
	ck_assert_uint_eq(table_bytes(1ull << 58, 64), 0);
	ck_assert_uint_eq(table_bytes(1ull << 59, 32), 0);
}
END_TEST

/* B074: places beyond 4 GB. No such table is needed to ask for the place. */
START_TEST(far_lines)
{
	const uintptr_t base = (uintptr_t)1 << 44;
	struct table far = { .line_mask = (1ull << 33) - 1 };

	far.base = (unsigned char *)base;
	ck_assert_uint_eq((uintptr_t)table_home(&far, 67108864) - base,
	    4294967296);
	ck_assert_uint_eq((uintptr_t)table_line(&far, 67108864, 0) - base,
	    4294967296);
	ck_assert_uint_eq((uintptr_t)table_line(&far, (1ull << 33) - 2, 1) -
	    base, 549755813888 - 64);
	/* the tag is no part of the place */
	ck_assert_uint_eq((uintptr_t)table_home(&far, TAG(0xffff) + 5) - base,
	    5 * 64);
}
END_TEST

/* Each window: its home first, no line twice, none outside the array. */
START_TEST(windows)
{
	FOR_EACH_LAYOUT(words) {
		open_table(256, words);
		for (uint64_t home = 0; home <= table.line_mask; home++) {
			bool seen[256] = { false };

			ck_assert_ptr_eq(table_line(&table, home, 0),
			    table_home(&table, TAG(0xabcd) + home));
			for (unsigned i = 0; i < table.window_lines; i++) {
				size_t at = (size_t)((unsigned char *)
				    table_line(&table, home, i) -
				    (unsigned char *)memory);

				expect(at % LINE_BYTES == 0);
				expect(at / LINE_BYTES <= table.line_mask);
				expect(!seen[at / LINE_BYTES]);
				seen[at / LINE_BYTES] = true;
			}
			ck_assert_uint_eq(table.window_lines *
			    table.line_slots, WINDOW_SLOTS);
		}
		close_table();
	}
}
END_TEST

/* Everything an entry holds, at its ends. */
START_TEST(contents)
{
	const uint64_t values[] = { 0, 1, (1ull << 58) - 1, 1ull << 57 };
	const uint32_t limits[] = { 0, 1, 0x8000, 65534 };
	const uint32_t eras[] = { 0, 1, 0x80000000, UINT32_MAX };
	const uint64_t tags[] = { 0, 1, 0x8000, 0xffff };

	FOR_EACH_LAYOUT(words)
		for (unsigned i = 0; i < 256; i++) {
			uint64_t value = values[i & 3];
			uint32_t limit = limits[i >> 2 & 3];
			uint32_t era = eras[i >> 4 & 3];
			struct probe p;
			struct view view;

			open_table(64, words);
			p = probe_of(TAG(tags[i >> 6]) + 3, limit, i);
			ck_assert(!find(&p, &view));
			ck_assert_ptr_null(view.entry);
			ck_assert_int_eq(insert_cell(&p, value, era, false),
			    INSERT_DONE);
			ck_assert(find(&p, &view));
			ck_assert_uint_eq(state_value(view.state), value);
			ck_assert_uint_eq(ctl_limit(view.ctl), limit);
			ck_assert_uint_eq(ctl_era(view.ctl), era);
			ck_assert(table_replace(&view, values[3]));
			ck_assert_uint_eq(found_value(&p), values[3]);
			close_table();
		}
}
END_TEST

/* B069: keys are compared, not only their hashes. */
START_TEST(equal_hashes)
{
	FOR_EACH_LAYOUT(words) {
		const uint64_t hash = TAG(0x1234) + 9;
		struct probe p;
		struct view view;

		open_table(256, words);
		for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
			p = probe_of(hash, 1, n);
			ck_assert(!find(&p, &view));
			ck_assert_int_eq(insert(&p, 1000 + n), INSERT_DONE);
		}
		for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
			p = probe_of(hash, 1, n);
			ck_assert_uint_eq(found_value(&p), 1000 + n);
		}
		/* the window is full, though the table is not */
		p = probe_of(hash, 1, WINDOW_SLOTS);
		ck_assert(!find(&p, &view));
		ck_assert_int_eq(insert(&p, 1), INSERT_FULL);
		ck_assert_uint_eq(count_kind(STATE_LIVE), WINDOW_SLOTS);
		/* delete one; the others stay, and it starts anew */
		p = probe_of(hash, 1, 0);
		ck_assert(find(&p, &view));
		ck_assert(table_retire(&table, &view));
		ck_assert(!find(&p, &view));
		p = probe_of(hash, 1, 1);
		ck_assert_uint_eq(found_value(&p), 1001);
		p = probe_of(hash, 1, 0);
		ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
		ck_assert_uint_eq(found_value(&p), 5);
		close_table();
	}
}
END_TEST

/* Keys that differ in one bit of one word, and in nothing else. */
START_TEST(each_word_counts)
{
	FOR_EACH_LAYOUT(words) {
		struct probe p = { .hash = 5, .identity = 6 };
		struct view view;

		open_table(64, words);
		ck_assert_int_eq(insert(&p, 1), INSERT_DONE);
		for (unsigned bit = 0; bit < 64 * words; bit += 13) {
			p.word[bit / 64] ^= 1ull << (bit % 64);
			ck_assert(!find(&p, &view));
			ck_assert_int_eq(insert(&p, 2 + bit), INSERT_DONE);
			ck_assert_uint_eq(found_value(&p), 2 + bit);
			p.word[bit / 64] ^= 1ull << (bit % 64);
			ck_assert_uint_eq(found_value(&p), 1);
		}
		close_table();
	}
}
END_TEST

/* One key under many limits: the identity tells them apart. */
START_TEST(equal_keys)
{
	struct probe p;

	open_table(64, KEY_WORDS_SMALL);
	for (uint32_t limit = 0; limit < 32; limit++) {
		p = probe_of(5, limit, 77);
		ck_assert_int_eq(insert(&p, limit), INSERT_DONE);
	}
	for (uint32_t limit = 0; limit < 32; limit++) {
		p = probe_of(5, limit, 77);
		ck_assert_uint_eq(found_value(&p), limit);
	}
	close_table();
}
END_TEST

/* From every home, past the end of the array and on at its start. */
START_TEST(around_the_end)
{
	FOR_EACH_LAYOUT(words) {
		struct probe p;
		struct view view;

		open_table(128, words);
		for (uint64_t home = table.line_mask; home + 8 >
		     table.line_mask; home--) {
			for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
				p = probe_of(home, 0, n);
				ck_assert_int_eq(insert(&p, n), INSERT_DONE);
				ck_assert(find(&p, &view));
				ck_assert_ptr_eq(view.entry,
				    slot(home, (unsigned)n));
			}
			for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
				p = probe_of(home, 0, n);
				ck_assert(find(&p, &view));
				ck_assert(table_retire(&table, &view));
			}
		}
		ck_assert_uint_eq(count_kind(STATE_LIVE), 0);
		close_table();
	}
}
END_TEST

/* Only the idle make room, and who saw them before cannot take any more. */
START_TEST(reuse_of_idle_entries)
{
	const uint64_t hash = TAG(3) + 2;
	struct view before[WINDOW_SLOTS], view;
	struct probe p;

	open_table(128, KEY_WORDS_SMALL);
	for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
		p = probe_of(hash, 6, n);
		ck_assert_int_eq(insert(&p, n), INSERT_DONE);
		ck_assert(find(&p, &before[n]));
	}
	ages.now = 10; /* the first ten are old */
	for (uint64_t n = 0; n < 10; n++) {
		p = probe_of(hash, 6, 100 + n);
		/* with the very value of the one it replaces */
		ck_assert_int_eq(insert(&p, 50), INSERT_DONE);
		ck_assert_uint_eq(ages.limit, 6);
		ck_assert_uint_eq(ages.era, 7);
	}
	p = probe_of(hash, 6, 200);
	ck_assert_int_eq(insert(&p, 50), INSERT_FULL);
	for (uint64_t n = 0; n < WINDOW_SLOTS; n++) {
		p = probe_of(hash, 6, n);
		ck_assert(find(&p, &view) == (n >= 10));
		ck_assert(table_unchanged(&before[n]) == (n >= 10));
		ck_assert(table_replace(&before[n], 99) == (n >= 10));
	}
	for (uint64_t n = 0; n < 10; n++) {
		p = probe_of(hash, 6, 100 + n);
		ck_assert_uint_eq(found_value(&p), 50);
	}
	close_table();
}
END_TEST

/*
 * A slot that comes back to the same key and value looks the same but for its
 * generation: a view from before must not match.
 */
START_TEST(generation_tells_owners_apart)
{
	struct view first, last;
	struct probe p;

	open_table(64, KEY_WORDS_SMALL);
	p = probe_of(0, 0, 1);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert(find(&p, &first));
	for (int owners = 1; owners < 8; owners++) {
		ck_assert(find(&p, &last));
		ck_assert(table_retire(&table, &last));
		ck_assert(!table_retire(&table, &last));
		ck_assert(!table_replace(&last, 5));
		ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
		ck_assert(find(&p, &last));
		ck_assert_ptr_eq(first.entry, last.entry);
		ck_assert_uint_eq(state_value(last.state), 5);
		ck_assert(!table_unchanged(&first));
		ck_assert(!table_replace(&first, 6));
		ck_assert(!table_retire(&table, &first));
	}
	close_table();
}
END_TEST

/* Of two who saw the same word one gets it. */
START_TEST(one_taker)
{
	struct view one, two;
	struct probe p;

	open_table(64, KEY_WORDS_SMALL);
	p = probe_of(0, 0, 1);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert(find(&p, &one));
	ck_assert(find(&p, &two));
	ck_assert(table_replace(&one, 6));
	ck_assert(!table_replace(&two, 7));
	ck_assert(!table_unchanged(&two));
	ck_assert_uint_eq(found_value(&p), 6);
	close_table();
}
END_TEST

START_TEST(era_moves_on)
{
	struct view one, two;
	struct probe p;

	open_table(64, KEY_WORDS_SMALL);
	p = probe_of(TAG(0xbeef), 3, 1);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert(find(&p, &one));
	ck_assert(find(&p, &two));
	ck_assert(table_refresh_era(&table, &one, 0, 8));
	ck_assert_uint_eq(ctl_era(one.ctl), 8);
	/* it has moved already */
	ck_assert(!table_refresh_era(&table, &two, 0, 8));
	ck_assert(find(&p, &two));
	ck_assert_uint_eq(ctl_era(two.ctl), 8);
	ck_assert_uint_eq(ctl_limit(two.ctl), 3);
	ck_assert(table_replace(&one, 6)); /* the value was not touched */
	close_table();
}
END_TEST

/*
 * A key that is there already, behind a slot that has come free: the insert
 * sees it and gives its own slot back.
 */
START_TEST(no_second_entry)
{
	const uint64_t hash = TAG(3) + 1;
	struct probe a, b;
	struct view view;

	open_table(64, KEY_WORDS_SMALL);
	a = probe_of(hash, 0, 1);
	b = probe_of(hash, 0, 2);
	ck_assert_int_eq(insert(&a, 5), INSERT_DONE);
	ck_assert_int_eq(insert(&b, 6), INSERT_DONE);
	ck_assert(find(&a, &view));
	ck_assert(table_retire(&table, &view));
	ck_assert_int_eq(insert(&b, 7), INSERT_AGAIN);
	ck_assert_uint_eq(count_kind(STATE_LIVE), 1);
	ck_assert_uint_eq(count_kind(STATE_CLAIMED), 0);
	ck_assert_uint_eq(found_value(&b), 6);
	/* what the attempt left behind is nobody's entry */
	ck_assert(!find(&a, &view));
	ck_assert_int_eq(insert(&a, 8), INSERT_DONE);
	ck_assert_uint_eq(found_value(&a), 8);
	close_table();
}
END_TEST

/* Make slot i of the window look as if another thread were inserting there. */
static uint64_t
claim_by_hand(const struct probe *p, unsigned i)
{
	struct entry *e = slot(p->hash, i);
	uint64_t state = ++claims << STATE_CLAIM_SHIFT | STATE_CLAIMED;

	atomic_store(&e->state, state);
	atomic_store(entry_ctl(e, table.key_words), p->identity);
	return state;
}

/* A rival in an earlier slot: give way, as long as one is patient. */
START_TEST(rival_before_me)
{
	struct probe p, rival;
	uint64_t state;
	struct view view;

	open_table(64, KEY_WORDS_SMALL);
	rival = probe_of(0, 0, 1);
	p = probe_of(0, 0, 2);
	state = claim_by_hand(&rival, 0);
	ck_assert_int_eq(insert(&p, 5), INSERT_AGAIN);
	ck_assert_int_eq(kind(slot(0, 1)), STATE_FREE);
	ck_assert_uint_eq(atomic_load(&slot(0, 0)->state), state);
	ck_assert(!find(&p, &view));
	/* impatient */
	ck_assert_int_eq(insert_cell(&p, 5, 7, true), INSERT_DONE);
	ck_assert_uint_eq(atomic_load(&slot(0, 0)->state),
	    state | STATE_KILLED);
	ck_assert_uint_eq(found_value(&p), 5);
	close_table();
}
END_TEST

START_TEST(rival_behind_me)
{
	struct probe p, rival;
	uint64_t state;

	open_table(64, KEY_WORDS_SMALL);
	rival = probe_of(0, 0, 1);
	p = probe_of(0, 0, 2);
	state = claim_by_hand(&rival, 5);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert_ptr_eq(slot(0, 0), slot(p.hash, 0));
	ck_assert_int_eq(kind(slot(0, 0)), STATE_LIVE);
	ck_assert_uint_eq(atomic_load(&slot(0, 5)->state),
	    state | STATE_KILLED);
	close_table();
}
END_TEST

/* The killed, and those after some other key, are no rivals. */
START_TEST(no_rivals)
{
	struct probe p, other_tag, other_limit, same;
	uint64_t state[3];

	open_table(64, KEY_WORDS_SMALL);
	p = probe_of(TAG(1), 0, 2);
	same = probe_of(TAG(1), 0, 3);
	other_tag = probe_of(TAG(2), 0, 2);
	other_limit = probe_of(TAG(1), 1, 2);
	state[0] = claim_by_hand(&same, 0) | STATE_KILLED;
	atomic_store(&slot(0, 0)->state, state[0]);
	state[1] = claim_by_hand(&other_tag, 1);
	state[2] = claim_by_hand(&other_limit, 2);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert_int_eq(kind(slot(0, 3)), STATE_LIVE);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(atomic_load(&slot(0, i)->state), state[i]);
	close_table();
}
END_TEST

/* Claims that nobody finishes cost their slots and nothing else. */
START_TEST(dead_claims)
{
	struct probe p, dead;
	struct view view;

	open_table(64, KEY_WORDS_SMALL);
	for (unsigned i = 0; i < WINDOW_SLOTS - 1; i++) {
		dead = probe_of(TAG(i + 2), 0, i);
		claim_by_hand(&dead, i);
	}
	p = probe_of(TAG(1), 0, 7);
	ck_assert_int_eq(insert(&p, 5), INSERT_DONE);
	ck_assert_uint_eq(found_value(&p), 5);
	p = probe_of(TAG(1), 0, 8);
	ages.now = 5; /* 5 itself is not old */
	ck_assert_int_eq(insert(&p, 5), INSERT_FULL);
	ages.now = 6;
	ck_assert_int_eq(insert(&p, 6), INSERT_DONE);
	p = probe_of(TAG(1), 0, 7);
	ck_assert(!find(&p, &view));
	ck_assert_uint_eq(count_kind(STATE_CLAIMED), WINDOW_SLOTS - 1);
	close_table();
}
END_TEST

/* An all-zero key in zeroed memory: not there until it was put there. */
START_TEST(all_zeros)
{
	struct probe p = { 0 };
	struct view view;

	FOR_EACH_LAYOUT(words) {
		open_table(64, words);
		ck_assert(!find(&p, &view));
		ck_assert_int_eq(insert_cell(&p, 0, 0, false), INSERT_DONE);
		ck_assert(find(&p, &view));
		ck_assert(table_retire(&table, &view));
		ck_assert(!find(&p, &view));
		close_table();
	}
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("table");
	TCase *shape = tcase_create("shape");
	TCase *entry = tcase_create("entry");
	TCase *rival = tcase_create("rival");

	tcase_add_test(shape, sizes);
	tcase_add_test(shape, far_lines);
	tcase_add_test(shape, windows);
	tcase_add_test(shape, around_the_end);
	suite_add_tcase(s, shape);

	tcase_add_test(entry, contents);
	tcase_add_test(entry, equal_hashes);
	tcase_add_test(entry, each_word_counts);
	tcase_add_test(entry, equal_keys);
	tcase_add_test(entry, reuse_of_idle_entries);
	tcase_add_test(entry, generation_tells_owners_apart);
	tcase_add_test(entry, one_taker);
	tcase_add_test(entry, era_moves_on);
	tcase_add_test(entry, all_zeros);
	suite_add_tcase(s, entry);

	tcase_add_test(rival, no_second_entry);
	tcase_add_test(rival, rival_before_me);
	tcase_add_test(rival, rival_behind_me);
	tcase_add_test(rival, no_rivals);
	tcase_add_test(rival, dead_claims);
	suite_add_tcase(s, rival);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
