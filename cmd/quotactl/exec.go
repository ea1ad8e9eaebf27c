package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// exitOwn is the exit code of a failure of exec itself, as in coreutils.
const exitOwn = 125

func (a *app) exec() *cobra.Command {
	f := execFlags{job: job.Job{TTL: 10 * time.Minute, Settle: job.SettleAll,
		Lapse: quota.LapseCharge}}
	c := a.Command("exec", func(c *cobra.Command, args []string) error {
		f.buckets = c.Flags().Changed("bucket")
		if err := f.check(c.Flags().Changed); err != nil {
			return own(err)
		}
		out, err := a.execute(c.Context(), f, args)
		if early, ok := errors.AsType[*job.SignalError](err); ok {
			out.Signal, err = early.Signal, nil
			out.Code = 128 + int(early.Signal)
		}
		if err != nil {
			return err
		}
		if out.Signal != 0 {
			job.DieOf(out.Signal)
		}
		return &cli.Coded{Code: out.Code}
	})
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return own(cli.Hint(cli.Usagef("the command is missing"),
				"quotactl exec --units 40 -- COMMAND"))
		}
		return nil
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return own(c.Parent().FlagErrorFunc()(c, err))
	})
	flags := c.Flags()
	bindCall(flags, &f.job.Call)
	cli.Flags(flags, "learned", &f.learned, "ttl", spanFlag{&f.job.TTL},
		"settle", (*string)(&f.job.Settle), "lapse", (*string)(&f.job.Lapse),
		"wait", spanFlag{&f.job.Wait}, "id", &f.job.Key, "lock", &f.job.Lock,
		"max", &f.job.Max.Units, "quiet,q", &f.quiet)
	cli.Limit(flags, 1, math.MaxInt64, "max")
	flags.SetInterspersed(false) // flags after the command belong to the command
	return c
}

// execute runs the command and returns its result, or an error with its exit code.
func (a *app) execute(ctx context.Context, f execFlags, args []string) (
	out job.Outcome, err error,
) {
	err = a.with(ctx, func(g *gate) error {
		j, err := a.newJob(ctx, g, f, args)
		if err != nil {
			return err
		}
		out, err = j.Run(context.WithoutCancel(ctx)) // Run passes signals to the command
		if !errors.Is(err, quota.ErrUnreachable) {
			defer a.notice(ctx, g, false)
		}
		if denied, ok := errors.AsType[*job.DeniedError](err); ok {
			if f.quiet || reported(ctx, j, denied) {
				return &cli.Coded{Code: cli.ExitExhausted}
			}
			return a.notStarted(ctx, g, f, denied)
		}
		if err == nil && out.Done {
			fmt.Fprintf(a.Stderr,
				"quotactl: not started: a run with --id %s has succeeded before\n",
				words.Plain(f.job.Key))
		}
		if out.Denied > 0 && !f.quiet {
			ceiling := fmt.Sprint(f.job.Max.Units)
			if p := g.phrasing(ctx, false, quota.Decision{}); p.unit(f.job.Call.Bucket).IsMoney() {
				ceiling += " (" + p.amount(f.job.Call.Bucket, f.job.Max.Units) + ")"
			}
			fmt.Fprintf(a.Stderr, "quotactl: requests of %s denied by --max %s: %d\n",
				words.Plain(j.Name), ceiling, out.Denied)
		}
		return err
	})
	if out.Run == "" && ctx.Err() != nil { // a signal came before the run began
		err = context.Cause(ctx)
	}
	return out, own(err)
}

// reported reports whether an earlier process has printed that the job is exhausted, in the window
// that denies it. A claim in the ledger marks that, until the cost fits or for the length of a
// sliding window.
func reported(ctx context.Context, j *job.Job, e *job.DeniedError) bool {
	d := e.Decision
	if j.Claims == nil || e.Why != "" || d.RetryAt.IsZero() {
		return false
	}
	lasts := d.RetryAfter()
	for _, l := range j.Budget.Limits {
		if l.Name() == d.Limit && !l.Window.IsCalendar() {
			lasts = max(lasts, l.Window.Length)
		}
	}
	now := time.Now()
	state, err := j.Claims.Claim(ctx, quota.Claim{Credential: j.Budget.Credential,
		Name: "exhausted:" + j.Name + ":" + d.Limit, Holder: quota.NewID(now),
		TTL: max(lasts, time.Millisecond)})
	return err == nil && state != quota.ClaimWon
}

// own sets the exit code of an error of exec itself.
func own(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*job.SignalError](err); ok {
		return err
	}
	code := exitOwn
	if coded, ok := errors.AsType[*cli.Coded](err); ok && coded.Code == cli.ExitExhausted {
		return err
	}
	if start, ok := errors.AsType[*job.StartError](err); ok {
		code = start.Code
	}
	return &cli.Coded{Code: code, Err: err}
}

// notStarted returns an error that explains in one line why the command was not started, and when
// to retry.
func (a *app) notStarted(ctx context.Context, g *gate, f execFlags, e *job.DeniedError) error {
	text, d, p := "", e.Decision, g.phrasing(ctx, false, e.Decision)
	switch {
	case e.Why == job.DeniedKey:
		text = fmt.Sprintf("a run with --id %s is under way", f.job.Key)
	case e.Why == job.DeniedLock:
		text = fmt.Sprintf("another run has the lock %s; retry when it has ended", f.job.Lock)
	case d.Limit == quota.Suspended:
		text = p.inWords(d.Units) + " asked for, but the bucket is suspended"
	case d.Limit != "":
		text = fmt.Sprintf("%s would not fit under %s", p.inWords(d.Units), d.Limit)
		if room, _ := g.DayRoom(ctx, false, d, p.amount); room != "" {
			text += "; " + room
		}
	default:
		text = "the wait is over"
	}
	if e.Ahead > 0 {
		text += fmt.Sprintf("; waiting before it: %d", e.Ahead)
	}
	if !d.RetryAt.IsZero() {
		text += fmt.Sprintf("; retry in %s, at %s", words.Span(d.RetryAfter()),
			a.ScreenOn(a.Stderr).Moment(d.RetryAt))
	}
	return &cli.Coded{Code: cli.ExitExhausted, Err: cli.Hint(errors.New("not started: "+text), "")}
}

func (a *app) newJob(ctx context.Context, g *gate, f execFlags, args []string) (*job.Job, error) {
	j := f.job
	j.Name = cmp.Or(j.Call.Labels[quota.LabelJob], job.NameOf(args))
	var err error
	if j.Call, err = g.held(ctx, f, j.Name); err != nil {
		return nil, err
	}
	bucket := f.job.Call.Bucket
	if _, listed := g.prices().Bucket(quota.WholeOf(bucket)); f.buckets && !listed {
		if err := g.bucket(bucket); err != nil {
			return nil, err
		}
	}
	// The command gets the path of the configuration, but no API keys and no variables of an outer
	// exec.
	env := slices.DeleteFunc(g.cfg.WithoutKeys(os.Environ()), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{job.EnvReservation, job.EnvLabels, job.EnvReport,
			job.EnvProxy, job.EnvMax}, name)
	})
	if path, err := filepath.Abs(a.Config); err == nil && a.Config != "" {
		env = append(env, "QUOTA_CONFIG="+path)
	}
	j.Command = job.Command{Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	j.Budget, j.Claims, j.Buckets = g.Budget, g.Ledger, g.prices().BucketNames()
	j.Max.Bucket, j.Log = bucket, a.Logger()
	if j.Settle == job.SettleProxy {
		quiet := *a // standard error belongs to the command
		if quiet.LogLevel == "info" {
			quiet.LogLevel = "error"
		}
		served, err := quiet.servedCredentials(g.cfg, []string{g.Credential})
		if err != nil {
			return nil, err
		}
		j.Prepare = cli.JobProxy(g.cfg, served, g.Ledger, quiet.Logger())
	}
	j.Signals = job.Notify()
	return &j, ctx.Err() // canceled if a signal came before Notify
}

// held returns the cost to hold before the command starts.
func (g *gate) held(ctx context.Context, f execFlags, name string) (quota.Call, error) {
	call := f.job.Call
	if f.learned {
		buckets := []string{call.Bucket}
		if !f.buckets {
			limits, err := g.Standing(ctx)
			if err != nil {
				return call, err
			}
			buckets = nil
			for _, l := range limits {
				whole, _, _ := strings.Cut(l.Bucket, "@") // the bucket of a limit per label
				if !slices.Contains(buckets, whole) {
					buckets = append(buckets, whole)
				}
			}
		}
		learned, err := job.Learned(ctx, g.Budget, name, buckets)
		if err == nil {
			return quota.Call{Costs: learned, Labels: call.Labels}, nil
		}
		if _, few := errors.AsType[*job.TooFewRunsError](err); !few {
			return call, err
		} else if call.Method == "" && call.Units == 0 {
			return call, cli.Hint(err, "give --units N, too: that is held until then")
		}
	}
	if call.Method == "" && call.Units == 0 {
		return call, nil
	}
	call.Bucket = cmp.Or(call.Bucket, quota.DefaultBucket)
	return call, g.knows(call)
}

// execFlags holds the part of a job that flags describe, and how to find its hold.
type execFlags struct {
	job            job.Job
	learned, quiet bool
	buckets        bool // --bucket was given
}

func (f *execFlags) check(changed func(string) bool) error {
	if err := checkCall(f.job.Call, f.job.Key, changed); err != nil {
		return err
	}
	switch {
	case changed("bucket") && !changed("units") && !changed("max") && !f.learned:
		return cli.Usagef("--bucket needs --units, --max or --learned")
	case !changed("method") && !changed("units") && !f.learned && f.job.Settle != job.SettleProxy:
		return cli.Hint(cli.Usagef("give --method, --units or --learned"),
			"they set the hold before the command starts")
	case !slices.Contains([]string{"all", "exit", "report", "proxy"}, string(f.job.Settle)):
		return cli.Usagef("--settle %s: write all, exit, report or proxy", f.job.Settle)
	case f.job.Lapse != quota.LapseCharge && f.job.Lapse != quota.LapseRelease:
		return cli.Usagef("--lapse %s: write release or charge", f.job.Lapse)
	case f.job.TTL < time.Second:
		return cli.Usagef("--ttl %s: must be at least 1s", f.job.TTL)
	case f.job.Wait < 0:
		return cli.Usagef("--wait %s: must not be negative", f.job.Wait)
	case changed("lock") && f.job.Lock == "":
		return cli.Usagef("--lock is empty: leave it out, or give a name")
	case len(f.job.Key) > 200 || len(f.job.Lock) > 200:
		return cli.Usagef("--id and --lock: at most 200 bytes")
	}
	return cmp.Or(quota.CheckText("--id", f.job.Key), quota.CheckText("--lock", f.job.Lock))
}
