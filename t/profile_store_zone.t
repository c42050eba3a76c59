#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: store
# runs: beside

# Builds and runs store/zone_test.c: the store's memory, whose writer is
# killed.  PROFILE_TEST_KILLS says how often.

use strict;
use warnings;

use Test::More;

use ProfileTest::Module;

run_store_program('zone_test', [], $ENV{PROFILE_TEST_KILLS} || 1500);
