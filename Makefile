
# Copyright (C) The ngx_http_profile_module authors
#
# For developers; nginx itself builds the module by the "config" script.
# "make help" lists the targets.


CC ?= cc
ifeq ($(origin CC), default)
CC = cc
endif

CFLAGS ?= -O2 -g

# the directory of all built files
BUILD ?= build

# nginx sources: the headers of an installed nginx (package nginx-dev), or a
# complete source tree; make only reads them
NGINX_SRC ?= /usr/share/nginx/src

# the nginx binary that the tests run
NGINX ?= $(or $(TEST_NGINX_BINARY),$(shell                                    \
               PATH=$$PATH:/usr/sbin:/usr/local/sbin command -v nginx))

# tests to run: T=t/profile.t, or those of rooms: ROOM=loop, or CHANGED=1, those
# of what differs from the branch "main"
T ?= t $(BUILD)/t

# installs missing packages; DEPS=: disables this
DEPS ?= tools/install-deps

PROVE ?= prove
PROVE_FLAGS ?=

# the number of parallel processes
JOBS ?= $(shell nproc)


NAME = ngx_http_profile_module
ROOT := $(CURDIR)

override BUILD := $(abspath $(BUILD))
override NGINX_SRC := $(abspath $(NGINX_SRC))


# the module's code depends on the flags of nginx's configure

ifneq ($(wildcard $(NGINX_SRC)/conf_flags),)
CONF_FLAGS = $$(bash -c '. $(NGINX_SRC)/conf_flags;                           \
                         printf "%q " "$${NGX_CONF_FLAGS[@]}"')
else
CONF_FLAGS = --with-compat --with-threads                                     \
             --with-http_ssl_module --with-http_v2_module                     \
             $$(grep -q -e --with-http_v3_module $(NGINX_SRC)/auto/options    \
                && echo --with-http_v3_module)
endif


HDRS = $(sort $(wildcard shared/*.h shared/*/*.h shared/assets/*))
CORE_SRCS = $(sort $(filter-out $(HELPER_SRCS),                              \
                   $(wildcard shared/*.[cS] shared/*/*.[cS])))
HELPER_SRCS = $(sort $(wildcard shared/symbolizer/*.c))
GLUE_SRCS = $(sort $(wildcard $(NAME)/*/*.[ch]))
UNIT_SRCS = $(sort $(wildcard t/unit/prof_*_test.c))
BENCH_SRCS = $(sort $(wildcard bench/bench_*.c))
TOOL_SRCS = $(sort $(wildcard tools/*.c))
FIXTURES = $(sort $(wildcard t/fixtures/*.S))

CORE_OBJS = $(patsubst shared/%,$(BUILD)/core/%.o,$(CORE_SRCS))
HELPER_OBJS = $(patsubst shared/%,$(BUILD)/core/%.o,$(HELPER_SRCS))
SIGNAL_OBJS = $(filter %_sig.c.o,$(CORE_OBJS))
FIXTURE_OBJS = $(patsubst t/fixtures/%,$(BUILD)/fixtures/%.o,$(FIXTURES))
UNITS = $(patsubst t/unit/%_test.c,$(BUILD)/t/%.t,$(UNIT_SRCS))
BENCHES = $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SRCS))
TOOLS = $(patsubst tools/%.c,$(BUILD)/tools/%,$(TOOL_SRCS))

# nginx compiles its addons with these warnings, so the core has none there
WARN = -W -Wall -Wpointer-arith -Wno-unused-parameter -Werror                 \
       $(if $(findstring clang,$(shell $(CC) --version 2> /dev/null)),        \
         -Wconditional-uninitialized)

WARN := $(WARN)
COMPILE = $(CC) $(WARN) $(CFLAGS) -fPIC -MMD -MP -I shared         \
          -I $(BUILD)/gen
LIBS = -ljansson -lprotobuf-c -lz -lm -lpthread -lrt -ldl


.PHONY: all module core tools units unit test prove http3 asan static musl engines \
        aarch64 aarch64-tests ground matrix neighbours soak scale \
        valgrind bench benches report report-files scenarios fuzz fuzzers ngx-fuzzers lint analyze install deb demo viewer \
        clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:


all: module	## build the module: build/ngx_http_profile_module.so


# The module.  nginx's configure must run within nginx's sources and may write
# there, so it runs in a directory of links.  The module is a new file after
# each build, because an nginx that runs has mapped the old one.

OBJ = $(BUILD)/nginx
SO = $(BUILD)/$(NAME).so

# the program that the module starts, beside it
HELPER = $(BUILD)/ngx_http_profile_symbolizer

# A linker that was killed leaves a part of the file, which is newer than its
# objects: only a file that is older than "linked" is complete.

module:	$(OBJ)/objs/Makefile $(HELPER)
	@test $(OBJ)/objs/$(NAME).so -ot $(OBJ)/linked                        \
	    || rm -f $(OBJ)/objs/$(NAME).so
	@$(MAKE) -s --no-print-directory -C $(OBJ) -f objs/Makefile modules
	@touch $(OBJ)/linked
	@cmp -s $(OBJ)/objs/$(NAME).so $(SO)                                  \
	    || { cp $(OBJ)/objs/$(NAME).so $(SO).new && mv $(SO).new $(SO)    \
	         && echo "built $(SO)"; }

$(OBJ)/objs/Makefile: $(BUILD)/nginx.args config config.make
	@rm -rf $(OBJ) && mkdir -p $(OBJ)
	@for f in $(NGINX_SRC)/*; do                                          \
	    case $${f##*/} in objs | Makefile) ;; *) ln -s $$f $(OBJ);; esac; \
	done
	@cd $(OBJ) && { test -e configure || ln -s auto/configure configure; }
	@cd $(OBJ) && eval ./configure "$(CONF_FLAGS)" --with-cc='"$(CC)"'    \
	    --with-cc-opt='"$(CFLAGS)"' --builddir=objs                       \
	    --add-dynamic-module='"$(ROOT)"'                                  \
	    > configure.log || { tail -n 20 configure.log; exit 1; }

# configure runs again only when one of these changes
$(BUILD)/nginx.args: FORCE
	@test -f $(NGINX_SRC)/auto/module || {                                \
	    echo "no nginx sources in $(NGINX_SRC): install the package"      \
	         "nginx-dev, or set NGINX_SRC to nginx's sources" >&2;        \
	    exit 1; }
	@mkdir -p $(BUILD)
	@{ echo "$(ROOT)" "$(CC)" "$(CFLAGS)" "$(NGINX_SRC)";                 \
	   echo "$(CONF_FLAGS)";                                              \
	   echo "$(HDRS)" "$(CORE_SRCS)" "$(GLUE_SRCS)";                      \
	   cat $(NGINX_SRC)/src/core/nginx.h; } > $@.new 2>&1
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@


core: $(BUILD)/libprof.a	## build the profiler core alone, without nginx

# the archive is made anew, so it has no objects of removed sources
$(BUILD)/libprof.a: $(CORE_OBJS) $(BUILD)/core.list
	@rm -f $@
	$(AR) rcs $@ $(CORE_OBJS)

$(HELPER): $(HELPER_OBJS) $(BUILD)/libprof.a
	$(CC) $(CFLAGS) -o $@ $(HELPER_OBJS) $(BUILD)/libprof.a -ldw -lelf       \
	    -liberty -ldl

# the helper without its main program, for tests
$(BUILD)/libsymbolizer.a: $(HELPER_OBJS)
	@rm -f $@
	$(AR) rcs $@ $(filter-out %/prof_symbolizer.c.o,$(HELPER_OBJS))

$(BUILD)/core.list: LIST = $(CORE_SRCS)
$(BUILD)/core.args: LIST = $(CC) $(CFLAGS)

$(BUILD)/core.list $(BUILD)/core.args: FORCE
	@mkdir -p $(BUILD)
	@echo "$(LIST)" > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# protobuf-c's compiler is protoc-c, or part of protobuf's protoc
PROTOC ?= $(or $(shell command -v protoc-c),protoc)
PROTO = $(BUILD)/gen/proto/profile.pb-c

$(PROTO).c: $(PROTO).h

$(PROTO).h: shared/proto/profile.proto
	@mkdir -p $(BUILD)/gen
	$(PROTOC) --c_out=$(BUILD)/gen --proto_path=shared $<

PROTO_SRCS = shared/proto/prof_proto.c                                        \
             shared/formats/prof_encode_pprof.c

$(patsubst shared/%,$(BUILD)/core/%.o,$(PROTO_SRCS)): $(PROTO).h

# the names of the system calls in the kernel's headers
SYSCALLS = $(BUILD)/gen/names/prof_syscall_names.h

$(SYSCALLS): tools/list-syscalls $(BUILD)/core.args
	@mkdir -p $(@D)
	tools/list-syscalls $(CC) > $@

$(BUILD)/core/names/prof_syscall.c.o: $(SYSCALLS)

$(BUILD)/core/%.o: shared/% $(BUILD)/core.args
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

$(BUILD)/core/assets/prof_assets.c.o: $(wildcard shared/assets/*)

$(BUILD)/fixtures/%.o: t/fixtures/% $(BUILD)/core.args
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

$(BUILD)/t/%.t: t/unit/%_test.c t/unit/tap.h $(FIXTURE_OBJS) $(BUILD)/libprof.a\
               $(BUILD)/libsymbolizer.a $(HELPER)
	@mkdir -p $(@D)
	$(COMPILE) -I t/unit -MF $(BUILD)/t/$*.d -o $@ $<                     \
	    $(FIXTURE_OBJS) $(BUILD)/libsymbolizer.a $(BUILD)/libprof.a       \
	    -liberty -lelf $(LIBS)

$(BUILD)/bench/%: bench/%.c $(BUILD)/libprof.a $(HELPER)
	@mkdir -p $(@D)
	$(COMPILE) -o $@ $< $(BUILD)/libprof.a $(LIBS)

$(BUILD)/tools/%: tools/%.c $(BUILD)/libprof.a
	@mkdir -p $(@D)
	$(COMPILE) -o $@ $< $(BUILD)/libprof.a $(LIBS)

-include $(CORE_OBJS:.o=.d) $(HELPER_OBJS:.o=.d) $(wildcard $(BUILD)/t/*.d $(BUILD)/bench/*.d      \
          $(BUILD)/tools/*.d $(BUILD)/fixtures/*.d)


tools: $(TOOLS)	## build the programs of tools/ that use the core


# Tests.  Each target installs missing packages and then calls make again,
# because the build depends on the installed packages.

SUB = $(MAKE) -s --no-print-directory -j $(JOBS)

# tests of HTTP/3 run this nginx if NGINX has no HTTP/3
HTTP3 = $(if $(findstring http_v3_module,$(shell $(NGINX) -V 2>&1)),,         \
          $(BUILD)/http3)

PROVE_ENV = TEST_NGINX_BINARY=$(NGINX) TEST_NGINX_MODULE=$(SO)              \
            TEST_NGINX_CORE=$(BUILD)/libprof.a                                \
            $(addprefix TEST_NGINX_HTTP3=,                                    \
              $(patsubst %/nginx,%,$(wildcard $(HTTP3)/objs/nginx)))

# a failed file runs once more; $(1).state stores the failed files
run_tests = tools/run-tests $(BUILD)/$(1).state $(PROVE) $(PROVE_FLAGS) --

units: $(UNITS)
	@rm -f $(filter-out $(UNITS),$(wildcard $(BUILD)/t/*.t))
	@tools/check-signal-safe $(SIGNAL_OBJS)

unit:	## run the unit tests of the core, without nginx
	@$(SUB) units
	$(PROVE) $(PROVE_FLAGS) $(BUILD)/t

# the unit tests of T; a browser opens what prof_source.t writes
UNITS_OF_T = $(if $(filter t $(BUILD)/t,$(T)),units,                          \
               $(filter $(BUILD)/t/%,$(abspath $(T)))                         \
               $(if $(filter %/profile_names_browser.t,$(wildcard $(T))),     \
                 $(BUILD)/t/prof_source.t))

ifneq ($(ROOM)$(CHANGED),)

test:
	@tests=$$(tools/list-tests $(BUILD)/t $(ROOM) $(CHANGED:%=--changed)) \
	    && if [ -z "$$tests" ]; then echo "there is nothing to test";     \
	       else $(MAKE) --no-print-directory test ROOM= CHANGED=          \
	                T="$$(echo $$tests)"; fi

else

test:	## run all tests, or those in T, of ROOM=loop, or of what is CHANGED=1
	@$(DEPS) test
	@$(SUB) module tools $(UNITS_OF_T)
	@$(SUB) $(NODE_MODULES)                                               \
	    || echo "no speedscope or browser to check profiles with"
	@$(if $(and $(HTTP3),$(filter t t/profile_h3%,$(T))),$(SUB) http3)
	@TEST_NGINX_INSTALLED=1 $(SUB) prove

endif

# an nginx with HTTP/3; without it the tests of HTTP/3 are skipped
http3:
	@CC="$(CC)" JOBS=$(JOBS) tools/build-nginx http3 $(HTTP3)             \
	    || { test $$? = 77 && echo "HTTP/3 is not tested"; }

# npm packages of tests: the importers of viewers, and the driver of the browser
NODE_MODULES = t/speedscope/node_modules/.package-lock.json                   \
               t/trace/node_modules/.package-lock.json                        \
               t/browser/node_modules/.package-lock.json

$(NODE_MODULES): %/node_modules/.package-lock.json: %/package-lock.json
	cd $(<D) && npm ci --silent < /dev/null && touch node_modules/$(@F)

prove:
	$(PROVE_ENV) $(call run_tests,prove) $(T)

ASAN = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined

asan:	## run all tests with sanitizers in nginx, the module and the core
	@$(DEPS) test
	CC="$(CC)" NGINX_SRC=$(NGINX_SRC) tools/build-nginx asan $(BUILD)/asan
	@$(SUB) unit BUILD=$(BUILD)/asan-unit        \
	    CFLAGS="$(ASAN)"
	TEST_NGINX_TIMEOUT=60 TEST_NGINX_BINARY=$(BUILD)/asan/objs/nginx      \
	    TEST_NGINX_MODULE=$(BUILD)/asan/objs/$(NAME).so                   \
	    $(call run_tests,asan) $(filter-out $(BUILD)/t,$(T))

static:	## run the tests of t/ with the module linked into nginx
	@$(DEPS) test
	CC="$(CC)" NGINX_SRC=$(NGINX_SRC) tools/build-nginx static            \
	    $(BUILD)/static
	TEST_NGINX_BINARY=$(BUILD)/static/objs/nginx TEST_NGINX_MODULE=       \
	    $(call run_tests,static) $(filter-out $(BUILD)/t,$(T))

musl:	## run the tests of t/ with an nginx and a module for musl
	@$(DEPS) test musl
	@$(SUB) $(HELPER) tools
	NGINX_SRC=$(NGINX_SRC) tools/build-nginx musl $(BUILD)/musl
	cp $(HELPER) $(BUILD)/musl/objs
	TEST_NGINX_BINARY=$(BUILD)/musl/objs/nginx TEST_NGINX_CORE=           \
	    TEST_NGINX_MODULE=$(BUILD)/musl/objs/$(NAME).so                   \
	    $(call run_tests,musl) $(filter-out $(BUILD)/t,$(T))

# Qemu cannot run what these tests need: a child that shares memory with its
# parent (the helper's start), a child whose end sends no signal, memory that a
# child does not inherit, signals that a thread has blocked, a fixed address,
# and sizes of the process.
AARCH64 = $(BUILD)/aarch64
AARCH64_SKIP = context heap helper hooks_load lines process symbol trial      \
               unit unload unwind
CAPTURE_TESTS = profile profile_access profile_attribution profile_body         \
                profile_console profile_enter profile_metrics profile_object    \
                profile_order profile_pages profile_proxy profile_record        \
                profile_ssl profile_stages profile_stall

# nginx's configure defines NGX_ALIGNMENT by the machine on which it runs
aarch64:	## cross-compile; run unit tests and a capture in qemu
	@$(DEPS) aarch64
	tools/cross-root $(AARCH64)
	@PATH=$(AARCH64)/bin:$$PATH CGO_ENABLED=0 $(SUB) aarch64-tests CC=cc  \
	    CFLAGS="$(CFLAGS) -DNGX_ALIGNMENT=16"                             \
	    BUILD=$(AARCH64)/obj NGINX=$(AARCH64)/bin/nginx

aarch64-tests: module units
	$(PROVE) $(PROVE_FLAGS) $(filter-out                                  \
	    $(AARCH64_SKIP:%=$(BUILD)/t/prof_%.t),$(UNITS))
	TEST_NGINX_TIMEOUT=60 $(PROVE_ENV) $(PROVE) $(PROVE_FLAGS)            \
	    $(CAPTURE_TESTS:%=t/%.t)

# one build of nginx for each place in each structure takes hours
ground:	## test builds of nginx and of ngx_lua with other structures, upgrades
	@$(DEPS) ground
	@$(SUB) module
	tools/build-nginx lua $(BUILD)/lua
	PROFILE_TEST_LAYOUTS=all PROFILE_TEST_UPGRADES=all                    \
	    PROFILE_TEST_LUA=$(BUILD)/lua $(PROVE_ENV) $(PROVE) $(PROVE_FLAGS) \
	    t/profile_ground_lua.t t/profile_upgrade.t t/profile_ground.t

matrix:	## test every kind of nginx, write docs/matrix.md; ROW=NAME
	@CAPTURES="$(CAPTURE_TESTS)" UNITS_QEMU_SKIPS="$(AARCH64_SKIP)"       \
	    BUILD=$(BUILD)/matrix INSTALLED=$(NGINX) DEPS="$(DEPS)" JOBS=$(JOBS)  \
	    tools/matrix $(ROW)

# outside of the tree, since the build takes minutes
ENGINES ?= $(HOME)/.cache/ngx_http_profile_module/engines

engines:	## compare what the OpenTelemetry Collector and Prometheus receive
	@$(DEPS) test
	tools/build-engines $(ENGINES)
	@$(SUB) module
	$(PROVE_ENV) ENGINES=$(ENGINES) $(PROVE) -It/lib $(PROVE_FLAGS)        \
	    t/engines/collector.t t/profile_metrics_prometheus.t              \
	    t/profile_metrics_grafana.t

valgrind:	## run the unit tests, and captures in all modes, in valgrind
	@$(DEPS) valgrind
	@$(SUB) units module
	tools/check-valgrind $(BUILD)/$(NAME).so
	$(PROVE) $(PROVE_FLAGS) -e "valgrind -q --error-exitcode=99           \
	    --leak-check=full --show-leak-kinds=definite                      \
	    --errors-for-leak-kinds=definite" $(BUILD)/t

bench:	## run the benchmarks of the core, and the scenarios
	@$(DEPS) bench
	@$(SUB) benches
	@for b in $(BENCHES); do echo "$${b##*/}"; $$b || exit 1; done
	@$(SUB) scenarios

report:	## run the benchmarks, write docs/report.md and docs/report.json
	@$(DEPS) bench
	@$(SUB) report-files

report-files: module benches
	NGINX=$(NGINX) MODULE=$(SO) BUILD=$(BUILD) SHORT=$(SHORT) bench/report.pl

scenarios: module	## load nginx, and make profile/SCENARIO/flamegraph.svg
	NGINX=$(NGINX) MODULE=$(SO) $(if $(SECONDS),SECONDS=$(SECONDS))       \
	    bench/scenarios.pl $(SCENARIOS)

scale:	## time and memory of large numbers, write docs/scale.md
	@$(DEPS) bench
	@$(SUB) module
	NGINX=$(NGINX) MODULE=$(SO) SHORT=$(SHORT) bench/scale.pl

neighbours: module	## responses of other modules, write docs/neighbours.md
	@$(DEPS) test
	TEST_NGINX_BINARY=$(NGINX) TEST_NGINX_MODULE=$(abspath $(SO))          \
	PROFILE_TEST_PAGE=docs/neighbours.md perl -It/lib t/profile_neighbours.t

soak: module	## everything at once for SOAK_SECONDS=3600, write docs/soak.md
	OUT=docs bench/soak.pl $(SOAK_SECONDS)

benches: $(BENCHES)

# Fuzzing with clang's libFuzzer

FUZZ_SRCS = $(sort $(wildcard t/fuzz/prof_fuzz_*.c))
FUZZERS = $(patsubst t/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRCS))
FUZZ = address,undefined -fno-sanitize-recover=undefined

# seconds for all fuzzers together
FUZZ_SECONDS ?= 60

# fuzzers that contain nginx; without its sources they are not built
NGX_FUZZ_SRCS = $(sort $(wildcard t/fuzz/ngx_fuzz_*.c))
NGX_FUZZERS = $(patsubst t/fuzz/%.c,$(BUILD)/fuzz/%,$(NGX_FUZZ_SRCS))
NGX_FUZZ = $(FUZZ) -fno-sanitize=alignment,nonnull-attribute,pointer-overflow

fuzz:	## fuzz encoders, parsers, requests and the console, FUZZ_SECONDS=60
	@$(DEPS) fuzz
	@$(SUB) fuzzers
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz $(FUZZERS) $(NGX_FUZZERS)

fuzzers:
	@$(MAKE) -s --no-print-directory CC=clang BUILD=$(BUILD)/fuzz         \
	    CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,$(FUZZ)" $(FUZZERS)
	@CC=clang JOBS=$(JOBS) NGINX_SRC=$(NGINX_SRC) MAKEFLAGS=              \
	    tools/build-nginx fuzz $(BUILD)/fuzz/nginx; case $$? in           \
	    0) $(MAKE) -s --no-print-directory ngx-fuzzers ;;                 \
	    77) echo "the fuzzers with nginx are not built" ;;                \
	    *) exit 1 ;; esac

ngx-fuzzers: $(NGX_FUZZERS)

$(BUILD)/fuzz/ngx_fuzz_%: t/fuzz/ngx_fuzz_%.c t/fuzz/ngx_fuzz.c               \
                          t/fuzz/ngx_fuzz.h $(BUILD)/fuzz/nginx/objs/libnginx.a
	cd $(BUILD)/fuzz/nginx && clang $(WARN) -O1 -g                        \
	    -fsanitize=fuzzer,$(NGX_FUZZ) -I $(ROOT)/ngx_http_profile_module  \
	    -I $(ROOT)/shared -I src/core -I src/event -I src/event/modules   \
	    -I src/os/unix -I src/http -I src/http/modules -I src/http/v2     \
	    -I objs -o $@ $(ROOT)/$< $(ROOT)/t/fuzz/ngx_fuzz.c                \
	    objs/libnginx.a $$(cat objs/libnginx.libs)

$(BUILD)/prof_fuzz_%: t/fuzz/prof_fuzz_%.c t/fuzz/prof_fuzz_memory.h        \
                      $(BUILD)/libprof.a $(BUILD)/libsymbolizer.a
	$(COMPILE) -I t/unit -fsanitize=fuzzer,$(FUZZ) -o $@ $<               \
	    $(BUILD)/libsymbolizer.a $(BUILD)/libprof.a -liberty $(LIBS)

lint:	## check style, layers and signal handlers; run cppcheck on the core
	@$(DEPS) lint
	@tools/check-style
	@tools/check-layers
	@tools/check-words
	@tools/list-tests --check
	@$(SUB) core
	@tools/check-signal-safe $(SIGNAL_OBJS)
	@cppcheck -q --error-exitcode=1 -j $(JOBS) -I shared                  \
	    --enable=warning,portability --suppress=missingIncludeSystem      \
	    --suppress=ctuuninitvar --suppress=returnDanglingLifetime         \
	    $(filter %.c,$(CORE_SRCS))

# not a gate: some reports of the analyzer are wrong
analyze:	## run clang's analyzer on the core
	@$(DEPS) analyze
	@for f in $(filter %.c,$(CORE_SRCS)); do                              \
	    clang --analyze -I shared $$f -o /dev/null;                       \
	done



# speedscope, for the console; it is optional

viewer: $(BUILD)/viewer/index.html	## download the viewer from npm

$(BUILD)/viewer/index.html: tools/build-viewer viewer/package-lock.json
	tools/build-viewer $(BUILD)/viewer


MODULES_PATH = $(shell $(NGINX) -V 2>&1                                       \
                       | sed -n -e 's/.*--modules-path=\([^ ]*\).*/\1/p')

PREFIX = $(shell $(NGINX) -V 2>&1 | sed -n -e 's/.*--prefix=\([^ ]*\).*/\1/p')

# the directories of installed programs and manual pages
BINDIR ?= /usr/local/bin
MANDIR ?= /usr/local/share/man

install: module	## install the module, its helper, the viewer and nginx-profile
	install -d $(DESTDIR)$(MODULES_PATH) $(DESTDIR)$(BINDIR)              \
	    $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(SO) $(DESTDIR)$(MODULES_PATH)
	install -m 755 $(HELPER) $(DESTDIR)$(MODULES_PATH)
	install -m 755 tools/nginx-profile $(DESTDIR)$(BINDIR)
	pod2man --section=1 --name=NGINX-PROFILE --center='User Commands'     \
	    --release=$(NAME) tools/nginx-profile                             \
	    $(DESTDIR)$(MANDIR)/man1/nginx-profile.1
	@test -f $(BUILD)/viewer/index.html                                   \
	    || echo 'without the viewer, which "make viewer" builds before'
	test ! -f $(BUILD)/viewer/index.html || {                             \
	    install -d $(DESTDIR)$(PREFIX)/profile_viewer                     \
	    && install -m 644 $(BUILD)/viewer/*                               \
	           $(DESTDIR)$(PREFIX)/profile_viewer; }

deb:	## build the Debian package: build/deb/*.deb
	@$(DEPS) deb
	@$(SUB) viewer || echo 'the viewer is not built: the package has none'
	packaging/build-deb $(BUILD)/deb $(BUILD)/viewer

demo:	## start nginx with an example site
	@$(DEPS) demo
	@$(SUB) module
	@$(SUB) viewer 2> /dev/null                                           \
	    || echo "without npm: profiles are shown without the viewer"
	@NGINX=$(NGINX) MODULE=$(SO) VIEWER=$(BUILD)/viewer tools/demo

clean:	## remove all built files
	rm -rf $(BUILD) $(NODE_MODULES:/.package-lock.json=)

help:	## print this list
	@sed -n -e 's/^\([a-z]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 12
	@echo
	@echo "variables: CC CFLAGS BUILD NGINX_SRC NGINX T PROVE_FLAGS" \
	      "DEPS DESTDIR"
