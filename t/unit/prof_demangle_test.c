
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: symbolizer names
 * runs: beside
 */


#include "tap.h"

#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"


#define HASH  "17h0123456789abcdefE"


typedef struct {
    const char  *in;
    const char  *out;
} test_name_t;


static void test_names(const test_name_t *t);


static const test_name_t  rust[] = {
    { "_ZN4core3fmt5Write9write_fmt" HASH, "core::fmt::Write::write_fmt" },
    { "_ZN3foo3bar" HASH ".llvm.1234567", "foo::bar" },
    { "_ZN3foo3bar" HASH ".cold", "foo::bar" },
    { "_ZN4core3ptr22drop_in_place$LT$T$GT$" HASH,
      "core::ptr::drop_in_place<T>" },
    { "_ZN35_$LT$T$u20$as$u20$a..B$LT$C$GT$$GT$1f" HASH,
      "<T as a::B<C>>::f" },
    { "_ZN4test12_$u7b$$u7d$" HASH, NULL },
    { "_RNvC5hello4main", "hello::main" },
    { "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
    { NULL, NULL }
};


/* names that are neither C++ nor Rust, or damaged */

static const test_name_t  fallback[] = {
    { "main", "main" },
    { "_start", "_start" },
    { "_Release", "_Release" },
    { "_register", "_register" },
    { "Z", "Z" },
    { "_", "_" },
    { "", "" },
    { "_Z", "[mangled] _Z" },
    { "_ZN", "[mangled] _ZN" },
    { "_ZNE", "[mangled] _ZNE" },
    { "_ZN5", "[mangled] _ZN5" },
    { "_ZN99999999999999999999a", "[mangled] _ZN99999999999999999999a" },
    { "_Zzz", "[mangled] _Zzz" },
    { "_Zzz@plt", "[mangled] _Zzz@plt" },
    { "__Z3foov", "[mangled] __Z3foov" },
    { "_RNvC5hello", "[mangled] _RNvC5hello" },
    { "_R3", "_R3" },
    { NULL, NULL }
};


static const test_name_t  cxx[] = {
    { "_Z3foov", "foo()" },
    { "_ZN3Foo3barEi", "Foo::bar(int)" },
    { "_Z3foov.cold", "foo() [clone .cold]" },
    { "_ZNSolsEi@plt", "std::ostream::operator<<(int)@plt" },
    { NULL, NULL }
};


int
main(void)
{
    test_names(rust);
    test_names(fallback);
    test_names(cxx);

    ok(prof_mangled("_ZN3foo"), "C++ is mangled");
    ok(prof_mangled("__Z3foo"), "C++ with two underscores is mangled");
    ok(prof_mangled("_R3NvC"), "Rust is mangled");
    ok(!prof_mangled("_r"), "C is not");

    return done_testing();
}


static void
test_names(const test_name_t *t)
{
    char  *name;

    for ( /* void */ ; t->in; t++) {
        name = strdup(t->in);

        is_int(prof_demangle(&name), PROF_OK, "\"%s\" is accepted", t->in);

        if (t->out) {
            is_str(name, t->out, "\"%s\" has its text", t->in);
        }

        ok(!prof_mangled(name), "\"%s\" is not mangled afterwards", t->in);

        free(name);
    }
}
