#!/usr/bin/perl

# Copyright (C) The ngx_http_profile_module authors
#
# rooms: tools
# runs: beside

# nginx-profile what-if: logs whose change is known.  No nginx is needed.

use strict;
use warnings;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use JSON::PP qw/ encode_json /;
use Test::More;

my $tool = dirname(abs_path(__FILE__)) . '/../tools/nginx-profile';
my $dir = tempdir(CLEANUP => 1);

my ($FIRST, $LAST, $TIMER) = (1, 2, 64);

# Every 200 ms a poll reports a request of /slow, which runs for 80 ms, and one
# of /fast, which runs for 1 ms.  /waits has a second turn 50 ms after its first.

my (@runs, @requests);
my $number = 0;

for my $k (1 .. 50) {
    my $at = $k * 200;

    push @runs, run($at - 100, 100, kind => 1);
    push @runs, run($at, 80, request => request('/slow', $k)),
                run($at + 80, 1, stall => 80, request => request('/fast', $k));

    my $waits = request('/waits', $k);

    push @runs, run($at + 81, 1, stall => 81, request => $waits,
                    flags => $FIRST),
                run($at + 132, 1, request => $waits, flags => $LAST|$TIMER);
}

my @same = predict();

is($same[0]{'/slow'}, '80 80 80', 'logged: the slow location');
is($same[0]{'/fast'}, '81 81 81', 'logged: the fast location waits');
is($same[0]{'/waits'}, '133 133 133', 'logged: a request with two turns');
is_deeply($same[1], $same[0], 'the replay is the log');
is_deeply($same[2], $same[0], 'nothing changes without a change');

my $new = (predict('--faster', 'location=/slow 50%'))[2];

is($new->{'/slow'}, '40 40 40', 'faster: the location takes half of its time');
is($new->{'/fast'}, '41 41 41', 'faster: others wait for half of the time');
is($new->{'/waits'}, '93 93 93', 'faster: waits stay as they were');

is((predict('--faster', 'uri=/slow 50%'))[2]{'/fast'}, '41 41 41',
   'a target may be a URI');
is((predict('--faster', 'handler=slow_handler 100%'))[2]{'/fast'}, '1 1 1',
   'a target may be a handler');
is((predict('--faster', 'all 50%'))[2]{'/fast'}, '40.5 40.5 40.5',
   'a target may be all');

$new = (predict('--threads', 'location=/slow 75%'))[2];

is($new->{'/slow'}, '80 80 80', 'threads: the request waits for them');
is($new->{'/fast'}, '21 21 21', 'threads: others do not');

$new = (predict('--workers', 2))[2];

is($new->{'/slow'}, '80 80 80', 'workers: the slow location');
is($new->{'/fast'}, '1 1 1', 'workers: another one takes the fast location');

# With --closed, a connection with a slow request sends the next one later.  The
# log: 10 ms of work, and 5 ms until the next request.

@runs = @requests = ();

for my $k (1 .. 50) {
    push @runs, run(15 * $k - 5, 5, kind => 1),
                run(15 * $k, 10, request => request('/loop', 1));
}

is((predict('--faster', 'all 50%', '--closed'))[2]{'/loop'}, '5 5 5',
   'closed: each request takes half of its time');

# Requests of /late come at any moment of an endless sequence of runs.  A poll
# reports them only after the run in which they came.  The truth is the queue
# itself: a request waits for the run in which it comes.

@runs = @requests = ();

srand(7);

my (@truth, @half);

for my $k (1 .. 2000) {
    my $at = $k * 21;
    my $came = $at - 21 + 1 + rand(20);

    push @runs, run($at - 20, 20, request => request('/busy', $k),
                    stall => 0.0001);
    push @runs, run($at, 1, request => request('/late', "l$k"),
                    stall => 0.0001);
    push @truth, $at + 1 - $came;
}

my @late = split / /, (predict())[0]{'/late'};
@truth = sort { $a <=> $b } @truth;

for ([ 0, 0.5, 'p50' ], [ 1, 0.9, 'p90' ], [ 2, 0.99, 'p99' ]) {
    my ($i, $part, $name) = @$_;
    my $true = $truth[$part * @truth];

    cmp_ok(abs($late[$i] / $true - 1), '<', 0.15,
           "the time until a poll is estimated: $name") or diag("@late, $true");
}

# errors

for ([ [], qr/takes one snapshot/ ], [ [ '--workers', 0 ], qr/at least 1/ ],
     [ [ '--faster', '50%' ], qr/TARGET N%/ ],
     [ [ '--faster', 'location=/x 200%' ], qr/TARGET N%/ ])
{
    my ($args, $re) = @$_;
    my $file = @$args ? "$dir/log.json" : '';
    my $out = `$tool what-if $file @{[ map { "'$_'" } @$args ]} 2>&1`;

    is($? >> 8, 2, "@$args is refused");
    like($out, $re, "@$args is explained");
}

open my $f, '>', "$dir/bad.json" or die;
print $f '[]';
close $f;

like(`$tool what-if $dir/bad.json 2>&1`, qr/is not a turn log/,
     'another file is refused');

done_testing();


sub request {
    my ($uri, $client) = @_;

    push @requests, { number => ++$number, text => "GET $uri?a", status => 200,
                      client => "$uri:$client", location => 0 };
    return $number;
}


# milliseconds; a request of one turn has both flags

sub run {
    my ($start, $length, %of) = @_;
    my ($row) = grep { $_->{number} == ($of{request} // 0) } last_requests();
    my %locations = ('/slow' => 0, '/fast' => 1, '/waits' => 2, '/loop' => 3,
                     '/busy' => 4, '/late' => 5);
    my ($uri) = ($row->{text} // '') =~ m{(/\w+)};

    return (map({ int($_ * 1e6) } $start, $length, $of{stall} // 0),
            $of{request} // 0, defined $uri ? $locations{$uri} : -1,
            ($uri // '') eq '/slow' ? 0 : 1, 0, $of{kind} // 0,
            $of{flags} // ($FIRST|$LAST));
}


sub last_requests { return @requests > 3 ? @requests[-3 .. -1] : @requests }


# what was logged, replayed and predicted: { location => 'p50 p90 p99' }

sub predict {
    my (@args) = @_;

    open my $f, '>', "$dir/log.json" or die "$dir/log.json: $!\n";
    print $f encode_json({
        columns => [ qw/ start length stall request location handler cause kind
                         flags / ],
        kinds => [ qw/ run sleep begin end / ],
        flags => { first => $FIRST, last => $LAST, nested => 8,
                   timer => $TIMER },
        locations => [ map { { server => 's', location => $_ } }
                           qw{ /slow /fast /waits /loop /busy /late } ],
        handlers => [ qw/ slow_handler other_handler / ],
        workers => [ { worker => 0, pid => 1, runs => \@runs,
                       requests => \@requests } ],
        blame => [],
    });
    close $f;

    open my $p, '-|', $tool, 'what-if', "$dir/log.json", @args
        or die "$tool: $!\n";

    my (%of, $location);

    while (<$p>) {
        $location = $1 if m{^(/\S+)};

        $of{$1}{$location} = join(' ', map { $_ + 0 } $2, $3, $4)
            if /(logged|replayed|predicted)\s+(\S+)\s+(\S+)\s+(\S+)/;
    }

    close $p;

    return @of{qw/ logged replayed predicted /};
}
