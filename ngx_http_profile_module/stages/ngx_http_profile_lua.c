
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The Lua code that waits in a gap: the stack of a coroutine of the module
 * ngx_http_lua_module (ngx_lua).  The stack is taken after the gap, before the
 * coroutine is resumed, so only gaps of captures have a cost.
 *
 * ngx_lua has a context for each coroutine of a request ("co_ctx").  The
 * co_ctx of the entry coroutine is in ngx_lua's context of the request, all
 * others are in a list.  This file assumes nothing about the layout of these
 * structures.  It recognizes their parts by values:
 *
 *     machine     a pointer in the main configuration of ngx_lua, to a state
 *                 whose registry has the table of anchors
 *     co_ctx      the second user pointer of the coroutine (lua_getexdata2())
 *     coroutine   a word of the co_ctx
 *     anchor      a number in the co_ctx, under which the table of anchors has
 *                 the coroutine: entry coroutines and light threads have one,
 *                 until they end
 *     list        a list of nginx, in the pool of the request
 *     pending     the co_ctx contains the address of a function of ngx_lua that
 *                 would cancel the wait of the coroutine
 *     parent      another co_ctx of the request
 *
 * A pointer to a coroutine is used only if the coroutine is alive: it has an
 * anchor, or ngx_lua is about to resume it, or it waits for such a coroutine.
 *
 * Nothing here calls a function of ngx_lua or of LuaJIT: their memory is read
 * (prof_lua.h).
 */


#include "stages/ngx_http_profile_stages.h"

#include <dlfcn.h>
#include <malloc.h>


/* the parts of ngx_lua's structures that are searched, in bytes */

#define NGX_HTTP_PROFILE_LUA_CONF    256
#define NGX_HTTP_PROFILE_LUA_HEAD    128
#define NGX_HTTP_PROFILE_LUA_CTX     1024
#define NGX_HTTP_PROFILE_LUA_CO_CTX  256

/* maximum sizes of a list */

#define NGX_HTTP_PROFILE_LUA_SIZE    1024
#define NGX_HTTP_PROFILE_LUA_PART    64
#define NGX_HTTP_PROFILE_LUA_COS     256

#define NGX_HTTP_PROFILE_LUA_NESTED  8

/* after so many unknown gaps, the module no longer looks for Lua code */

#define NGX_HTTP_PROFILE_LUA_TRIES   16


typedef struct {
    ngx_cycle_t           *cycle;       /* of the members below */
    ngx_uint_t             index;       /* of ngx_lua's contexts */
    const char            *err;         /* NULL: stacks can be taken */
    uintptr_t              code;        /* a function of ngx_lua */
    void                  *key;         /* of the anchors in the registry */
    void                  *anchors;     /* their table, or NULL */

    /*
     * offsets for an entry coroutine: of its co_ctx in the context of a
     * request, and of the coroutine in its co_ctx
     */

    size_t                 entry;
    size_t                 co;
    ngx_uint_t             tries;       /* without success */
    unsigned               known:1;
} ngx_http_profile_lua_t;


/* one request, and the memory of its context */

typedef struct {
    ngx_http_request_t    *request;
    u_char                *ctx;
    u_char                *last;
    ngx_list_t            *list;        /* or NULL */
    u_char                *entry;       /* co_ctx with an anchor, or NULL */
} ngx_http_profile_lua_request_t;


static const char *ngx_http_profile_lua_attach(void);
static const char *ngx_http_profile_lua_find(ngx_http_profile_lua_t *lua,
    ngx_module_t *module);
static void ngx_http_profile_lua_unknown(
    ngx_http_profile_lua_request_t *lr);
static ngx_uint_t ngx_http_profile_lua_request(
    ngx_http_profile_lua_request_t *lr, ngx_http_request_t *r);
static void *ngx_http_profile_lua_anchors(ngx_http_request_t *r);
static void ngx_http_profile_lua_entry(ngx_http_profile_lua_request_t *lr);
static void ngx_http_profile_lua_learn(ngx_http_profile_lua_request_t *lr);
static void ngx_http_profile_lua_list(ngx_http_profile_lua_request_t *lr);
static ngx_uint_t ngx_http_profile_lua_is_list(
    ngx_http_profile_lua_request_t *lr, ngx_list_t *list);
static u_char *ngx_http_profile_lua_pool_end(ngx_pool_t *pool, void *p);
static ngx_uint_t ngx_http_profile_lua_anchored(
    ngx_http_profile_lua_request_t *lr, u_char *p, size_t len, void *co);
static u_char *ngx_http_profile_lua_woken(ngx_http_profile_lua_request_t *lr,
    ngx_http_profile_wake_t *wake);
static u_char *ngx_http_profile_lua_resumed(
    ngx_http_profile_lua_request_t *lr, void *co);
static u_char *ngx_http_profile_lua_co_ctx(ngx_http_profile_lua_request_t *lr,
    ngx_uint_t i);
static ngx_uint_t ngx_http_profile_lua_waits(
    ngx_http_profile_lua_request_t *lr, u_char *co_ctx,
    ngx_http_profile_wake_t *wake);
static ngx_uint_t ngx_http_profile_lua_pending(
    ngx_http_profile_lua_request_t *lr, u_char *co_ctx);
static ngx_uint_t ngx_http_profile_lua_has(ngx_http_profile_lua_request_t *lr,
    u_char *co_ctx, void *p);
static u_char *ngx_http_profile_lua_parent(ngx_http_profile_lua_request_t *lr,
    u_char *co_ctx);
static ngx_uint_t ngx_http_profile_lua_walk(ngx_http_profile_lua_request_t *lr,
    u_char *co_ctx, prof_capture_t *c, uintptr_t *frames, ngx_uint_t max);
static prof_lua_state_t *ngx_http_profile_lua_coroutine(
    ngx_http_profile_lua_request_t *lr, u_char *co_ctx);


static ngx_http_profile_lua_t  ngx_http_profile_lua;


#define ngx_http_profile_lua_word(p)  (*(void **) (p))


const char *
ngx_http_profile_lua_state(void)
{
    const char  *err;

    err = ngx_http_profile_lua_attach();

    if (err) {
        return err;
    }

    return ngx_http_profile_lua.known ? "shown"
                                      : "no coroutine was recognized yet";
}


/* returns NULL, or why stacks cannot be taken */

static const char *
ngx_http_profile_lua_attach(void)
{
    ngx_uint_t               i;
    ngx_module_t           **modules;
    ngx_http_profile_lua_t  *lua;

    lua = &ngx_http_profile_lua;

    if (lua->cycle == ngx_cycle) {
        return lua->err;
    }

    ngx_memzero(lua, sizeof(ngx_http_profile_lua_t));

    lua->cycle = (ngx_cycle_t *) ngx_cycle;
    lua->err = "there is no Lua";

    modules = lua->cycle->modules;

    for (i = 0; modules[i]; i++) {
        if (ngx_strcmp(modules[i]->name, "ngx_http_lua_module") == 0) {
            lua->err = ngx_http_profile_lua_find(lua, modules[i]);
            break;
        }
    }

    return lua->err;
}


static const char *
ngx_http_profile_lua_find(ngx_http_profile_lua_t *lua, ngx_module_t *module)
{
    const char          *err;
    ngx_http_module_t   *ctx;
    prof_lua_resume_pt   resume;

    err = prof_lua_find(module, &resume);
    if (err) {
        return err;
    }

    /* a variable of ngx_lua, whose address is its key of anchors */

    lua->key = dlsym(RTLD_DEFAULT, "ngx_http_lua_coroutines_key");

    if (lua->key == NULL) {
        return "ngx_http_lua_module is too old";
    }

    ctx = module->ctx;

    lua->code = (uintptr_t) ctx->postconfiguration;
    lua->index = module->ctx_index;

    return NULL;
}


ngx_uint_t
ngx_http_profile_lua_stack(ngx_http_profile_track_t *tr,
    ngx_http_profile_wake_t *wake, uintptr_t *frames, ngx_uint_t max)
{
    u_char                          *co_ctx;
    ngx_uint_t                       n;
    ngx_http_profile_subrequest_t   *sr;
    ngx_http_profile_lua_request_t   lr;

    /* code that has run already has perhaps continued what waited */

    if (ngx_http_profile_lua_attach()
        || (wake && wake->found && !wake->scripted))
    {
        return 0;
    }

    /* the coroutine that is resumed now; without a wake, any that waits */

    for (sr = wake ? tr->subrequests : NULL; sr; sr = sr->next) {

        if (sr->request->done
            || !ngx_http_profile_lua_request(&lr, sr->request))
        {
            continue;
        }

        co_ctx = wake->script
                 ? ngx_http_profile_lua_resumed(&lr, wake->script)
                 : ngx_http_profile_lua_woken(&lr, wake);

        if (co_ctx) {
            return ngx_http_profile_lua_walk(&lr, co_ctx, tr->capture, frames,
                                             max);
        }
    }

    for (sr = tr->subrequests; sr; sr = sr->next) {

        if (sr->request->done
            || !ngx_http_profile_lua_request(&lr, sr->request)
            || lr.entry == NULL)
        {
            continue;
        }

        n = ngx_http_profile_lua_walk(&lr, lr.entry, tr->capture, frames,
                                      max);

        if (n) {
            return n;
        }
    }

    return 0;
}


/*
 * The context has a coroutine of the request that waits, and its place was not
 * recognized: the structures of another build may differ.  Without the code
 * cache, a request has a machine of its own.
 */

static void
ngx_http_profile_lua_unknown(ngx_http_profile_lua_request_t *lr)
{
    u_char                  *p, *last;
    prof_lua_coroutine_t     c;
    ngx_http_profile_lua_t  *lua;

    lua = &ngx_http_profile_lua;
    last = ngx_min(lr->ctx + NGX_HTTP_PROFILE_LUA_CTX, lr->last);

    for (p = lr->ctx; p + sizeof(void *) <= last; p += sizeof(void *)) {

        if (prof_lua_coroutine(ngx_http_profile_lua_word(p), &c) == PROF_OK
            && c.yields && c.exdata == lr->request
            && prof_lua_table(ngx_http_profile_lua_word(p), lua->key)
               == lua->anchors)
        {
            break;
        }
    }

    if (p + sizeof(void *) > last) {
        return;
    }

    if (++lua->tries == NGX_HTTP_PROFILE_LUA_TRIES) {
        lua->err = "off: the structures of ngx_http_lua_module are not "
                   "recognized";

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "profile: Lua code that waits is not shown: the "
                      "structures of ngx_http_lua_module are not recognized");
    }
}


/* returns 0 if no coroutine of the request is recognized */

static ngx_uint_t
ngx_http_profile_lua_request(ngx_http_profile_lua_request_t *lr,
    ngx_http_request_t *r)
{
    ngx_http_profile_lua_t  *lua;

    lua = &ngx_http_profile_lua;

    lr->request = r;
    lr->list = NULL;
    lr->entry = NULL;

    lr->ctx = r->ctx ? r->ctx[lua->index] : NULL;
    if (lr->ctx == NULL) {
        return 0;
    }

    lr->last = ngx_http_profile_lua_pool_end(r->pool, lr->ctx);
    if (lr->last == NULL) {
        return 0;
    }

    if (lua->anchors == NULL) {
        lua->anchors = ngx_http_profile_lua_anchors(r);
    }

    if (lua->anchors == NULL) {
        return 0;
    }

    ngx_http_profile_lua_entry(lr);

    if (!lua->known) {
        ngx_http_profile_lua_unknown(lr);
        return 0;
    }

    ngx_http_profile_lua_list(lr);

    return 1;
}


/* the table exists as long as the machine, which is that of the cycle */

static void *
ngx_http_profile_lua_anchors(ngx_http_request_t *r)
{
    void    *table;
    u_char  *conf, *last, *p;

    conf = r->main_conf[ngx_http_profile_lua.index];
    if (conf == NULL) {
        return NULL;
    }

    last = ngx_http_profile_lua_pool_end(ngx_cycle->pool, conf);

    for (p = conf;
         p < conf + NGX_HTTP_PROFILE_LUA_CONF && p + sizeof(void *) <= last;
         p += sizeof(void *))
    {
        table = prof_lua_table(ngx_http_profile_lua_word(p),
                               ngx_http_profile_lua.key);
        if (table) {
            return table;
        }
    }

    return NULL;
}


/*
 * Returns the end of the pool's memory that contains the address, or NULL.
 * With NGX_DEBUG_PALLOC each allocation has a block of its own.
 */

static u_char *
ngx_http_profile_lua_pool_end(ngx_pool_t *pool, void *p)
{
    u_char            *end;
    ngx_pool_t        *block;
    ngx_pool_large_t  *l;

    for (block = pool; block; block = block->d.next) {
        if ((u_char *) p >= (u_char *) block && (u_char *) p < block->d.end) {
            return block->d.end;
        }
    }

    for (l = pool->large; l; l = l->next) {

        if (l->alloc == NULL || (u_char *) p < (u_char *) l->alloc) {
            continue;
        }

        end = (u_char *) l->alloc + malloc_usable_size(l->alloc);

        if ((u_char *) p < end) {
            return end;
        }
    }

    return NULL;
}


static void
ngx_http_profile_lua_entry(ngx_http_profile_lua_request_t *lr)
{
    void                    *co;
    u_char                  *co_ctx;
    ngx_http_profile_lua_t  *lua;

    lua = &ngx_http_profile_lua;

    if (!lua->known) {
        ngx_http_profile_lua_learn(lr);
        return;
    }

    co_ctx = lr->ctx + lua->entry;

    if (co_ctx + lua->co + sizeof(void *) > lr->last) {
        return;
    }

    co = ngx_http_profile_lua_word(co_ctx + lua->co);

    if (ngx_http_profile_lua_anchored(lr, co_ctx, NGX_HTTP_PROFILE_LUA_CO_CTX,
                                      co))
    {
        lr->entry = co_ctx;
    }
}


/* the first coroutine in the registry shows the places */

static void
ngx_http_profile_lua_learn(ngx_http_profile_lua_request_t *lr)
{
    u_char                  *co_ctx, *p;
    prof_lua_coroutine_t     c;
    ngx_http_profile_lua_t  *lua;

    lua = &ngx_http_profile_lua;

    for (p = lr->ctx;
         p < lr->ctx + NGX_HTTP_PROFILE_LUA_HEAD
         && p + sizeof(void *) <= lr->last;
         p += sizeof(void *))
    {
        if (!ngx_http_profile_lua_anchored(lr, p, NGX_HTTP_PROFILE_LUA_CO_CTX,
                                           ngx_http_profile_lua_word(p))
            || prof_lua_coroutine(ngx_http_profile_lua_word(p), &c) != PROF_OK)
        {
            continue;
        }

        co_ctx = c.exdata2;

        if (co_ctx < lr->ctx || co_ctx > p) {
            continue;
        }

        lua->entry = co_ctx - lr->ctx;
        lua->co = p - co_ctx;
        lua->known = 1;

        lr->entry = co_ctx;
        return;
    }
}


/* returns whether the coroutine has an anchor whose number is in the memory */

static ngx_uint_t
ngx_http_profile_lua_anchored(ngx_http_profile_lua_request_t *lr, u_char *p,
    size_t len, void *co)
{
    return prof_lua_anchored(ngx_http_profile_lua.anchors, co, p,
                             ngx_min(p + len, lr->last));
}


static void
ngx_http_profile_lua_list(ngx_http_profile_lua_request_t *lr)
{
    u_char      *p;
    ngx_list_t  *list;

    for (p = lr->ctx;
         p < lr->ctx + NGX_HTTP_PROFILE_LUA_HEAD
         && p + sizeof(void *) <= lr->last;
         p += sizeof(void *))
    {
        list = ngx_http_profile_lua_word(p);

        if (ngx_http_profile_lua_is_list(lr, list)) {
            lr->list = list;
            return;
        }
    }
}


static ngx_uint_t
ngx_http_profile_lua_is_list(ngx_http_profile_lua_request_t *lr,
    ngx_list_t *list)
{
    u_char      *end;
    ngx_pool_t  *pool;

    if ((uintptr_t) list % sizeof(void *)) {
        return 0;
    }

    pool = lr->request->pool;
    end = ngx_http_profile_lua_pool_end(pool, list);

    return end && end - (u_char *) list >= (ssize_t) sizeof(ngx_list_t)
           && list->pool == pool
           && list->nalloc > 0 && list->nalloc <= NGX_HTTP_PROFILE_LUA_PART
           && list->size <= NGX_HTTP_PROFILE_LUA_SIZE
           && list->size >= ngx_http_profile_lua.co + sizeof(void *)
           && list->size % sizeof(void *) == 0;
}


/* returns the coroutine that the event resumes, or NULL */

static u_char *
ngx_http_profile_lua_woken(ngx_http_profile_lua_request_t *lr,
    ngx_http_profile_wake_t *wake)
{
    u_char      *co_ctx;
    ngx_uint_t   i;

    /* without a list there is only the entry coroutine */

    for (i = 0; lr->list && i < NGX_HTTP_PROFILE_LUA_COS; i++) {

        co_ctx = ngx_http_profile_lua_co_ctx(lr, i);

        if (co_ctx == NULL) {
            break;
        }

        if (ngx_http_profile_lua_waits(lr, co_ctx, wake)) {
            return co_ctx;
        }
    }

    return NULL;
}


/* returns the co_ctx of a coroutine that is resumed now, or NULL */

static u_char *
ngx_http_profile_lua_resumed(ngx_http_profile_lua_request_t *lr, void *co)
{
    prof_lua_coroutine_t  c;

    if (prof_lua_coroutine(co, &c) != PROF_OK || c.exdata != lr->request) {
        return NULL;
    }

    /* without a list there is only the entry coroutine */

    return (lr->list || c.exdata2 == lr->entry) ? c.exdata2 : NULL;
}


/* returns a co_ctx; number 0 is the entry coroutine, which may have ended */

static u_char *
ngx_http_profile_lua_co_ctx(ngx_http_profile_lua_request_t *lr, ngx_uint_t i)
{
    ngx_list_part_t  *part;

    if (i == 0) {
        return lr->ctx + ngx_http_profile_lua.entry;
    }

    i--;

    for (part = &lr->list->part; part; part = part->next) {

        if (i < part->nelts) {
            return (u_char *) part->elts + i * lr->list->size;
        }

        i -= part->nelts;
    }

    return NULL;
}


/*
 * Returns whether the coroutine waits for the event: the event is in its
 * co_ctx, or the co_ctx contains the event's data.
 */

static ngx_uint_t
ngx_http_profile_lua_waits(ngx_http_profile_lua_request_t *lr, u_char *co_ctx,
    ngx_http_profile_wake_t *wake)
{
    void        *data[3];
    u_char      *event;
    ngx_uint_t   i;

    event = (u_char *) wake->event;

    if (event >= co_ctx && event < co_ctx + lr->list->size) {
        return 1;
    }

    data[0] = wake->event ? wake->event->data : NULL;
    data[1] = wake->connection ? wake->connection->data : NULL;
    data[2] = wake->resolver ? wake->resolver->data : NULL;

    for (i = 0; i < 3; i++) {

        if (data[i]
            && (data[i] == co_ctx
                || ngx_http_profile_lua_has(lr, co_ctx, data[i]))
            && ngx_http_profile_lua_pending(lr, co_ctx))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * The function that cancels a wait is above the timer of a sleep.  The timer's
 * data is the co_ctx, and its handler remains when a sleep has ended.
 */

static ngx_uint_t
ngx_http_profile_lua_pending(ngx_http_profile_lua_request_t *lr,
    u_char *co_ctx)
{
    u_char               *p;
    uintptr_t             word;
    const prof_object_t  *object;
    const prof_unwind_t  *u;

    u = prof_process_unwind();

    object = u ? prof_unwind_object(u, ngx_http_profile_lua.code) : NULL;

    for (p = co_ctx;
         object && p < co_ctx + lr->list->size;
         p += sizeof(void *))
    {
        word = (uintptr_t) ngx_http_profile_lua_word(p);

        if (word == (uintptr_t) co_ctx) {
            break;
        }

        if (prof_unwind_object(u, word) == object) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_profile_lua_has(ngx_http_profile_lua_request_t *lr, u_char *co_ctx,
    void *p)
{
    size_t  i;

    for (i = 0; i < lr->list->size; i += sizeof(void *)) {
        if (ngx_http_profile_lua_word(co_ctx + i) == p) {
            return 1;
        }
    }

    return 0;
}


/* takes the stacks of a coroutine and of the coroutines that have resumed it */

static ngx_uint_t
ngx_http_profile_lua_walk(ngx_http_profile_lua_request_t *lr, u_char *co_ctx,
    prof_capture_t *c, uintptr_t *frames, ngx_uint_t max)
{
    ngx_uint_t         depth, n;
    prof_lua_state_t  *co;

    n = 0;

    for (depth = 0; co_ctx && depth < NGX_HTTP_PROFILE_LUA_NESTED; depth++) {

        co = ngx_http_profile_lua_coroutine(lr, co_ctx);
        if (co == NULL) {
            break;
        }

        n += prof_capture_coroutine(c, co, frames + n, max - n);

        if (co_ctx == lr->entry
            || ngx_http_profile_lua_anchored(lr, co_ctx, lr->list->size, co))
        {
            break;
        }

        co_ctx = ngx_http_profile_lua_parent(lr, co_ctx);
    }

    return n;
}


/* returns NULL if the coroutine does not wait, or is not recognized */

static prof_lua_state_t *
ngx_http_profile_lua_coroutine(ngx_http_profile_lua_request_t *lr,
    u_char *co_ctx)
{
    prof_lua_state_t      *co;
    prof_lua_coroutine_t   c;

    co = ngx_http_profile_lua_word(co_ctx + ngx_http_profile_lua.co);

    return (prof_lua_coroutine(co, &c) == PROF_OK && c.yields
            && c.exdata2 == co_ctx && c.exdata == lr->request)
           ? co : NULL;
}


static u_char *
ngx_http_profile_lua_parent(ngx_http_profile_lua_request_t *lr, u_char *co_ctx)
{
    u_char      *parent;
    ngx_uint_t   i;

    for (i = 0; i < NGX_HTTP_PROFILE_LUA_COS; i++) {

        parent = ngx_http_profile_lua_co_ctx(lr, i);

        if (parent == NULL) {
            break;
        }

        if (parent != co_ctx && ngx_http_profile_lua_has(lr, co_ctx, parent)) {
            return parent;
        }
    }

    return NULL;
}
