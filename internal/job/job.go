// Package job runs one command as a metered job: what it may take is held before it starts, kept
// held while it runs, and settled when it has ended.
//
// The steps of a run: the key and the lock are claimed, if there are any; the units are held, which
// may mean to wait in line for them; the command is started, and the hold is extended while it
// runs; what it took is booked, as Settle says.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"syscall"
	"time"

	"quotabudget/internal/quota"
)

// Settlement says how it is found out what a command took.
type Settlement string

// The settlements.
const (
	// SettleAll books what was held.
	SettleAll Settlement = "all"
	// SettleExit books what was held, but gives it back when the command ends with another exit
	// code than 0. One that was killed by a signal may have been at work: it is booked.
	SettleExit Settlement = "exit"
	// SettleReport books what the command writes to the descriptor $QUOTA_REPORT_FD. See Report.
	SettleReport Settlement = "report"
	// SettleProxy gives back what is left: the requests of the command have drawn what they took.
	SettleProxy Settlement = "proxy"
)

// Job is a command and what it may take. Its fields are set once before Run.
type Job struct {
	Command Command
	Budget  *quota.Budget
	Claims  quota.Claims // required with a Key or a Lock
	Buckets []string     // of the price list, besides those of Budget: a report may name them

	// Name is the label job of what it takes, and RunID the label run: a new one if it is "".
	Name, RunID string
	// Call is what is held before the command starts, with its labels. One without a method, units
	// and costs holds nothing.
	Call quota.Call
	TTL  time.Duration // of the hold, which is extended while the command runs; at least 1 s
	// Lapse is what becomes of the hold if this process is killed: quota.LapseCharge, if it is "".
	Lapse  quota.Lapse
	Settle Settlement // SettleAll, if it is ""
	Max    Ceiling    // lowers what is held, and denies requests and draws of the command beyond it
	// Key names the run, such as the job and the scheduled time: one that has succeeded is not
	// started again, and what was booked for one that has failed is not booked again. See holdOnce.
	Key  string
	Lock string        // only one job that has it runs at a time
	Wait time.Duration // how long to wait for the key, the lock and the units; 0 not at all
	// Lease is how long the key and the lock stay with a job that has died, or that was stopped:
	// when it wakes after that, its command is ended. It is a minute, if it is 0.
	Lease time.Duration

	// Prepare, if it is set, is called between the hold and the start. It returns variables for the
	// command, and what to call when it has ended.
	Prepare func(context.Context, Prepared) (env []string, end func(), err error)
	// Signals are passed to the command: those of Notify. One that comes before the start ends the
	// run.
	Signals chan os.Signal
	Timeout time.Duration // after which the command is ended; 0 for none
	Grace   time.Duration // between SIGTERM and SIGKILL; 10 s, if it is 0
	Log     *slog.Logger
}

// Prepared is a run that is about to start.
type Prepared struct {
	Ledger quota.BudgetLedger // for the requests of the command, see Drawing
	Labels quota.Labels       // of all that the run takes
}

// Outcome is what became of a run.
type Outcome struct {
	Run     string
	Started bool
	Done    bool           // a run with this key has succeeded before: not started
	Code    int            // of the command; 128 + the signal that ended it
	Signal  syscall.Signal // that ended the command; 0 for none
	Timeout bool           // it was ended because it took longer than Timeout

	Reservation string           // "" if nothing was held
	Held        map[string]int64 // by bucket
	// Took is the units booked by bucket, including drawn ones. It is nil if the settlement failed:
	// the hold then lapses at ExpiresAt.
	Took      map[string]int64
	ExpiresAt time.Time
	Denied    int // requests of the command that Max denied
}

// OK reports whether the command ended as one that did what it should.
func (o Outcome) OK() bool { return o.Done || o.Started && o.Code == 0 }

// What denies a run, besides units.
const (
	DeniedKey  = "key"  // a run with the same key is under way
	DeniedLock = "lock" // another job has the lock
)

// DeniedError says that the command was not started, and when to come back.
type DeniedError struct {
	Decision quota.Decision // of the units; its RetryAt is zero where nobody knows
	Why      string         // DeniedKey, DeniedLock, or "" for units
	Ahead    int            // how many others are waiting for the same, before this one
}

// Error says what denied.
func (e *DeniedError) Error() string {
	switch {
	case e.Why == DeniedKey:
		return "a run with the same key is under way"
	case e.Why == DeniedLock:
		return "another run has the lock"
	case e.Decision.Allowed || e.Decision.RetryAt.IsZero():
		return fmt.Sprintf("%v: %d others are waiting for the same units", quota.ErrExhausted,
			e.Ahead)
	}
	return (&quota.DeniedError{Decision: e.Decision}).Error()
}

// Is makes every DeniedError a quota.ErrExhausted: try again later.
func (e *DeniedError) Is(target error) bool { return target == quota.ErrExhausted }

// StartError says that the command could not be started.
type StartError struct {
	Code int // 127: it was not found; 126: it was found, and cannot be run
	Err  error
}

// Error names the command.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *StartError) Unwrap() error { return e.Err }

// LostError reports that the command was ended because another run may have its key or lock: this
// process was stopped for longer than the lease, or could not renew it in time.
type LostError struct{ Lease time.Duration }

// Error describes what happened.
func (e *LostError) Error() string {
	return fmt.Sprintf("the command was ended: this process was stopped for longer than the lease "+
		"of its lock or id (%v), and another run may have taken them", e.Lease)
}

// SignalError says that a signal came before the command was started.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return fmt.Sprintf("%v before the start", e.Signal) }

// Run runs the command and waits for its end. When ctx ends, the command is ended, too. Errors:
// DeniedError, StartError and SignalError, and those of Budget.Reserve; then the command was not
// started, and nothing is held. LostError: it was started and ended, and is settled.
func (j *Job) Run(ctx context.Context) (Outcome, error) {
	r, err := j.begin(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer r.leases.end()
	ctx, stop := r.untilSignal(ctx)
	err = r.take(ctx)
	err = errors.Join(err, stop())
	if r.out.Done {
		return r.out, nil
	}
	r.requests = r.newDrawing()
	if err == nil {
		err = r.stillHeld(ctx)
	}
	if err == nil {
		err = r.start(ctx)
	}
	if err != nil {
		r.giveBack()
		if sig, ok := errors.AsType[*SignalError](err); ok {
			err = sig
		}
		return r.out, err
	}
	r.wait(ctx)
	r.settle()
	if r.leases.isLost() {
		return r.out, &LostError{r.leases.ttl}
	}
	if r.out.OK() {
		r.leases.done()
	}
	return r.out, nil
}

// run is one execution of a job.
type run struct {
	*Job
	out      Outcome
	until    time.Time // when waiting ends
	budget   quota.Budget
	leases   leases
	report   *reportPipe
	requests *Drawing
	replayed bool           // an earlier run with the key made the hold
	passed   quota.Decision // without the ledger, which was away; the journal has it
	end      func()         // of Prepare
	child    *child
}

func (j *Job) begin(ctx context.Context) (*run, error) {
	r := &run{Job: j, budget: *j.Budget, end: func() {}}
	now := time.Now()
	r.out.Run = j.RunID
	if r.out.Run == "" {
		r.out.Run = quota.NewRunID(now)
	}
	r.until = now.Add(j.Wait)
	labels := quota.Labels{quota.LabelRun: r.out.Run}
	if j.Name != "" {
		labels[quota.LabelJob] = j.Name
	}
	r.budget.Labels = j.Budget.Labels.With(labels).With(j.Call.Labels)
	if err := r.budget.Labels.Check(); err != nil {
		return nil, err
	}
	r.leases = leases{claims: j.Claims, credential: r.budget.Credential, log: j.Log,
		holder: quota.NewID(now), keep: quota.RetentionFor(r.budget.Limits),
		ttl: cmp.Or(j.Lease, leaseTime), lost: make(chan struct{})}
	return r, ctx.Err()
}

// call is what is held.
func (r *run) call() quota.Call {
	call := r.Call
	call.Labels = maps.Clone(r.budget.Labels)
	return call
}

func (r *run) lapse() quota.Lapse {
	if r.Lapse == "" {
		return quota.LapseCharge
	}
	return r.Lapse
}

// untilSignal is ctx until a signal comes. stop ends that, with the signal if one came.
func (r *run) untilSignal(ctx context.Context) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-r.Signals:
				if ends(sig) {
					cancel(&SignalError{sig.(syscall.Signal)})
					return
				}
			case <-over:
				return
			}
		}
	}()
	return ctx, func() error {
		close(over)
		<-ended
		if sig, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
			return sig
		}
		return nil
	}
}
