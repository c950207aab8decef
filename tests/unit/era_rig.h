/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine with one limit at the fastest rate there is, so that an era lasts
 * seconds, and a look at what its entries say of their eras. For programs of one
 * file, as all in it is static.
 */
#ifndef TESTS_UNIT_ERA_RIG_H
#define TESTS_UNIT_ERA_RIG_H

#include "../support.h"
#include "worker.h"

#define ERA_NS (V_ERA_UNITS / V_SPEED_MAX)
#define CAPACITY V_FULL_MAX /* half an era's worth */
#define KEYS 8u

static struct rig rig;
static uint32_t limit;

static void
setup(void)
{
	const struct weir_engine_params params = rig_params(KEYS, 4);

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "fastest", V_SPEED_MAX, 1, CAPACITY,
	    WEIR_UNIT_PACKETS);
}

static void
teardown(void)
{
	rig_close(&rig);
}

/* Call visit for every live entry. => How many there are. */
static unsigned
for_each_live(void (*visit)(struct entry *entry, uint64_t argument),
    uint64_t argument)
{
	const struct table *t = &rig.engine->table;
	unsigned live = 0;

	for (uint64_t i = 0; i < (t->line_mask + 1) * t->line_slots; i++) {
		struct entry *e = (void *)(t->base + i * t->entry_bytes);

		if ((e->state & STATE_KIND_MASK) != STATE_LIVE)
			continue;
		visit(e, argument);
		live++;
	}
	return live;
}

static void
check_invariant(struct entry *entry, uint64_t argument)
{
	uint64_t ctl = *entry_ctl(entry, KEY_WORDS_SMALL);
	uint64_t base = (uint64_t)ctl_era(ctl) << V_ERA_SHIFT;
	int64_t from_base = v_distance(state_value(entry->state), base);
	int64_t slack = (int64_t)(rig.engine->clock_skew_ns * V_SPEED_MAX) + 2;

	(void)argument;
	expect(from_base > -(int64_t)CAPACITY - slack);
	expect(from_base < (int64_t)V_ERA_UNITS);
}

static void
move_era(struct entry *entry, uint64_t era)
{
	struct view view = {
		.entry = entry,
		.state = entry->state,
		.ctl = *entry_ctl(entry, KEY_WORDS_SMALL),
	};

	ck_assert(table_refresh_era(&rig.engine->table, &view, 0,
	    (uint32_t)era));
}

#endif
