/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Space-Saving sketch of Metwally, Agrawal and El Abbadi (2005). It keeps
 * a fixed number of counters. A key that has one is counted. A key that has
 * none takes over the smallest counter, count included, and that count is its
 * possible error: it cannot have been denied more often while nobody looked,
 * because then it would not have lost its counter. So a count is never too
 * small, its error is known, and whoever is denied more often than
 * (all denials / counters) is certain to be there.
 *
 * Counters of equal count form a group, groups form a list in order of their
 * count: the smallest counter is the first of the first group, and counting
 * moves a counter to the neighbouring group. Both are a handful of stores,
 * however many keys there are; a flood that denies a new key with each packet
 * costs a deletion and an insertion in the hash table more.
 *
 * The hash table says where a key's counter is: rte_hash gives every key in it
 * a place of its own, and that is the counter's index. It hashes with a random
 * seed, as the keys are chosen by whoever sends.
 */
#include "talkers.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_jhash.h>
#include <rte_malloc.h>
#include <rte_random.h>

#define NONE UINT32_MAX

struct counter {
	uint8_t key[PKT_KEY_SIZE];
	uint64_t error;
	uint32_t group;
	uint32_t prev, next; /* within the group */
};

struct group {
	uint64_t count;
	uint32_t first;      /* counter; NONE only while it is changed */
	uint32_t prev, next; /* groups of the next smaller and larger count */
};

struct talkers {
	struct rte_hash *places;
	uint32_t used;      /* counters in use */
	uint32_t smallest;  /* group, NONE if there are no counters */
	uint32_t free;      /* groups not in use, linked by .next */
	struct counter counters[TALKERS_TRACKED];
	/* One more than counters: moving needs the new before the old goes. */
	struct group groups[TALKERS_TRACKED + 1];
};

struct talkers *
talkers_create(unsigned int number, int socket)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {
		.name = name,
		.entries = TALKERS_TRACKED,
		.key_len = PKT_KEY_SIZE,
		.hash_func = rte_jhash,
		.hash_func_init_val = (uint32_t)rte_rand(),
		.socket_id = socket,
		/* Chains behind full buckets: all entries find room. */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};
	struct talkers *t;

	t = rte_zmalloc_socket("talkers", sizeof(*t), 0, socket);
	if (t == NULL)
		return NULL;
	snprintf(name, sizeof(name), "talkers%u", number);
	t->places = rte_hash_create(&params);
	if (t->places == NULL) {
		rte_free(t);
		return NULL;
	}
	t->smallest = NONE;
	t->free = 0;
	for (uint32_t i = 0; i < TALKERS_TRACKED; i++)
		t->groups[i].next = i + 1;
	t->groups[TALKERS_TRACKED].next = NONE;
	return t;
}

void
talkers_destroy(struct talkers *t)
{
	if (t == NULL)
		return;
	rte_hash_free(t->places);
	rte_free(t);
}

/* A group for a count, between two neighbours of which either may be NONE. */
static uint32_t
group_create(struct talkers *t, uint64_t count, uint32_t prev, uint32_t next)
{
	uint32_t g = t->free;
	struct group *group = &t->groups[g];

	t->free = group->next;
	*group = (struct group){
		.count = count, .first = NONE, .prev = prev, .next = next
	};
	if (prev != NONE)
		t->groups[prev].next = g;
	else
		t->smallest = g;
	if (next != NONE)
		t->groups[next].prev = g;
	return g;
}

static void
group_drop(struct talkers *t, uint32_t g)
{
	struct group *group = &t->groups[g];

	if (group->prev != NONE)
		t->groups[group->prev].next = group->next;
	else
		t->smallest = group->next;
	if (group->next != NONE)
		t->groups[group->next].prev = group->prev;
	group->next = t->free;
	t->free = g;
}

static void
counter_link(struct talkers *t, uint32_t c, uint32_t g)
{
	struct counter *counter = &t->counters[c];
	struct group *group = &t->groups[g];

	counter->group = g;
	counter->prev = NONE;
	counter->next = group->first;
	if (group->first != NONE)
		t->counters[group->first].prev = c;
	group->first = c;
}

/* Leaves a group that became empty in place. */
static void
counter_unlink(struct talkers *t, uint32_t c)
{
	struct counter *counter = &t->counters[c];

	if (counter->prev != NONE)
		t->counters[counter->prev].next = counter->next;
	else
		t->groups[counter->group].first = counter->next;
	if (counter->next != NONE)
		t->counters[counter->next].prev = counter->prev;
}

/* Add one to a counter. */
static void
counter_raise(struct talkers *t, uint32_t c)
{
	struct counter *counter = &t->counters[c];
	uint32_t g = counter->group, target = t->groups[g].next;
	bool alone = counter->prev == NONE && counter->next == NONE;
	uint64_t count = t->groups[g].count + 1;

	if (target == NONE || t->groups[target].count != count) {
		if (alone) {
			t->groups[g].count = count;
			return;
		}
		target = group_create(t, count, g, target);
	}
	counter_unlink(t, c);
	counter_link(t, c, target);
	if (alone)
		group_drop(t, g);
}

/* Give up the smallest counter. => Its count, for its successor. */
static uint64_t
evict(struct talkers *t)
{
	uint32_t g = t->smallest, victim = t->groups[g].first;
	uint64_t count = t->groups[g].count;

	rte_hash_del_key(t->places, t->counters[victim].key);
	counter_unlink(t, victim);
	if (t->groups[g].first == NONE)
		group_drop(t, g);
	t->used--;
	return count;
}

/*
 * A counter for a new key. It starts with all that the key may have been
 * denied before. => Its index, or NONE.
 */
static uint32_t
admit(struct talkers *t, const uint8_t *key)
{
	uint64_t count = t->used == TALKERS_TRACKED ? evict(t) : 0;
	int32_t place = rte_hash_add_key(t->places, key);
	uint32_t g = t->smallest;

	/* As many entries as counters, and room was just made. */
	assert(place >= 0 && place < (int32_t)TALKERS_TRACKED);
	if (place < 0 || place >= (int32_t)TALKERS_TRACKED)
		return NONE;
	t->used++;
	memcpy(t->counters[place].key, key, PKT_KEY_SIZE);
	t->counters[place].error = count;
	if (g == NONE || t->groups[g].count != count)
		g = group_create(t, count, NONE, g);
	counter_link(t, (uint32_t)place, g);
	return (uint32_t)place;
}

void
talkers_add(struct talkers *t, const uint8_t key[PKT_KEY_SIZE])
{
	int32_t place = rte_hash_lookup(t->places, key);
	uint32_t c = place >= 0 ? (uint32_t)place : admit(t, key);

	if (c != NONE)
		counter_raise(t, c);
}

/*
 * Merging: a key that a sketch does not follow may yet have been denied there,
 * but no more often than the smallest counter says.
 */
static uint64_t
unseen(const struct talkers *t)
{
	if (t->used < TALKERS_TRACKED)
		return 0;
	return t->groups[t->smallest].count;
}

/* Count and error of one key in one sketch, minus what unseen() says. */
static size_t
copy_out(const struct talkers *t, struct talker *out)
{
	uint64_t base = unseen(t);
	size_t n = 0;

	for (uint32_t g = t->smallest; g != NONE; g = t->groups[g].next) {
		for (uint32_t c = t->groups[g].first; c != NONE;
		     c = t->counters[c].next) {
			memcpy(out[n].key, t->counters[c].key, PKT_KEY_SIZE);
			/* Modulo 2^64; the sum over all sketches is not. */
			out[n].count = t->groups[g].count - base;
			out[n].error = t->counters[c].error - base;
			n++;
		}
	}
	return n;
}

static int
by_key(const void *a, const void *b)
{
	const struct talker *x = a, *y = b;

	return memcmp(x->key, y->key, PKT_KEY_SIZE);
}

static int
by_count(const void *a, const void *b)
{
	const struct talker *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return by_key(a, b);
}

/* Fold equal keys of a list sorted by key into one. => How many are left. */
static size_t
fold(struct talker *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && by_key(&list[kept - 1], &list[i]) == 0) {
			list[kept - 1].count += list[i].count;
			list[kept - 1].error += list[i].error;
		} else {
			list[kept++] = list[i];
		}
	}
	return kept;
}

int
talkers_top(struct talkers *const *all, size_t n, struct talker *top,
    size_t max, size_t *found)
{
	size_t total = 0, filled = 0;
	uint64_t base = 0;
	struct talker *list;

	*found = 0;
	for (size_t i = 0; i < n; i++)
		total += all[i] != NULL ? all[i]->used : 0;
	if (total == 0)
		return 0;
	list = calloc(total, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (all[i] == NULL)
			continue;
		filled += copy_out(all[i], list + filled);
		base += unseen(all[i]);
	}

	qsort(list, filled, sizeof(*list), by_key);
	filled = fold(list, filled);
	for (size_t i = 0; i < filled; i++) {
		list[i].count += base;
		list[i].error += base;
	}
	qsort(list, filled, sizeof(*list), by_count);

	*found = filled < max ? filled : max;
	memcpy(top, list, *found * sizeof(*list));
	free(list);
	return 0;
}
