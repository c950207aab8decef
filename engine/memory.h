/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the engine's memory comes from: the caller's hooks or the default.
 */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
	void *(*alloc)(size_t size, size_t align, void *context);
	void (*free)(void *memory, size_t size, void *context);
	void *context;
	_Atomic uint64_t bytes; /* taken and not given back */
};

/* NULL hooks: the default. */
void
memory_init(struct memory *m,
    void *(*alloc)(size_t size, size_t align, void *context),
    void (*free)(void *memory, size_t size, void *context), void *context);

/* Zeroed, aligned to a cache line. => NULL if there is none. */
void *
memory_take(struct memory *m, size_t size);

void
memory_give(struct memory *m, void *memory, size_t size);

#endif
