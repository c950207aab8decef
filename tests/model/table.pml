/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The find / insert / reuse / take protocol of engine/table.h, for Spin.
 *
 * N workers each decide one request, at one frozen instant, on keys that all
 * have the same tag and the same window of SLOTS slots; a bucket holds one
 * token. Every load, store and CAS of table.[ch] is a step of its own, with
 * the same names. Patience is a free choice, so both ways of meeting a rival
 * are explored at any moment. Checked: a key passes at most once; at the end
 * at most one live entry per key, and no slot is still claimed.
 *
 * Spin interleaves sequentially consistent steps. That the two edges which need
 * that much, T5, have it in C is their memory order; all others are a release
 * and an acquire on the word that is modelled.
 *
 *	spin -DKEYS=0 -a table.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 */
#ifndef N
#define N 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef KEYS
#define KEYS 0	/* 0: all one key; 1: one worker has another key */
#endif
#ifndef OLD
#define OLD 0	/* 1: slot 0 holds key 9, idle; 2: key 9, spent */
#endif
#ifndef FULL
#define FULL 0	/* 1: all other slots hold idle keys of other tags */
#endif
#ifndef ROUNDS
#define ROUNDS 3	/* insertions a worker tries */
#endif

/* state: kind + 4 * generation + 32 * value */
#define FREE 0
#define CLAIMED 1
#define LIVE 2
#define KIND(s) ((s) & 3)
#define GENERATION(s) (((s) >> 2) & 7)
#define VALUE(s) ((s) >> 5)
#define STATE(kind, generation, value) \
	((kind) | (((generation) & 7) << 2) | ((value) << 5))
/* value of a LIVE word: 0 full again, 1 spent. Of a claim: 2 * number + killed */
#define KILLED(s) ((VALUE(s) & 1) == 1)
#define KILL(s) ((s) | (1 << 5))

short state[SLOTS];
byte named[SLOTS];	/* ctl: 1 if it names the common tag */
byte key[SLOTS];
byte claims;
byte passed[10];
byte ended;

#define CAS(word, from, to, won) \
	d_step { if :: word == from -> word = to; won = true \
	:: else -> won = false fi }

proctype worker(byte mine)
{
	short s, claimed;
	byte i, slot, k, n;
	bool won, yield, same;
	short seen;

again:
	/* table_find() */
	i = 0;
	do
	:: i < SLOTS ->
		s = state[i];
		if
		:: KIND(s) == LIVE ->
			won = (named[i] == 1);
			k = key[i];
			if
			:: won && k == mine -> goto found
			:: else
			fi
		:: else
		fi;
		i++
	:: else -> break
	od;
	goto absent;

found:	/* decide_found() */
	if
	:: VALUE(s) == 1 ->	/* deny, if the word is unchanged */
		if
		:: state[i] == s -> goto done
		:: else -> goto again
		fi
	:: else ->
		CAS(state[i], s, STATE(LIVE, GENERATION(s), 1), won);
		if
		:: won -> passed[mine]++; goto done
		:: else -> goto again
		fi
	fi;

absent:	/* choose_slot(): the first free one, else the first idle one */
	slot = SLOTS;
	i = 0;
	do
	:: i < SLOTS ->
		s = state[i];
		if
		:: KIND(s) == FREE -> slot = i; seen = s; break
		:: KIND(s) == LIVE && VALUE(s) == 0 && slot == SLOTS ->
			slot = i; seen = s
		:: else
		fi;
		i++
	:: else -> break
	od;
	if
	:: slot == SLOTS -> goto done	/* full; a declared answer */
	:: else
	fi;
	d_step {
		claims++;
		claimed = STATE(CLAIMED, GENERATION(seen) + 1, 2 * claims)
	};
	CAS(state[slot], seen, claimed, won);
	if
	:: !won -> goto again
	:: else
	fi;

	/* announce() */
	named[slot] = 1;
	i = 0;
	do
	:: i < SLOTS && i == slot -> i++
	:: i < SLOTS && i != slot ->
		if
		:: named[i] == 0 -> i++
		:: else ->	/* prevail_over() */
			s = state[i];
			if
			:: KIND(s) == LIVE ->
				same = (key[i] == mine);
				if
				:: same -> goto give_up
				:: else -> i++
				fi
			:: KIND(s) == FREE -> i++
			:: KIND(s) == CLAIMED && KILLED(s) -> i++
			:: KIND(s) == CLAIMED && !KILLED(s) ->
				if
				:: i < slot -> goto give_up	/* give way */
				:: true ->
					CAS(state[i], s, KILL(s), won);
					if
					:: won -> i++
					:: else
					fi
				fi
			fi
		fi
	:: else -> break
	od;

	/* write the key, publish with the first take in it */
	key[slot] = mine;
	CAS(state[slot], claimed, STATE(LIVE, GENERATION(claimed), 1), won);
	if
	:: won -> passed[mine]++; goto done
	:: else
	fi;

give_up:
	skip;
	CAS(state[slot], claimed, STATE(FREE, GENERATION(claimed), 0), won);
	if
	:: !won ->
		CAS(state[slot], KILL(claimed),
		    STATE(FREE, GENERATION(claimed), 0), won);
		assert(won)
	:: else
	fi;
	/* Rounds are unbounded in theory; RACES_MAX in the code. */
	n++;
	if
	:: n < ROUNDS -> goto again
	:: else -> goto done
	fi;

done:
	ended++
}

init {
	byte i, j, live;

	atomic {
		if
		:: OLD > 0 ->
			state[0] = STATE(LIVE, 1, OLD - 1);
			named[0] = 1;
			key[0] = 9
		:: else
		fi;
		i = (OLD > 0 -> 1 : 0);
		do
		:: FULL && i < SLOTS ->
			state[i] = STATE(LIVE, 1, 0);
			key[i] = 20 + i;
			i++
		:: else -> break
		od;
		run worker(5);
		if
		:: KEYS == 1 -> run worker(9)
		:: else -> run worker(5)
		fi;
		if
		:: N > 2 -> run worker(5)
		:: else
		fi
	};
	ended == N;
	d_step {
		assert(passed[5] <= 1);
		assert(passed[9] <= (OLD == 2 -> 0 : 1));
		i = 0;
		do
		:: i < SLOTS ->
			assert(KIND(state[i]) != CLAIMED);
			j = 0;
			do
			:: j < i ->
				assert(!(KIND(state[i]) == LIVE &&
				    KIND(state[j]) == LIVE &&
				    key[i] == key[j]));
				j++
			:: else -> break
			od;
			i++
		:: else -> break
		od
	}
}
