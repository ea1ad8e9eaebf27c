package main

import (
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
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
	bindCall(flags, &f.call)
	flags.BoolVar(&f.learned, "learned", false, "hold what most earlier runs of this job took, of "+
		"--bucket or all; while there are too few runs, hold --units or --method")
	spanVar(flags, &f.ttl, "ttl", 10*time.Minute,
		"`DURATION` of the hold, which is extended while the command runs")
	flags.StringVar(&f.settle, "settle", string(job.SettleAll),
		"`HOW` to find out what it took: all, exit, report or proxy")
	flags.StringVar(&f.lapse, "lapse", string(quota.LapseCharge),
		"`WHAT` becomes of the hold if exec is killed: charge or release")
	spanVar(flags, &f.wait, "wait", 0, "wait up to `DURATION` for the units, in order of arrival")
	flags.StringVar(&f.key, "id", "", "`KEY` of this run, such as the job and its scheduled time: "+
		"no second start after a success, and no second charge for a repeat")
	flags.StringVar(&f.lock, "lock", "",
		"run only if no other run, on any machine, has the lock `NAME`")
	flags.Int64Var(&f.max, "max", 0, "deny requests and draws beyond `N` units in all; with "+
		"--bucket, of that bucket")
	cli.Limit(flags, 1, math.MaxInt64, "max")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing if units are denied")
}

func (f *execFlags) check(changed func(string) bool) error {
	if err := checkCall(f.call, f.key, changed); err != nil {
		return err
	}
	switch {
	case changed("bucket") && !changed("units") && !changed("max") && !f.learned:
		return cli.Usagef("--bucket needs --units, --max or --learned")
	case !changed("method") && !changed("units") && !f.learned && f.settle != string(job.SettleProxy):
		return cli.Hint(cli.Usagef("give --method, --units or --learned"),
			"they set the hold before the command starts")
	case !slices.Contains([]string{"all", "exit", "report", "proxy"}, f.settle):
		return cli.Usagef("--settle %s: write all, exit, report or proxy", f.settle)
	case f.lapse != string(quota.LapseCharge) && f.lapse != string(quota.LapseRelease):
		return cli.Usagef("--lapse %s: write release or charge", f.lapse)
	case f.ttl < time.Second:
		return cli.Usagef("--ttl %s: must be at least 1s", f.ttl)
	case f.wait < 0:
		return cli.Usagef("--wait %s: must not be negative", f.wait)
	case changed("lock") && f.lock == "":
		return cli.Usagef("--lock is empty: leave it out, or give a name")
	case len(f.key) > 200 || len(f.lock) > 200:
		return cli.Usagef("--id and --lock: at most 200 bytes")
	}
	return nil
}
