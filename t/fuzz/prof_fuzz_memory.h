
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hostile memory of an interpreter, for fuzzers of walks of its stacks.  A
 * fuzzer fills the memory with structures that the walk accepts, and then the
 * words of the input replace words of the memory.  An access to a page behind
 * the memory ends the program.
 */


#ifndef _PROF_FUZZ_MEMORY_H_INCLUDED_
#define _PROF_FUZZ_MEMORY_H_INCLUDED_


#include "unwind/prof_walk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


#define FUZZ_MEMORY   0x200000000000
#define FUZZ_SIZE     0x4000

/* nothing else is mapped in this many bytes, and below the sanitizer's memory */

#define FUZZ_APART    0x100000000
#define FUZZ_FOREIGN  0x7fff0000

/* the bits of a pointer, also in a tagged value */

#define FUZZ_POINTER  0x7fffffffffff


typedef struct {
    uint16_t  at;
    uint64_t  value;
} __attribute__((packed)) fuzz_patch_t;


static void fuzz_map(void);
static void fuzz_patch(const uint8_t *data, size_t size);
static int fuzz_foreign(uint32_t at);
static void fuzz_put(uint32_t at, const void *data, size_t size);
static void fuzz_word(uint32_t at, uint64_t value);
static void fuzz_assert(int ok);


static uint8_t  *fuzz_memory;


/*
 * The page behind the memory cannot be accessed.  The address is the same in
 * each run, and far from all other memory: a pointer that an input has changed
 * in part would otherwise refer to memory of the sanitizer.
 */

static void
fuzz_map(void)
{
    fuzz_memory = mmap((void *) FUZZ_MEMORY, FUZZ_SIZE + PROF_WALK_PAGE,
                       PROT_NONE,
                       MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED_NOREPLACE, -1, 0);
    fuzz_assert(fuzz_memory != MAP_FAILED);

    fuzz_assert(mprotect(fuzz_memory, FUZZ_SIZE, PROT_READ|PROT_WRITE) == 0);
}


/* values with the highest bit set are addresses in the memory or behind it */

static void
fuzz_patch(const uint8_t *data, size_t size)
{
    fuzz_patch_t  p;

    for ( /* void */ ; size >= sizeof(p); size -= sizeof(p)) {
        memcpy(&p, data, sizeof(p));
        data += sizeof(p);

        if (p.value >> 63) {
            p.value = (uintptr_t) fuzz_memory
                      + p.value % (FUZZ_SIZE + PROF_WALK_PAGE);
        }

        p.at %= FUZZ_SIZE - 8;

        fuzz_word(p.at, p.value);

        if (fuzz_foreign(p.at)) {
            fuzz_word(p.at, 0);
        }
    }
}


/*
 * Returns whether a word that contains a byte of the word at this place may be
 * a pointer to memory of the sanitizer.  The walk may read all memory that can
 * be read, but the sanitizer ends the program when its own memory is read.
 */

static int
fuzz_foreign(uint32_t at)
{
    uint32_t  i;
    uint64_t  value;

    for (i = at < 7 ? 0 : at - 7; i <= at + 7 && i <= FUZZ_SIZE - 8; i++) {
        memcpy(&value, fuzz_memory + i, sizeof(value));
        value &= FUZZ_POINTER;

        if (value >= FUZZ_FOREIGN
            && (value < FUZZ_MEMORY || value >= FUZZ_MEMORY + FUZZ_APART))
        {
            return 1;
        }
    }

    return 0;
}


static void
fuzz_put(uint32_t at, const void *data, size_t size)
{
    memcpy(fuzz_memory + at, data, size);
}


static void
fuzz_word(uint32_t at, uint64_t value)
{
    fuzz_put(at, &value, sizeof(value));
}


static void
fuzz_assert(int ok)
{
    if (!ok) {
        abort();
    }
}


#endif /* _PROF_FUZZ_MEMORY_H_INCLUDED_ */
