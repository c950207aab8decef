/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define ROWS_BURST_MAX 256

/* One way of playing a set of rows. */
struct play {
	const char *name;
	const struct weir_limit_params *params;
	struct rig *rig;
	uint32_t limit;
	uint64_t key;
	uint64_t base_ns;
	bool burst;
};

static uint64_t
rows_last_ns(const struct row *rows, size_t n)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].at_ns > last_ns)
			last_ns = rows[i].at_ns;
	return last_ns;
}

/* What a wait of retry_ns is called when the clock ends before it does. */
static uint64_t
retry_at(uint64_t retry_ns, uint64_t now_ns)
{
	if (retry_ns == WEIR_NEVER || retry_ns <= UINT64_MAX - now_ns)
		return retry_ns;
	return WEIR_NEVER - 1;
}

static bool
retry_is_right(const struct play *play, const struct row *row,
    uint64_t now_ns, uint64_t got_ns)
{
	uint64_t early_ns = limit_early_ns(play->params);
	uint64_t high_ns;

	if (row->expect == WEIR_PASS)
		return got_ns == 0;
	if (row->retry_ns == WEIR_NEVER)
		return got_ns == WEIR_NEVER;
	high_ns = retry_at(row->retry_ns, now_ns);
	return got_ns != 0 && got_ns <= high_ns &&
	    high_ns - got_ns <= early_ns;
}

static void
row_verify(const struct play *play, const struct row *row, size_t i,
    const struct weir_decision *got)
{
	uint64_t now_ns = play->base_ns + row->at_ns;

	if (got->verdict == row->expect &&
	    got->decided_by == WEIR_BY_BUCKET &&
	    retry_is_right(play, row, now_ns, got->retry_after_ns) &&
	    (!row->left_known || got->remaining == row->left))
		return;
	ck_abort_msg("%s row %zu (at %" PRIu64 ", cost %" PRIu64
	    "; base %" PRIu64 ", %s, %s): want %c retry %" PRIu64
	    " left %" PRIu64 "%s, got %c by %d retry %" PRIu64
	    " left %" PRIu64,
	    play->name, i, row->at_ns, row->cost, play->base_ns,
	    play->params->unit == WEIR_UNIT_BYTES ? "bytes" : "packets",
	    play->burst ? "burst" : "one",
	    row->expect == WEIR_PASS ? 'A' : 'D', row->retry_ns, row->left,
	    row->left_known ? "" : " (not looked at)",
	    got->verdict == WEIR_PASS ? 'A' : 'D', (int)got->decided_by,
	    got->retry_after_ns, got->remaining);
}

/* The other field must not matter, so let it be a different number. */
static struct weir_request
row_request(const struct play *play, const struct row *row)
{
	struct weir_request r = request(play->limit, &play->key, row->cost);

	if (play->params->unit == WEIR_UNIT_BYTES)
		r.packets = 1;
	else
		r.bytes = 64;
	return r;
}

static void
play_one(const struct play *play, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct weir_request r = row_request(play, &rows[i]);
		struct weir_decision got;
		enum weir_verdict verdict;

		verdict = weir_check(play->rig->worker, &r,
		    play->base_ns + rows[i].at_ns, &got);
		expect(verdict == got.verdict);
		row_verify(play, &rows[i], i, &got);
	}
}

/* Rows of one instant that follow each other make one packet burst. */
static void
play_bursts(const struct play *play, const struct row *rows, size_t n)
{
	struct weir_request requests[ROWS_BURST_MAX];
	struct weir_decision got[ROWS_BURST_MAX];
	uint8_t verdicts[ROWS_BURST_MAX];
	size_t count;

	for (size_t first = 0; first < n; first += count) {
		for (count = 0; first + count < n && count < ROWS_BURST_MAX &&
		     rows[first + count].at_ns == rows[first].at_ns;
		     count++)
			requests[count] =
			    row_request(play, &rows[first + count]);
		memset(verdicts, 0xa5, sizeof(verdicts));
		weir_check_burst(play->rig->worker, requests, count,
		    play->base_ns + rows[first].at_ns, verdicts, got);
		for (size_t i = 0; i < count; i++) {
			expect(verdicts[i] == got[i].verdict);
			row_verify(play, &rows[first + i], first + i, &got[i]);
		}
	}
}

static void
play_at(struct play *play, uint64_t base_ns, const struct row *rows, size_t n)
{
	play->base_ns = base_ns;
	play->burst = false;
	play->key++;
	play_one(play, rows, n);
	play->burst = true;
	play->key++;
	play_bursts(play, rows, n);
}

void
rows_play(const char *name, struct row_limit limit, const struct row *rows,
    size_t n)
{
	const uint64_t bases_ns[] = {
		0,
		1,
		(1ull << 32) * NSEC_PER_MS - 20 * NSEC_PER_SEC,
		(1ull << 31) - NSEC_PER_SEC,
		(1ull << 32) - NSEC_PER_SEC,
		(1ull << 62) - 20 * NSEC_PER_SEC,
		(1ull << 63) - 20 * NSEC_PER_SEC,
		(1ull << 63) - 3,
		UINT64_MAX - rows_last_ns(rows, n),
	};
	struct weir_engine_params engine = rig_params(1024, sizeof(uint64_t));
	struct rig rig;

	rig_open(&rig, &engine);
	for (int unit = WEIR_UNIT_PACKETS; unit <= WEIR_UNIT_BYTES; unit++) {
		struct weir_limit_params params = limit_params(
		    unit == WEIR_UNIT_BYTES ? "bytes" : "packets",
		    limit.tokens, limit.period_ns, limit.capacity,
		    (enum weir_unit)unit);
		struct play play = {
			.name = name,
			.params = &params,
			.rig = &rig,
			.limit = limit_add(rig.engine, params.name,
			    limit.tokens, limit.period_ns, limit.capacity,
			    params.unit),
		};

		for (size_t i = 0; i < NELEM(bases_ns); i++)
			if (bases_ns[i] <= UINT64_MAX - rows_last_ns(rows, n))
				play_at(&play, bases_ns[i], rows, n);
	}
	rig_close(&rig);
}
