package main

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

type execFlags struct {
	call             quota.Call
	learned          bool
	ttl, wait        time.Duration
	settle, lapse    string
	key, lock        string
	max              int64
	quiet            bool
	methods, buckets bool // given
}

func (f *execFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.call.Method, "method", "", "`METHOD` that the command calls")
	flags.Int64Var(&f.call.Count, "count", 1, "`N` calls of the method")
	flags.Int64Var(&f.call.Units, "units", 0, "`N` units that the command may take")
	flags.StringVar(&f.call.Bucket, "bucket", "",
		"`BUCKET` to take the units from (default \"default\"); with --learned, the only one")
	flags.BoolVar(&f.learned, "learned", false, "hold what most earlier runs of this job took; "+
		"--units or --method, if they are given too, hold while there are too few")
	spanVar(flags, &f.ttl, "ttl", 10*time.Minute,
		"`DURATION` of the hold, which is extended while the command runs")
	flags.StringVar(&f.settle, "settle", string(job.SettleAll),
		"`HOW` to find out what it took: all, exit, report or proxy")
	flags.StringVar(&f.lapse, "lapse", string(quota.LapseCharge),
		"`WHAT` becomes of the hold if exec is killed: charge or release")
	spanVar(flags, &f.wait, "wait", 0, "wait for the units up to `DURATION`, in line with others")
	flags.StringVar(&f.key, "id", "", "`KEY` of this run, such as the job and its scheduled time: "+
		"it is not started again once it has succeeded, and not charged again if it is repeated")
	flags.StringVar(&f.lock, "lock", "",
		"run only if no other run, on any machine, has the lock `NAME`")
	flags.Int64Var(&f.max, "max", 0, "deny requests and draws beyond `N` units in all; with "+
		"--bucket, of that bucket")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing when units are denied")
	bindLabels(flags, &f.call.Labels)
}

func (f *execFlags) check(given func(string) bool) error {
	usage := func(format string, args ...any) error { return cli.Usagef(format, args...) }
	switch {
	case given("method") && (given("bucket") || given("units")):
		return usage("--method sets the cost: leave out --bucket and --units")
	case given("method") && f.call.Method == "":
		return usage("--method is empty")
	case given("count") && !given("method"):
		return usage("--count needs --method")
	case f.call.Count < 1:
		return usage("--count %d: must be at least 1", f.call.Count)
	case given("units") && f.call.Units < 1:
		return usage("--units %d: must be at least 1", f.call.Units)
	case given("bucket") && f.call.Bucket == "":
		return usage("--bucket is empty")
	case given("max") && f.max < 1:
		return usage("--max %d: must be at least 1", f.max)
	case given("bucket") && !given("units") && !given("max") && !f.learned:
		return usage("--bucket needs --units, --max or --learned")
	case !given("method") && !given("units") && !f.learned && f.settle != string(job.SettleProxy):
		return cli.Hint(usage("give --method, --units or --learned"),
			"they say what is held before the command starts")
	case !slices.Contains([]string{"all", "exit", "report", "proxy"}, f.settle):
		return usage("--settle %s: write all, exit, report or proxy", f.settle)
	case f.lapse != string(quota.LapseCharge) && f.lapse != string(quota.LapseRelease):
		return usage("--lapse %s: write release or charge", f.lapse)
	case f.ttl < time.Second:
		return usage("--ttl %s: must be at least 1s", f.ttl)
	case f.wait < 0:
		return usage("--wait %s: must not be negative", f.wait)
	case given("id") && f.key == "":
		return usage("--id is empty: leave it out, or give a key")
	case given("lock") && f.lock == "":
		return usage("--lock is empty: leave it out, or give a name")
	case len(f.key) > 200 || len(f.lock) > 200:
		return usage("--id and --lock: at most 200 bytes")
	}
	return nil
}

// spanFlag is a duration that may have days.
type spanFlag struct{ value *time.Duration }

func spanVar(flags *pflag.FlagSet, value *time.Duration, name string, initial time.Duration,
	usage string) {
	*value = initial
	flags.Var(spanFlag{value}, name, usage)
}

func (s spanFlag) String() string {
	if s.value == nil || *s.value == 0 {
		return ""
	}
	return words.Span(*s.value)
}

func (s spanFlag) Type() string { return "duration" }

func (s spanFlag) Set(text string) (err error) {
	*s.value, err = words.ParseSpan(text)
	return err
}
