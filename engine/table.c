/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table's slow side: whole-window lookup, insertion, retirement. The
 * protocol and why it holds are told in table.h.
 */
#include "table.h"

uint64_t
table_slots_for(uint64_t capacity)
{
	uint64_t slots = WINDOW_SLOTS;

	while (slots < 4 * capacity)
		slots <<= 1;
	return slots;
}

size_t
table_bytes(uint64_t slots, unsigned entry_bytes)
{
	return slots > SIZE_MAX / entry_bytes ? 0 : slots * entry_bytes;
}

unsigned
table_entry_bytes(unsigned key_words)
{
	return key_words > KEY_WORDS_SMALL ? LINE_BYTES : LINE_BYTES / 2;
}

void
table_init(struct table *t, void *memory, uint64_t slots, unsigned key_words)
{
	t->base = memory;
	t->key_words = key_words;
	t->entry_bytes = table_entry_bytes(key_words);
	t->line_slots = LINE_BYTES / t->entry_bytes;
	t->line_mask = slots / t->line_slots - 1;
	t->window_lines = WINDOW_SLOTS / t->line_slots;
}

static struct entry *
window_slot(const struct table *t, const struct probe *p, unsigned i)
{
	void *line = table_line(t, p->hash & t->line_mask, i / t->line_slots);

	return line_entry(line, i % t->line_slots * t->entry_bytes);
}

static bool
find_from(const struct table *t, const struct probe *p, unsigned from,
    unsigned key_words, struct view *view)
{
	uint64_t home = p->hash & t->line_mask;

	for (unsigned i = from; i < t->window_lines; i++) {
		if (table_find_in_line(table_line(t, home, i), p, key_words,
		    view))
			return true;
	}
	view->entry = NULL;
	return false;
}

bool
table_find(const struct table *t, const struct probe *p, unsigned from,
    struct view *view)
{
	switch (t->key_words) {
	case KEY_WORDS_SMALL:
		return find_from(t, p, from, KEY_WORDS_SMALL, view);
	case KEY_WORDS_WIDE:
		return find_from(t, p, from, KEY_WORDS_WIDE, view);
	default:
		return find_from(t, p, from, KEY_WORDS_MAX, view);
	}
}

/* state changes hands from `from` to `to`; T4, see table_insert(). */
static bool
state_change(struct entry *e, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&e->state, &from, to,
	    memory_order_acq_rel, memory_order_relaxed);
}

/*
 * The owner loses the slot: state from what was seen to `to`. Of a wide entry
 * only if `second` is as it was seen, too, for it may have been idle only by
 * that.
 */
static bool
owner_change(const struct table *t, const struct view *v, uint64_t to)
{
	return table_is_wide(t) ? pair_replace(&v->entry->state,
	    (struct pair){v->state, v->second}, (struct pair){to, v->second}) :
	    state_change(v->entry, v->state, to);
}

bool
table_retire(const struct table *t, const struct view *view)
{
	return owner_change(t, view,
	    STATE_FREE | (view->state & STATE_GENERATION_MASK));
}

/* A slot, whoever owns it. */
static struct view
look_at(const struct table *t, struct entry *e)
{
	struct view v = {.entry = e};

	v.state = atomic_load_explicit(&e->state,
	    memory_order_acquire); /* T1: ctl belongs to it */
	/* relaxed: if ctl is a later owner's, changing the owner will fail. */
	v.ctl = atomic_load_explicit(entry_ctl(e, t->key_words),
	    memory_order_relaxed);
	if (table_is_wide(t))
		table_look_wide(&v);
	return v;
}

static bool
is_live(const struct view *v)
{
	return (v->state & STATE_KIND_MASK) == STATE_LIVE;
}

void
table_drop_limit(struct table *t, uint32_t limit)
{
	uint64_t slots = (t->line_mask + 1) * t->line_slots;

	for (uint64_t i = 0; i < slots; i++) {
		struct view v = look_at(t,
		    (void *)(t->base + i * t->entry_bytes));

		if (is_live(&v) && ctl_limit(v.ctl) == limit)
			table_retire(t, &v);
	}
}

/*
 * The slot to claim: the first free one of the window, else the first idle
 * one. Free first, because an idle key may come back and find itself evicted
 * from a table that has room.
 */
static struct view
choose_slot(const struct table *t, const struct probe *p, idle_fn *idle,
    void *context)
{
	struct view chosen = {0};

	for (unsigned i = 0; i < WINDOW_SLOTS; i++) {
		struct view v = look_at(t, window_slot(t, p, i));
		struct cell cell;

		if ((v.state & STATE_KIND_MASK) == STATE_FREE)
			return v;
		if (chosen.entry || !is_live(&v))
			continue;
		cell = view_cell(&v);
		if (idle(context, ctl_limit(v.ctl), &cell))
			chosen = v;
	}
	return chosen;
}

bool
table_has_room(const struct table *t, const struct probe *p, idle_fn *idle,
    void *context)
{
	return choose_slot(t, p, idle, context).entry != NULL;
}

static bool
same_key(struct entry *e, const struct probe *p, unsigned key_words)
{
	const _Atomic uint64_t *key = entry_key(e, key_words);
	uint64_t differs = 0;

	/* relaxed: T1, by the caller's load of a LIVE state. If the slot went
	 * to a later owner since, that one announced itself after my own
	 * announcement and will meet it. */
	for (unsigned w = 0; w < key_words; w++)
		differs |= atomic_load_explicit(&key[w],
		    memory_order_relaxed) ^ p->word[w];
	return differs == 0;
}

/*
 * May I go on, as far as this other slot is concerned? It has my identity in
 * its ctl. See step 3 in table.h.
 */
static bool
prevail_over(const struct table *t, const struct probe *p, struct entry *other,
    bool give_way)
{
	for (;;) {
		uint64_t state = atomic_load_explicit(&other->state,
		    memory_order_acquire); /* T1 */

		if ((state & STATE_KIND_MASK) == STATE_LIVE)
			return !same_key(other, p, t->key_words);
		if ((state & STATE_KIND_MASK) == STATE_FREE ||
		    (state & STATE_KILLED))
			return true;
		if (give_way)
			return false;
		if (state_change(other, state, state | STATE_KILLED))
			return true;
		/* It was published, killed or freed just now: look again. A
		 * slot cannot do that for ever without other inserts ending
		 * well. */
	}
}

/* Steps 2 and 3: announce, then look for the same key elsewhere. */
static bool
announce(const struct table *t, const struct probe *p, struct entry *mine,
    uint64_t ctl, bool impatient)
{
	/* T5 seq_cst store -> seq_cst loads below in a rival: of two that
	 * announce one key, at least one sees the other. Also a release, T2:
	 * who reads this ctl sees my claim. */
	atomic_store_explicit(entry_ctl(mine, t->key_words), ctl,
	    memory_order_seq_cst);
	for (unsigned i = 0; i < WINDOW_SLOTS; i++) {
		struct entry *other = window_slot(t, p, i);
		uint64_t seen = atomic_load_explicit(
		    entry_ctl(other, t->key_words),
		    memory_order_seq_cst); /* T5 */

		if (other == mine || ctl_identity(seen) != p->identity)
			continue;
		if (!prevail_over(t, p, other, other < mine && !impatient))
			return false;
	}
	return true;
}

static uint64_t
ctl_make(uint32_t era, const struct probe *p)
{
	return (uint64_t)era << CTL_ERA_SHIFT | p->identity;
}

/*
 * Step 4, what a live entry needs beside its state.
 *
 * T2 release: who reads any of this sees my claim.
 */
static void
furnish(const struct table *t, const struct probe *p, struct entry *mine,
    const struct cell *cell)
{
	_Atomic uint64_t *key = entry_key(mine, t->key_words);

	for (unsigned w = 0; w < t->key_words; w++)
		atomic_store_explicit(&key[w], p->word[w],
		    memory_order_release);
	if (!table_is_wide(t))
		return;
	atomic_store_explicit(entry_second(mine), cell->word[1],
	    memory_order_release);
	atomic_store_explicit(entry_ctl2(mine), ctl_make(cell->era[1], p),
	    memory_order_release);
}

enum insert_result
table_insert(struct table *t, const struct probe *p, const struct cell *cell,
    uint64_t claim, bool impatient, idle_fn *idle, void *context)
{
	struct view slot = choose_slot(t, p, idle, context);
	struct entry *mine = slot.entry;
	uint64_t generation, claimed;

	if (!mine)
		return INSERT_FULL;
	generation = (slot.state + (1ull << STATE_GENERATION_SHIFT)) &
	    STATE_GENERATION_MASK;
	claimed = claim << STATE_CLAIM_SHIFT | generation | STATE_CLAIMED;

	/* T4 acq_rel: of all who want the slot one gets it; its later stores
	 * to ctl and key stay behind. */
	if (!owner_change(t, &slot, claimed))
		return INSERT_AGAIN;
	if (announce(t, p, mine, ctl_make(cell->era[0], p), impatient)) {
		furnish(t, p, mine, cell);
		/* T1 release -> acquire in entry_differs(): ctl, key and the
		 * rest are complete. */
		if (state_change(mine, claimed, cell->word[0] <<
		    STATE_VALUE_SHIFT | generation | STATE_LIVE))
			return INSERT_DONE;
	}
	/* Mine still, killed or not; only the killed bit can have come. */
	if (!state_change(mine, claimed, generation | STATE_FREE))
		state_change(mine, claimed | STATE_KILLED,
		    generation | STATE_FREE);
	return INSERT_AGAIN;
}
