/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table: open addressing, one cache line per decision, no locks.
 *
 * An entry is `state | ctl | key`, 32 bytes for keys up to 16 bytes and 64
 * beyond. Two small entries share a line. A key hashes to its home line and
 * lives there or within a bounded window after it, and never moves.
 *
 * A wide entry, for what does not fit one word, is
 * `state | second | ctl | ctl2 | key`, 64 bytes for keys up to 32. `second` is
 * of the owner's; it changes by a CAS on both words, and so does the owner
 * where it is wide. ctl2 is to `second` what ctl is to the value in state.
 *
 * STATE is the ownership word:
 *
 *	FREE     nobody's
 *	CLAIMED  one thread's, who is about to insert; carries a number that
 *	         no other claim ever has, and a bit by which others KILL it
 *	LIVE     an entry; carries the bucket's value
 *
 * and a generation of 3 bits that every new owner increments. Every change of
 * owner is a CAS on this word, and so is every take. A thread that decided on
 * a stale view therefore fails its CAS: slots are reused without a grace
 * period. (The generation covers the one case in which two owners of a slot
 * could hold equal values, namely claims at one frozen instant.)
 *
 * CTL names the entry: hash tag, limit, era of the value. It is written by the
 * claimer, and stays behind as a harmless leftover when the slot is freed.
 *
 * INSERT, so that at most one LIVE entry exists per (limit, key):
 *
 *	1 claim a FREE slot of the window, or a LIVE one that says nothing any
 *	  more (the caller's `idle` predicate): CAS state -> CLAIMED
 *	2 announce: store ctl, seq_cst
 *	3 scan the ctl of every other slot of the window, seq_cst; where it
 *	  names my limit and tag, look at the state:
 *	    LIVE     same key: give up my slot, look up again
 *	    CLAIMED  a rival: kill it, CAS state -> CLAIMED + KILLED; but if its
 *	             slot comes before mine, give way instead (until impatient)
 *	4 write the key; publish: CAS state CLAIMED -> LIVE with the value.
 *	  If that fails I was killed: free the slot, look up again
 *
 * Two inserters of one key each announce before they scan, so at least one
 * sees the other (store buffering is excluded by seq_cst), and then one of
 * them dies: a kill and a publication are CASes on the same word from the same
 * value. Who is killed still owns his slot and is the only one to free it, so
 * he may go on writing ctl and key without harm. Killing an inserter of some
 * other key with the same tag costs him a retry and nothing else.
 *
 * A stalled claimer blocks nobody: the impatient kill it whatever its place.
 * A dead one costs the slot it had claimed.
 *
 * This file and table.c need C11 and nothing else. Edge labels (T1...) are
 * those of docs/design.md, "Atomic edges".
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pair.h"

#define LINE_BYTES 64u
#define KEY_WORDS_MAX 5u    /* 40 bytes */
#define KEY_WORDS_WIDE 4u   /* 32 bytes, in a wide entry */
#define KEY_WORDS_SMALL 2u  /* 16 bytes */
#define WINDOW_SLOTS 64u    /* and the fewest slots a table has */

/* state: value(58) | generation(3) | kind(3) */
enum state_kind {
	STATE_FREE = 0,
	STATE_CLAIMED = 1,
	STATE_LIVE = 2,
};
#define STATE_KIND_MASK 7ull
#define STATE_GENERATION_SHIFT 3
#define STATE_GENERATION_MASK (7ull << STATE_GENERATION_SHIFT)
#define STATE_VALUE_SHIFT 6
#define STATE_KILLED (1ull << 6)    /* in a claim; the number stands above */
#define STATE_CLAIM_SHIFT 7

/* ctl: era(32) | identity(32); identity: tag(16) | limit(16) */
#define CTL_ERA_SHIFT 32
#define IDENTITY_TAG_MASK 0xffff0000u

struct entry {
	_Atomic uint64_t state;
	_Atomic uint64_t more[]; /* ctl, key; or second, ctl, ctl2, key */
};

struct table {
	unsigned char *base;
	uint64_t line_mask;    /* lines - 1 */
	unsigned key_words;    /* KEY_WORDS_SMALL, _MAX or _WIDE */
	unsigned entry_bytes;  /* 32 or 64 */
	unsigned line_slots;   /* 2 or 1 */
	unsigned window_lines;
};

/* What is looked for. */
struct probe {
	uint64_t hash;
	uint32_t identity; /* limit and tag, as in ctl */
	uint64_t word[KEY_WORDS_MAX]; /* the key, padded with zeros */
};

/*
 * An entry as it was seen; valid while the state word has not changed. Of a wide
 * one table_look_wide() fills in the rest, valid while `second` has not changed
 * either.
 */
struct view {
	struct entry *entry; /* NULL: not found */
	uint64_t state;
	uint64_t ctl;
	uint64_t second;
	uint64_t ctl2;
};

/* What an entry says of its key. */
struct cell {
	uint64_t word[2]; /* the value, of 58 bits; and of a wide entry 64 more */
	uint32_t era[2];  /* each one's */
};

/* Does this entry say nothing that a fresh one would not say (I6)? */
typedef bool idle_fn(void *context, uint32_t limit, const struct cell *cell);

enum insert_result {
	INSERT_DONE,
	INSERT_AGAIN, /* lost a race: look up again */
	INSERT_FULL,  /* no slot of the window may be taken */
};

static inline uint64_t
state_value(uint64_t state)
{
	return state >> STATE_VALUE_SHIFT;
}

static inline uint32_t
ctl_limit(uint64_t ctl)
{
	return (uint32_t)ctl & 0xffff;
}

static inline uint32_t
ctl_era(uint64_t ctl)
{
	return (uint32_t)(ctl >> CTL_ERA_SHIFT);
}

static inline uint32_t
ctl_identity(uint64_t ctl)
{
	return (uint32_t)ctl;
}

static inline uint32_t
probe_identity(uint64_t hash, uint32_t limit)
{
	return ((uint32_t)(hash >> 32) & IDENTITY_TAG_MASK) | limit;
}

/* => key_words is a constant where it matters. */
static inline _Atomic uint64_t *
entry_ctl(struct entry *e, unsigned key_words)
{
	return &e->more[key_words == KEY_WORDS_WIDE ? 1 : 0];
}

static inline _Atomic uint64_t *
entry_key(struct entry *e, unsigned key_words)
{
	return &e->more[key_words == KEY_WORDS_WIDE ? 3 : 1];
}

/* Of a wide entry. */
static inline _Atomic uint64_t *
entry_second(struct entry *e)
{
	return &e->more[0];
}

static inline _Atomic uint64_t *
entry_ctl2(struct entry *e)
{
	return &e->more[2];
}

static inline bool
table_is_wide(const struct table *t)
{
	return t->key_words == KEY_WORDS_WIDE;
}

/*
 * Line i of the window that starts at line `home`: home first, then the line
 * that makes an aligned pair of 128 bytes with it (processors like to fetch
 * these together), then the pairs that follow.
 */
static inline void *
table_line(const struct table *t, uint64_t home, unsigned i)
{
	uint64_t pair = (home >> 1) + (i >> 1);
	uint64_t line = (pair << 1 | ((home ^ i) & 1)) & t->line_mask;

	return t->base + line * LINE_BYTES;
}

static inline void *
table_home(const struct table *t, uint64_t hash)
{
	return t->base + (hash & t->line_mask) * LINE_BYTES;
}

static inline struct entry *
line_entry(void *line, unsigned offset)
{
	return (void *)((unsigned char *)line + offset);
}

/*
 * For reading: a line that is hot and only denied must stay shared between
 * cores, and a write prefetch would pull it away from them.
 */
static inline void
table_prefetch(const struct table *t, uint64_t hash)
{
	__builtin_prefetch(table_home(t, hash), 0, 3);
}

/* The next lines of the window, which is where most of the rest is. */
static inline void
table_prefetch_more(const struct table *t, uint64_t hash)
{
	__builtin_prefetch(table_line(t, hash & t->line_mask, 1), 0, 3);
	__builtin_prefetch(table_line(t, hash & t->line_mask, 2), 0, 3);
}

/*
 * 0 if the entry is LIVE and the probe's, as seen through *view.
 *
 * T1: the acquire load of state meets the publication in table_insert(): ctl
 * and key are those of this owner or of a later one.
 * T2: ctl and key are loaded with acquire so that the re-reading of state, in
 * table_unchanged() or by a CAS, stays behind them: if either came from a
 * later owner, whose stores to them are releases after its claim, that claim
 * is seen then.
 */
static inline uint64_t
entry_differs(struct entry *e, const struct probe *p, unsigned key_words,
    struct view *view)
{
	uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
	uint64_t ctl = atomic_load_explicit(entry_ctl(e, key_words),
	    memory_order_acquire);
	const _Atomic uint64_t *key = entry_key(e, key_words);
	uint64_t differs = ((state ^ STATE_LIVE) & STATE_KIND_MASK) |
	    (ctl_identity(ctl) ^ p->identity);

	for (unsigned w = 0; w < key_words; w++)
		differs |= atomic_load_explicit(&key[w],
		    memory_order_acquire) ^ p->word[w];
	view->entry = e;
	view->state = state;
	view->ctl = ctl;
	return differs;
}

/*
 * Look in one line of the window. Which of the two small entries it is is a
 * coin toss that no predictor can win, so the first one's ctl chooses by
 * arithmetic which to compare; that the chosen one is wrong and the other
 * right takes a leftover or an equal tag, one time in 2^16.
 */
static inline bool
table_find_in_line(void *line, const struct probe *p,
    unsigned key_words, struct view *view)
{
	struct entry *first = line;
	uint64_t ctl;
	bool other;

	if (key_words > KEY_WORDS_SMALL)
		return entry_differs(first, p, key_words, view) == 0;
	/* relaxed: a hint; entry_differs() loads it again. */
	ctl = atomic_load_explicit(entry_ctl(first, key_words),
	    memory_order_relaxed);
	other = ctl_identity(ctl) != p->identity;
	if (entry_differs(line_entry(line, other * (LINE_BYTES / 2)), p,
	    key_words, view) == 0)
		return true;
	return !other && entry_differs(line_entry(line, LINE_BYTES / 2), p,
	    key_words, view) == 0;
}

/*
 * Look in the window from its line `from` on, 0 being the home line.
 * => false: not there, view->entry is NULL.
 */
bool
table_find(const struct table *t, const struct probe *p, unsigned from,
    struct view *view);

/*
 * Is what was seen still so? A denial needs no write: it stands if the word
 * it was decided on is still the same (a seqlock read; relaxed because T2
 * keeps it behind the loads it confirms).
 */
static inline bool
table_unchanged(const struct view *view)
{
	return atomic_load_explicit(&view->entry->state,
	    memory_order_relaxed) == view->state;
}

/*
 * Take: replace the word, or the value in it, if nothing changed meanwhile.
 *
 * acq_rel: release, so that the loads that found the entry (and a refreshed
 * era) stay before it, T3; acquire, to pair with it in the next taker.
 */
static inline bool
table_replace_state(const struct view *view, uint64_t desired)
{
	uint64_t expected = view->state;

	return atomic_compare_exchange_strong_explicit(&view->entry->state,
	    &expected, desired, memory_order_acq_rel, memory_order_relaxed);
}

static inline bool
table_replace(const struct view *view, uint64_t value)
{
	return table_replace_state(view, value << STATE_VALUE_SHIFT |
	    (view->state & (STATE_GENERATION_MASK | STATE_KIND_MASK)));
}

/*
 * Look at the rest of a wide entry that was found. Acquire, T2: re-reading state
 * stays behind, and if that has not changed, the entry held both words when
 * `second` was read; which is all that a denial needs. A take compares both.
 */
static inline void
table_look_wide(struct view *view)
{
	view->second = atomic_load_explicit(entry_second(view->entry),
	    memory_order_acquire);
	view->ctl2 = atomic_load_explicit(entry_ctl2(view->entry),
	    memory_order_acquire);
}

/* Take from a wide entry: replace both words if neither changed; T3. */
static inline bool
table_replace_wide(const struct view *view, uint64_t value, uint64_t second)
{
	return pair_replace(&view->entry->state,
	    (struct pair){view->state, view->second},
	    (struct pair){value << STATE_VALUE_SHIFT | (view->state &
		(STATE_GENERATION_MASK | STATE_KIND_MASK)), second});
}

/* What a view says; of a wide entry after table_look_wide(). */
static inline struct cell
view_cell(const struct view *view)
{
	return (struct cell){
		.word = {state_value(view->state), view->second},
		.era = {ctl_era(view->ctl), ctl_era(view->ctl2)},
	};
}

/*
 * Move an entry's era forward, in its ctl or ctl2, before the value is replaced:
 * an era that runs ahead of its value by one is read rightly, one that lags is
 * not (T3).
 *
 * relaxed, for the release in table_replace() carries it. If the slot changed
 * owner, the CAS fails, or it meets the same limit, tag and era and moves that
 * forward: the new owner's value then lies at most an era and a capacity below
 * the new base, which can still be read.
 */
static inline bool
era_refresh(_Atomic uint64_t *ctl, uint64_t *seen, uint32_t era)
{
	uint64_t fresh = (uint64_t)era << CTL_ERA_SHIFT | ctl_identity(*seen);

	if (!atomic_compare_exchange_strong_explicit(ctl, seen, fresh,
	    memory_order_relaxed, memory_order_relaxed))
		return false;
	*seen = fresh;
	return true;
}

/* The era of word 0 or 1. */
static inline bool
table_refresh_era(const struct table *t, struct view *view, unsigned word,
    uint32_t era)
{
	return word == 0 ?
	    era_refresh(entry_ctl(view->entry, t->key_words), &view->ctl, era) :
	    era_refresh(entry_ctl2(view->entry), &view->ctl2, era);
}

/* Free an entry that is idle. => false: it changed meanwhile. */
bool
table_retire(const struct table *t, const struct view *view);

/* Free all entries of a limit. => Nobody uses that limit any more. */
void
table_drop_limit(struct table *t, uint32_t limit);

/*
 * Insert the probe's entry, saying this. `claim` is a number that no other call
 * ever passes. An impatient caller yields to nobody.
 */
enum insert_result
table_insert(struct table *t, const struct probe *p, const struct cell *cell,
    uint64_t claim, bool impatient, idle_fn *idle, void *context);

/* Would an insertion find a slot to claim? */
bool
table_has_room(const struct table *t, const struct probe *p, idle_fn *idle,
    void *context);

/*
 * Slots for a table that is to hold `capacity` keys: a load of at most 1/4, at
 * which 97 of 100 keys are in their home line (at 1/2: 89).
 */
uint64_t
table_slots_for(uint64_t capacity);

/* Bytes of that many slots. => 0 if that is more than an address can tell. */
size_t
table_bytes(uint64_t slots, unsigned entry_bytes);

unsigned
table_entry_bytes(unsigned key_words);

/*
 * Make a table of zeroed memory, aligned to a line, of table_bytes().
 * => slots from table_slots_for().
 */
void
table_init(struct table *t, void *memory, uint64_t slots,
    unsigned key_words);

#endif
