
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Coroutines that the module ngx_http_lua_module (ngx_lua) resumes.  Whatever
 * wakes Lua code, a semaphore, a thread of a pool or another light thread,
 * ngx_lua continues with a call of lua_resume().  While the worker is armed,
 * these calls go to ngx_http_profile_turn.c first.
 *
 * Only the word through which ngx_lua calls lua_resume() is replaced.  If
 * ngx_lua and LuaJIT are linked with each other statically, there is no such
 * word, and turns are found later (ngx_http_profile_turn.c).
 */


#include "loop/ngx_http_profile_loop_private.h"

#include <dlfcn.h>


static void ngx_http_profile_resume_find(void);


ngx_http_profile_resume_t  ngx_http_profile_resumes;


void
ngx_http_profile_resume_arm(prof_lua_resume_pt fn)
{
    ngx_http_profile_resume_t  *resume;

    resume = &ngx_http_profile_resumes;

    if (resume->cycle != ngx_cycle) {
        ngx_http_profile_resume_find();
    }

    if (resume->redirect.at == NULL) {
        return;
    }

    resume->thread = pthread_self();

    if (prof_redirect_set(&resume->redirect, (void *) fn) != PROF_OK) {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, ngx_errno,
                      "profile: calls of lua_resume() cannot be redirected");
    }
}


void
ngx_http_profile_resume_disarm(void)
{
    if (ngx_http_profile_resumes.redirect.at) {
        (void) prof_redirect_set(&ngx_http_profile_resumes.redirect, NULL);
    }
}


/* a word of an object that may be unloaded is not used: the object is held */

static void
ngx_http_profile_resume_find(void)
{
    Dl_info                     info;
    ngx_uint_t                  i;
    ngx_module_t              **modules;
    ngx_http_profile_resume_t  *resume;

    resume = &ngx_http_profile_resumes;

    ngx_memzero(resume, sizeof(ngx_http_profile_resume_t));

    resume->cycle = (ngx_cycle_t *) ngx_cycle;

    modules = resume->cycle->modules;

    for (i = 0; modules[i]; i++) {
        if (ngx_strcmp(modules[i]->name, "ngx_http_lua_module") == 0) {
            break;
        }
    }

    if (modules[i] == NULL
        || prof_lua_find(modules[i], &resume->resume) != NULL)
    {
        return;
    }

    /* the object of the module makes the calls */

    if (dladdr(modules[i], &info) == 0) {
        return;
    }

    (void) dlopen(info.dli_fname, RTLD_LAZY|RTLD_NOLOAD);

    if (prof_redirect_find(&resume->redirect, "lua_resume", modules[i],
                           (void *) resume->resume)
        != PROF_OK)
    {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                      "profile: calls of lua_resume() are not found");
    }
}


ngx_uint_t
ngx_http_profile_resumes_in(uintptr_t function)
{
    prof_redirect_t  *rd;

    rd = &ngx_http_profile_resumes.redirect;

    return rd->at && rd->set && function >= rd->start && function < rd->end;
}
