// Package job runs one command as a metered job: it holds units before the command starts, extends
// the hold while the command runs, and settles it afterwards.
//
// A run claims its key and its lock, if it has any. It holds the units, and may wait in line for
// them. It starts the command and extends the hold while the command runs. Then it books the usage
// according to Job.Settle.
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

// Settlement is the way to determine the usage of a command.
type Settlement string

// Kinds of settlement.
const (
	// SettleAll books the units held.
	SettleAll Settlement = "all"
	// SettleExit books the units held if the command exits with 0 or is killed by a signal, because
	// it may have used them, and releases them otherwise.
	SettleExit Settlement = "exit"
	// SettleReport books the usage that the command writes to the descriptor $QUOTA_REPORT_FD. See
	// reportTotal.
	SettleReport Settlement = "report"
	// SettleProxy releases the rest of the hold: the requests of the command have drawn their
	// units.
	SettleProxy Settlement = "proxy"
)

// Job is a command and its units. Its fields are set once before Run.
type Job struct {
	Command Command
	Budget  *quota.Budget
	Claims  quota.Claims // required with a Key or a Lock
	Buckets []string     // more buckets that a report may name, from the price list

	// Name and RunID are the labels job and run of the entries. An empty RunID is replaced by a new
	// ID.
	Name, RunID string
	// Call is held before the command starts. A call without a method, units and costs holds
	// nothing.
	Call quota.Call
	TTL  time.Duration // of the hold, which is extended while the command runs; at least 1 s
	// Lapse is what happens to the hold if this process is killed. The default is
	// quota.LapseCharge.
	Lapse  quota.Lapse
	Settle Settlement // default SettleAll
	Max    Ceiling    // lowers the hold, and denies further requests of the command
	// Key identifies the run, for instance by the job and the scheduled time. A run that has
	// succeeded is not started again, and units booked for a failed run are not booked again. See
	// holdOnce.
	Key  string
	Lock string        // only one run with the lock is under way at a time
	Wait time.Duration // maximum wait for the key, the lock and the units
	// Lease is how long the key and the lock stay with a process that died or was stopped. If it
	// continues later, it ends its command. The default is a minute.
	Lease time.Duration

	// Prepare, if set, is called between the hold and the start. It returns variables for the
	// command, and a function to call after its end.
	Prepare func(context.Context, Prepared) (env []string, end func(), err error)
	// Signals, from Notify, are passed to the command. A signal before the start ends the run.
	Signals chan os.Signal
	Timeout time.Duration // maximum duration of the command; 0 for none
	Grace   time.Duration // between SIGTERM and SIGKILL; default 10 s
	Log     *slog.Logger
}

// Prepared is a run that is about to start.
type Prepared struct {
	Ledger quota.BudgetLedger // for the requests of the command; see Drawing
	Labels quota.Labels       // of all entries of the run
}

// Outcome is the result of a run.
type Outcome struct {
	Run     string
	Started bool
	Done    bool           // a run with this key succeeded before; not started
	Code    int            // exit code of the command; 128 + the signal that ended it
	Signal  syscall.Signal // the signal that ended the command; 0 for none
	Timeout bool           // the command was ended after Timeout

	Reservation string           // "" if nothing was held
	Held        map[string]int64 // by bucket
	// Took is the units booked by bucket, including drawn units. It is nil if the settlement
	// failed; the hold then lapses at ExpiresAt.
	Took      map[string]int64
	ExpiresAt time.Time
	Denied    int // requests of the command that Max denied
}

// Reasons to deny a run, other than units.
const (
	DeniedKey  = "key"  // a run with the same key is under way
	DeniedLock = "lock" // another job has the lock
)

// DeniedError reports that the command was not started, and when to retry.
type DeniedError struct {
	Decision quota.Decision // on the units; RetryAt is zero if the time is unknown
	Why      string         // DeniedKey, DeniedLock, or "" for units
	Ahead    int            // number of runs waiting before this one
}

// Error returns what denied the run.
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

// StartError reports that the command could not be started.
type StartError struct {
	Code int // 127: not found; 126: found, but cannot be run
	Err  error
}

// Error names the command.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// LostError reports that the command was ended because another run may have its key or lock: this
// process was stopped for longer than the lease, or could not renew it in time.
type LostError struct{ Lease time.Duration }

// Error describes what happened.
func (e *LostError) Error() string {
	return fmt.Sprintf("the command was ended: this process was stopped for longer than the lease "+
		"of its lock or id (%v), and another run may have taken them", e.Lease)
}

// SignalError reports a signal before the start of the command.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return fmt.Sprintf("%v signal received", e.Signal) }

// Run runs the command and waits for its end. When ctx ends, Run ends the command. After a
// DeniedError, StartError, SignalError or an error of Budget.Reserve, the command was not started
// and nothing is held. After a LostError, the command was started, ended and settled.
func (j *Job) Run(ctx context.Context) (Outcome, error) {
	r, err := j.begin(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { r.leases.end(r.out.Done || r.out.Started && r.out.Code == 0) }()
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
	return r.out, nil
}

type run struct {
	*Job
	out      Outcome
	until    time.Time // deadline of waiting
	budget   quota.Budget
	heldAt   time.Time // by the ledger's clock
	leases   leases
	report   *reportPipe
	requests *Drawing
	replayed bool           // an earlier run with the key made the hold
	passed   quota.Decision // held in the journal, because the ledger was unreachable
	end      func()         // returned by Prepare
	child    *child
}

func (j *Job) begin(ctx context.Context) (*run, error) {
	now, own := time.Now(), *j
	own.Lapse = cmp.Or(j.Lapse, quota.LapseCharge)
	r := &run{Job: &own, budget: *j.Budget, until: now.Add(j.Wait), end: func() {}}
	r.out.Run = cmp.Or(j.RunID, quota.NewRunID(now))
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

func (r *run) call() quota.Call {
	call := r.Call
	call.Labels = maps.Clone(r.budget.Labels)
	return call
}

// untilSignal returns a context that a signal ends. stop ends the watch and returns the signal, if
// any, as an error.
func (r *run) untilSignal(ctx context.Context) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-r.Signals:
				if sig != syscall.SIGWINCH { // by default, any other signal ends a program
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
