/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates and bursts as people write them, read exactly.
 *
 *	rate	= amount unit "/" [count] time | amount unit-per-second
 *	burst	= amount unit
 *	amount	= digits ["." digits]
 *	unit	= [prefix] ("packet" | "packets" | "bit" | "bits" | "b" |
 *			"byte" | "bytes" | "B")
 *	unit-per-second = [prefix] ("pps" | "bps" | "Bps")
 *	prefix	= "k" | "M" | "G" | "T"		powers of 1000, never of 1024
 *	time	= "ns" | "us" | "ms" | "s" | "m" | "min" | "h" | "d"
 *	count	= digits			"1 packet/10s"
 *
 * Spaces and tabs may stand between words, and around them; a prefix may
 * touch the number instead ("10k packets"). Case counts: b is a bit and B a
 * byte. Nothing is rounded: what is no whole number of tokens per whole
 * number of ns, both below 2^64, is refused. So is everything not in this
 * grammar: signs, exponents, hexadecimal, and whatever follows a good start.
 */
#ifndef RATE_TEXT_H
#define RATE_TEXT_H

#include <stdint.h>

#include <weir/limit.h>

/* An Ethernet frame with 1500 bytes in it, without frame check sequence. */
#define RATE_TEXT_FULL_FRAME_BYTES 1514u

/* tokens per period_ns. A bit is an eighth of a token: 1 bit/s is 1 / 8 s. */
struct rate_text_rate {
	uint64_t tokens;    /* at least 1 */
	uint64_t period_ns; /* as written, or the least multiple of it that
	                       makes tokens whole, if that fits */
	enum weir_unit unit;
};

struct rate_text_burst {
	uint64_t tokens; /* at least 1 */
	enum weir_unit unit;
};

/*
 * Read a rate; a burst; a plain number with an optional prefix ("1M"), which
 * must come out whole.
 *
 * => 0 and the result, or -EINVAL and *reason, a static short clause.
 */
int
rate_text_parse_rate(const char *text, struct rate_text_rate *rate,
    const char **reason);
int
rate_text_parse_burst(const char *text, struct rate_text_burst *burst,
    const char **reason);
int
rate_text_parse_count(const char *text, uint64_t *count, const char **reason);

/*
 * The burst of a limit that names none: what the rate gives in 100 ms, rounded
 * up, but at least ten packets or ten full-size frames (15,140 bytes), the
 * first flight of a TCP sender.
 */
uint64_t
rate_text_default_burst(const struct rate_text_rate *rate);

#endif
