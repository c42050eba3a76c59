
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "scripts/prof_lua_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>


typedef struct {
    const char  *name;
    size_t       offset;        /* in prof_lua_api_t */
} prof_lua_symbol_t;


static void prof_lua_place(const prof_lua_debug_t *ar, prof_script_t *place);


static const prof_lua_symbol_t  prof_lua_symbols[] = {
    { "lua_getstack", offsetof(prof_lua_api_t, getstack) },
    { "lua_getinfo", offsetof(prof_lua_api_t, getinfo) },
    { "lua_status", offsetof(prof_lua_api_t, status) },
    { "lua_type", offsetof(prof_lua_api_t, type) },
    { "lua_gettop", offsetof(prof_lua_api_t, gettop) },
    { "lua_settop", offsetof(prof_lua_api_t, settop) },
    { "lua_pushlightuserdata", offsetof(prof_lua_api_t, pushlightuserdata) },
    { "lua_rawget", offsetof(prof_lua_api_t, rawget) },
    { "lua_rawgeti", offsetof(prof_lua_api_t, rawgeti) },
    { "lua_tothread", offsetof(prof_lua_api_t, tothread) },
    { "lua_getexdata", offsetof(prof_lua_api_t, getexdata) },
    { "lua_getexdata2", offsetof(prof_lua_api_t, getexdata2) },
    { "lua_resume", offsetof(prof_lua_api_t, resume) }
};


/*
 * The loader binds a call to the first definition in the global scope, and then
 * to one of the object's dependencies.  If both exist and differ, the process
 * has several interpreters, and the order of loading decides which of them the
 * object calls.
 */

const char *
prof_lua_api_find(prof_lua_api_t *api, void *address)
{
    void        *object, *symbol, *global;
    size_t       i;
    Dl_info      info;
    const char  *err;

    if (dladdr(address, &info) == 0) {
        return "its module is not found";
    }

    /* dlopen() does not find the program by its path */

    object = dlopen(info.dli_fname, RTLD_LAZY|RTLD_NOLOAD);
    if (object == NULL) {
        object = dlopen(NULL, RTLD_LAZY);
    }

    if (object == NULL) {
        return "its module is not found";
    }

    err = NULL;

    if (dlsym(object, "luaJIT_setmode") == NULL) {
        err = "the interpreter is not LuaJIT";
    }

    for (i = 0;
         err == NULL
         && i < sizeof(prof_lua_symbols) / sizeof(prof_lua_symbols[0]);
         i++)
    {
        symbol = dlsym(object, prof_lua_symbols[i].name);
        global = dlsym(RTLD_DEFAULT, prof_lua_symbols[i].name);

        if (symbol == NULL) {
            err = "LuaJIT is not OpenResty's, or is too old";

        } else if (global && global != symbol) {
            err = "several interpreters are loaded";
        }

        memcpy((char *) api + prof_lua_symbols[i].offset, &symbol,
               sizeof(void *));
    }

    (void) dlclose(object);

    return err;
}


uint32_t
prof_lua_stack(const prof_lua_api_t *api, prof_lua_state_t *L,
    prof_script_t *places, uint32_t max)
{
    uint32_t          n;
    prof_lua_debug_t  ar;

    for (n = 0; n < max && api->getstack(L, n, &ar); n++) {

        if (api->getinfo(L, "nSl", &ar) == 0) {
            break;
        }

        prof_lua_place(&ar, &places[n]);
    }

    return n;
}


/*
 * A function of C has a name, but no place in a script.  A source that begins
 * with "@" is a file, and one that begins with "=" is a name that the loader of
 * the script chose.  Any other source is the script's text: its first line is
 * shown.
 */

static void
prof_lua_place(const prof_lua_debug_t *ar, prof_script_t *place)
{
    static const char  main_chunk[] = "main chunk";

    memset(place, 0, sizeof(prof_script_t));

    if (ar->name && ar->namewhat[0]) {
        place->function = ar->name;
        place->function_len = strlen(ar->name);

    } else if (ar->what[0] == 'm') {
        place->function = main_chunk;
        place->function_len = sizeof(main_chunk) - 1;
    }

    if (ar->what[0] == 'C') {
        return;
    }

    place->file = ar->source;
    place->file_len = strcspn(ar->source, "\n");

    if (ar->source[0] == '@' || ar->source[0] == '=') {
        place->file++;
        place->file_len--;
    }

    place->line = ar->currentline > 0 ? ar->currentline : 0;
    place->start_line = ar->linedefined > 0 ? ar->linedefined : 0;
}
