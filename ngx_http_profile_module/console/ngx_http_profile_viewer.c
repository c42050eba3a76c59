
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The viewer: the files of a directory that "make install" fills.  Files that
 * compress well have a compressed copy.
 */


#include "console/ngx_http_profile_routes.h"
#include "core/ngx_http_profile_log_limit.h"


#define NGX_HTTP_PROFILE_VIEWER_MAX  (16 * 1024 * 1024)


static ngx_uint_t ngx_http_profile_viewer_name(ngx_str_t *name);
static ngx_uint_t ngx_http_profile_viewer_hashed(ngx_str_t *name);
static ngx_int_t ngx_http_profile_viewer_read(ngx_http_profile_call_t *call,
    ngx_str_t *dir, const char *suffix, ngx_str_t *body);
static ngx_int_t ngx_http_profile_viewer_file(ngx_http_request_t *r,
    ngx_fd_t fd, u_char *path, ngx_str_t *body);


/* the types of the viewer's files; other files are not served */

static struct {
    ngx_str_t    suffix;
    ngx_str_t    type;
    ngx_uint_t   compressible;
} ngx_http_profile_viewer_types[] = {

    { ngx_string(".html"), ngx_string("text/html; charset=utf-8"), 1 },
    { ngx_string(".js"), ngx_string("text/javascript; charset=utf-8"), 1 },
    { ngx_string(".css"), ngx_string("text/css; charset=utf-8"), 1 },
    { ngx_string(".woff2"), ngx_string("font/woff2"), 0 },
    { ngx_string(".png"), ngx_string("image/png"), 0 },
    { ngx_string(".ico"), ngx_string("image/x-icon"), 0 },

    { ngx_null_string, ngx_null_string, 0 }
};


char *
ngx_http_profile_viewer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t        *value, index;
    ngx_file_info_t   fi;

    if (plcf->viewer.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    plcf->viewer = value[1];

    if (ngx_strcmp(value[1].data, "off") == 0) {
        plcf->viewer.len = 0;
        return NGX_CONF_OK;
    }

    if (ngx_conf_full_name(cf->cycle, &plcf->viewer, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    index.len = plcf->viewer.len + sizeof("/index.html") - 1;
    index.data = ngx_pnalloc(cf->pool, index.len + 1);
    if (index.data == NULL) {
        return NGX_CONF_ERROR;
    }

    (void) ngx_sprintf(index.data, "%V/index.html%Z", &plcf->viewer);

    if (ngx_file_info(index.data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "invalid value \"%V\" in \"%V\" directive, "
                           "it must be a directory that \"make viewer\" has "
                           "made, or \"off\": \"%V\"",
                           &value[1], &cmd->name, &index);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * Finds the directory into which "make install" puts the viewer.  The value is
 * empty if the directory does not exist.
 */

ngx_int_t
ngx_http_profile_viewer_default(ngx_conf_t *cf, ngx_str_t *viewer)
{
    u_char           *index;
    ngx_file_info_t   fi;

    ngx_str_set(viewer, "profile_viewer");

    if (ngx_conf_full_name(cf->cycle, viewer, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    index = ngx_pnalloc(cf->pool, viewer->len + sizeof("/index.html"));
    if (index == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_sprintf(index, "%V/index.html%Z", viewer);

    if (ngx_file_info(index, &fi) == NGX_FILE_ERROR) {
        viewer->len = 0;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_profile_console_viewer(ngx_http_request_t *r)
{
    ngx_http_profile_srv_conf_t  *pscf;

    pscf = ngx_http_get_module_srv_conf(r, ngx_http_profile_module);

    return pscf->viewer && pscf->viewer->len;
}


ngx_int_t
ngx_http_profile_viewer_route(ngx_http_profile_call_t *call)
{
    ngx_int_t                     rc;
    ngx_str_t                    *name, *suffix;
    ngx_uint_t                    i;
    ngx_http_profile_answer_t     answer;
    ngx_http_profile_loc_conf_t  *plcf;

    name = &call->rest;

    plcf = ngx_http_get_module_loc_conf(call->request,
                                        ngx_http_profile_module);

    if (plcf->viewer.len == 0) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                          "the viewer is not installed, see \"make viewer\" "
                          "and the \"profile_viewer\" directive");
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    for (i = 0; ngx_http_profile_viewer_types[i].suffix.len; i++) {
        suffix = &ngx_http_profile_viewer_types[i].suffix;

        if (name->len > suffix->len
            && ngx_strncmp(name->data + name->len - suffix->len,
                           suffix->data, suffix->len)
               == 0)
        {
            answer.type = ngx_http_profile_viewer_types[i].type;
            answer.compressible =
                                ngx_http_profile_viewer_types[i].compressible;
            break;
        }
    }

    rc = NGX_DECLINED;

    if (answer.type.len && ngx_http_profile_viewer_name(name)) {

        if (answer.compressible
            && ngx_http_profile_accept_gzip(call->request))
        {
            rc = ngx_http_profile_viewer_read(call, &plcf->viewer, ".gz",
                                              &answer.body);
            answer.gzipped = (rc == NGX_OK);
        }

        if (rc == NGX_DECLINED) {
            rc = ngx_http_profile_viewer_read(call, &plcf->viewer, "",
                                              &answer.body);
        }
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                    "the viewer has no file \"%V\"", name);
    }

    if (rc != NGX_OK) {
        return ngx_http_profile_answer_error(call,
                          NGX_HTTP_INTERNAL_SERVER_ERROR,
                          "the viewer's file \"%V\" cannot be read, see the "
                          "error log", name);
    }

    answer.csp = NGX_HTTP_PROFILE_CSP_VIEWER;
    answer.framed = 1;
    answer.immutable = ngx_http_profile_viewer_hashed(name);

    return ngx_http_profile_answer(call, &answer);
}


/* returns whether the name is plain, so that it cannot leave the directory */

static ngx_uint_t
ngx_http_profile_viewer_name(ngx_str_t *name)
{
    size_t  i;
    u_char  ch;

    for (i = 0; i < name->len; i++) {
        ch = name->data[i];

        if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')
              || (ch >= '0' && ch <= '9')
              || ch == '-' || ch == '_' || (ch == '.' && i)))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * Returns whether the name contains a hash, as in "speedscope-Y2522XSH.js".
 * Another version of such a file has another name.
 */

static ngx_uint_t
ngx_http_profile_viewer_hashed(ngx_str_t *name)
{
    size_t  i, n;
    u_char  ch;

    n = 0;

    for (i = 0; i < name->len; i++) {
        ch = name->data[i];

        if (ch == '-') {
            n = 1;

        } else if (ch == '.' && n == 9) {
            return 1;

        } else if (n && ((ch >= 'A' && ch <= 'Z')
                         || (ch >= '0' && ch <= '9')))
        {
            n++;

        } else {
            n = 0;
        }
    }

    return 0;
}


/* returns NGX_DECLINED if the file does not exist */

static ngx_int_t
ngx_http_profile_viewer_read(ngx_http_profile_call_t *call, ngx_str_t *dir,
    const char *suffix, ngx_str_t *body)
{
    u_char              *path;
    ngx_fd_t             fd;
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = call->request;

    path = ngx_pnalloc(r->pool, dir->len + call->rest.len + sizeof("/.gz"));
    if (path == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_sprintf(path, "%V/%V%s%Z", dir, &call->rest, suffix);

    fd = ngx_open_file(path, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {

        if (ngx_errno == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, ngx_errno,
                             ngx_open_file_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    rc = ngx_http_profile_viewer_file(r, fd, path, body);

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_http_profile_log(NGX_LOG_ALERT, r->connection->log, ngx_errno,
                             ngx_close_file_n " \"%s\" failed", path);
    }

    return rc;
}


static ngx_int_t
ngx_http_profile_viewer_file(ngx_http_request_t *r, ngx_fd_t fd, u_char *path,
    ngx_str_t *body)
{
    size_t           size;
    ssize_t          n;
    ngx_file_info_t  fi;

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)
        || ngx_file_size(&fi) > NGX_HTTP_PROFILE_VIEWER_MAX)
    {
        ngx_http_profile_log(NGX_LOG_ERR, r->connection->log, 0,
                             "profile: \"%s\" is not a file of the viewer",
                             path);
        return NGX_ERROR;
    }

    size = (size_t) ngx_file_size(&fi);

    body->data = ngx_pnalloc(r->pool, size + 1);
    if (body->data == NULL) {
        return NGX_ERROR;
    }

    for (body->len = 0; body->len < size; body->len += n) {
        n = ngx_read_fd(fd, body->data + body->len, size - body->len);

        if (n <= 0) {
            ngx_http_profile_log(NGX_LOG_ERR, r->connection->log,
                                 n < 0 ? ngx_errno : 0,
                                 ngx_read_fd_n " \"%s\" failed", path);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
