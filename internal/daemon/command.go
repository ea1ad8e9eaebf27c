package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Command is the work of a lane that runs a command. Its fields are set once.
type Command struct {
	Job     job.Job      // template for every run, without names, key and costs
	Day     quota.Window // the upstream's day
	Jitter  time.Duration
	CatchUp bool
	Queue   bool // run the ticks that come during a run after it; otherwise leave them out
	Retry   int  // retries of a run that failed or was lost in a crash
	Learn   bool // hold what earlier runs used, or the price before the first run
	Output  *slog.Logger

	mu        sync.Mutex
	learned   share.Lane // the lane with the costs of earlier runs
	learnedAt time.Time  // when it was learned
}

// relearn is how long learned costs are cached. Each decision needs the costs of all lanes.
const relearn = 10 * time.Minute

func (c *Command) policy() Policy {
	return Policy{Budget: c.Job.Budget, Day: c.Day, Jitter: c.Jitter, CatchUp: c.CatchUp,
		SkipOverlap: !c.Queue}
}

// wants sets the units that earlier runs used and, if they are to be learned, the units to hold.
func (c *Command) wants(ctx context.Context, l *share.Lane) error {
	if !c.Learn && c.Job.Settle == job.SettleAll {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.learnedAt) >= relearn || c.learnedAt.IsZero() {
		b := c.Job.Budget
		h, err := job.ReadHistory(context.WithoutCancel(ctx), b, b.Buckets())
		if err != nil {
			return err
		}
		c.learned, c.learnedAt = share.Lane{Price: l.Price}, now
		if c.Learn {
			c.learned.Price = h.LearnedOr(l.Job, l.Price)
		}
		c.learned.LearnedCosts, c.learned.Runs = h.Took(l.Job)
	}
	l.Price, l.LearnedCosts, l.Runs = c.learned.Price, c.learned.LearnedCosts, c.learned.Runs
	return nil
}

func (c *Command) served(context.Context, *share.Lane) time.Time { return time.Time{} }

// earlier returns nothing, because the marks record which ticks are done.
func (c *Command) earlier(context.Context, *lane) (e earlierTicks, err error) { return e, nil }

// run runs the command, and repeats it while it fails and Retry allows.
func (c *Command) run(ctx context.Context, l *lane, tick schedule.Tick, _ bool) result {
	if c.Retry == 0 {
		// After a crash between this record and the end of the run, the command may have done any
		// part of its work, so it must not run again.
		state, err := l.cfg.Claims.Claim(ctx, c.begun(l, tick))
		if err != nil {
			return l.retry(tick, err)
		}
		if state != quota.ClaimWon {
			l.d.Log.Warn("tick left out: its run was lost in a crash, and retry: is 0",
				"tick", tick.ID())
			l.missedTick(1, tick, "its run was lost in a crash, and retry: is 0")
			l.ended(ctx, tick, ending{outcome: lost})
			return done
		}
	}
	for attempt := 1; ; attempt++ {
		r, err := c.once(ctx, l, tick, attempt)
		result, failed := c.ended(ctx, l, tick, r, err)
		if result == retry && c.Retry == 0 { // not started, so any daemon may run it
			l.release(ctx, c.begun(l, tick))
		}
		if !failed || attempt > c.Retry {
			return result
		}
		wait := min(time.Duration(attempt)*l.cfg.retryAfter(), time.Minute)
		l.d.Log.Info("run failed, retrying", "tick", tick.ID(), "attempt", attempt, "wait", wait)
		if !quota.Pause(ctx, wait) {
			return retry
		}
	}
}

// begun returns the claim that records that a run of a tick may have started.
func (c *Command) begun(l *lane, tick schedule.Tick) quota.Claim {
	claim := l.cfg.markClaim(l.Lane, tick)
	claim.Name, claim.Holder = "begun/"+tick.ID(), l.d.Holder
	return claim
}

func (c *Command) once(ctx context.Context, l *lane, tick schedule.Tick,
	attempt int) (job.Outcome, error) {
	j, lane := c.Job, l.Lane.Lane
	if err := c.wants(ctx, &lane); err != nil {
		return job.Outcome{}, err
	}
	j.Name, j.RunID, j.Key = l.Job, tick.ID(), tick.ID()
	if attempt > 1 { // each attempt has its own name in the log
		j.RunID = fmt.Sprintf("%s#%d", tick.ID(), attempt)
	}
	j.Call.Costs, j.Call.Unpaced = lane.Price, l.unpaced(ctx, tick)
	j.Lease = l.cfg.Lease         // the run's key lapses with the lane
	j.Grace = l.cfg.Grace * 3 / 4 // leaves time for the settlement, the mark and the lease
	out := &output{log: c.Output.With("job", l.Job, "run", j.RunID)}
	defer out.close()
	j.Command.Stdout, j.Command.Stderr = out.stream("stdout"), out.stream("stderr")
	return j.Run(ctx)
}

// ended logs how a run ended, and returns whether its tick is done and whether the run failed.
func (c *Command) ended(ctx context.Context, l *lane, tick schedule.Tick, r job.Outcome,
	err error) (result result, failed bool) {
	e := ending{outcome: "complete", units: r.Took}
	if r.Started {
		e.code = &r.Code
	}
	attrs := []any{"tick", tick.ID()}
	if r.Denied > 0 {
		attrs = append(attrs, "denied_by_max", r.Denied)
	}
	denied, isDenied := errors.AsType[*job.DeniedError](err)
	start, cannotStart := errors.AsType[*job.StartError](err)
	switch {
	case isDenied && denied.Why != "":
		l.d.Log.Debug("an earlier run of the tick may still be under way, retrying", attrs...)
		return retry, false
	case isDenied:
		e.outcome = "exhausted"
		if denied.Decision.Limit == quota.PaceName {
			e.outcome = paced
		}
		attrs = append(attrs, "limit", denied.Decision.Limit, "retry_at", denied.Decision.RetryAt)
	case cannotStart:
		e.outcome, e.code = "failed", &start.Code
		attrs = append(attrs, "error", err)
	case err != nil && ctx.Err() != nil && (!r.Started || c.Retry > 0):
		return retry, false
	case fromLedger(err):
		return l.retry(tick, err), false
	case err != nil:
		e.outcome = "failed"
		attrs = append(attrs, "error", err)
	case ctx.Err() != nil && r.Code != 0:
		e.outcome = "interrupted"
		attrs = append(attrs, "cause", context.Cause(ctx))
	case r.Timeout:
		e.outcome = "timeout"
		attrs = append(attrs, "timeout", c.Job.Timeout)
	case r.Code != 0:
		e.outcome = "failed"
	}
	attrs = append(attrs, e.attrs()...)
	l.ended(ctx, tick, e)
	switch e.outcome {
	case "complete":
		l.d.Log.Info("tick done", attrs...)
		return done, false
	case "exhausted", paced:
		l.d.Log.Warn("tick denied", attrs...)
		return done, false
	case "interrupted":
		l.d.Log.Warn("run ended before it was complete", attrs...)
		if c.Retry > 0 {
			return retry, false
		}
		return done, false
	}
	l.d.Log.Error("tick failed", attrs...)
	return done, true
}
