#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: continuous
# runs: beside

# Builds and runs store/day_test.c: a day of the continuous profile, or the
# number of hours in PROFILE_TEST_HOURS.

use strict;
use warnings;

use Test::More;

use ProfileTest::Module;

run_store_program('day_test', [ 'continuous/slices' ],
                  $ENV{PROFILE_TEST_HOURS} || 24);
