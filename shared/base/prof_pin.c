
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_base.h"

#include <dlfcn.h>


void
prof_pin(void)
{
    void     *handle;
    Dl_info   info;

    static int  pinned;

    if (pinned || dladdr(&pinned, &info) == 0) {
        return;
    }

    handle = dlopen(info.dli_fname, RTLD_NOW|RTLD_NOLOAD|RTLD_NODELETE);

    if (handle) {
        (void) dlclose(handle);
    }

    pinned = 1;
}
