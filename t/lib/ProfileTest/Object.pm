package ProfileTest::Object;

# Copyright (C) The ngx_http_profile_module authors
#
# Profiles of the mode "object", of fixtures/ngx_http_object_test_module.c.

use strict;
use warnings;

use Exporter qw/ import /;

our @EXPORT = qw/ object_types sums /;


sub object_types {
    return qw{ alloc_objects/count alloc_space/bytes
               inuse_objects/count inuse_space/bytes };
}


# the sums of all types, of the stacks with a function of the module
sub sums {
    my ($p, $name) = @_;

    return [ map {
        $p->total($_, sub {
            grep { $_ eq "ngx_http_object_test_$name" } @{$_[0]{stack}}
        })
    } object_types() ];
}


1;
