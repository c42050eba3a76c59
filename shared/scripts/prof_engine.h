
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The engines: each knows one interpreter, and walks its stacks in the signal
 * handler.  An engine is on if its interpreter is loaded and has the layout
 * that the engine expects.
 *
 * This process only reads what an interpreter has: it neither calls the
 * interpreter nor makes a machine of it.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#ifndef _PROF_ENGINE_H_INCLUDED_
#define _PROF_ENGINE_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_unwind.h"


typedef struct {
    const char  *name;          /* of the interpreter */

    /*
     * Finds the interpreter among the loaded objects and verifies its layout.
     * It makes a trial (prof_trial.h) only if "trials" is not 0.  Returns
     * PROF_OK, with *code set, and with the parts that work in *state;
     * PROF_LIMIT if the interpreter is not loaded; or PROF_ERROR, with the
     * reason in *state why the interpreter cannot be used.  *state is a static
     * text.
     */

    int        (*attach)(prof_unwind_t *u, int trials,
                         prof_engine_code_t *code, const char **state);
} prof_engine_t;


PROF_HIDDEN_BEGIN

extern const prof_engine_t  prof_luajit_engine;
extern const prof_engine_t  prof_njs_engine;
extern const prof_engine_t  prof_perl_engine;

/* the state of an interpreter that was not there when trials were made */
extern const char  prof_engine_late[];

/*
 * Returns the first object, from number *next on, whose path contains the part.
 * Sets *next to the number after this object.  Returns NULL if there is no such
 * object.  The objects of two consecutive snapshots are the same if their
 * addresses are: an object that another build has replaced has another address.
 */
const prof_object_t *prof_engine_object(const prof_unwind_t *u,
    const char *part, uint32_t *next);

/*
 * Returns the address with the mark of its object.  While no addresses are
 * sampled, all loads of an object have the same mark.
 */
uintptr_t prof_engine_mark(const prof_unwind_t *u, uintptr_t address);

/*
 * Takes the stack of the caller, from its frame up to top, as a signal handler
 * would do there with this engine alone.  The engines of the snapshot remain.
 * Returns the number of addresses; pcs has space for PROF_MAX_DEPTH.
 */
uint32_t prof_engine_take(prof_unwind_t *u, const prof_engine_code_t *code,
    prof_walk_cache_t *cache, uintptr_t top, uintptr_t *pcs);

/*
 * Prepares new unwind tables before their first use.  Without "trials", an
 * interpreter that was not there in an earlier call with them is off.
 */
void prof_engines_attach(prof_unwind_t *u, int trials);

/*
 * Returns the state of engine number i when the last tables were made, a
 * static text, or NULL if its interpreter is not loaded.  Sets *name to the
 * name of the interpreter, or to NULL if there are fewer engines.
 */
const char *prof_engines_state(uint32_t i, const char **name);

PROF_HIDDEN_END


#endif /* _PROF_ENGINE_H_INCLUDED_ */
