package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// Environment variables of a command.
const (
	EnvReservation = "QUOTA_RESERVATION" // ID of the reservation to draw on
	EnvLabels      = "QUOTA_LABELS"      // labels of the entries, as quota.ParseLabels reads them
	EnvReport      = "QUOTA_REPORT_FD"   // the descriptor for lines such as units=3
	EnvProxy       = "QUOTA_PROXY"       // the address of the proxy
	EnvMax         = "QUOTA_MAX"         // ceiling of the command in units, if it has one
)

func (r *run) start(ctx context.Context) error {
	env := []string{EnvLabels + "=" + r.budget.Labels.Encode()}
	if r.out.Reservation != "" {
		env = append(env, EnvReservation+"="+r.out.Reservation)
	}
	if r.Max.Units > 0 {
		env = append(env, fmt.Sprintf("%s=%d", EnvMax, r.Max.Units))
	}
	var files []*os.File
	if r.Settle == SettleReport {
		var err error
		if r.report, err = r.newReportPipe(); err != nil {
			return fmt.Errorf("cannot make a pipe for the report: %w", err)
		}
		files = []*os.File{r.report.write}
		env = append(env, EnvReport+"=3")
	}
	if r.Prepare != nil {
		more, end, err := r.Prepare(ctx, Prepared{r.requests, r.budget.Labels})
		if err != nil {
			return err
		}
		r.end, env = end, append(env, more...)
	}
	var err error
	if r.child, err = r.Command.start(env, files); err != nil {
		r.end()
		return err
	}
	r.out.Started = true
	if r.report != nil {
		r.report.write.Close()
	}
	return nil
}

// wait waits for the command's end, and extends the hold until then.
func (r *run) wait(ctx context.Context) {
	beats, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beating sync.WaitGroup
	beating.Go(func() { r.heartbeat(beats) })
	r.child.wait(ctx, r)
	cancel()
	beating.Wait()
	r.end()
}

// heartbeat extends the hold and renews the leases until ctx ends. While the ledger is unreachable,
// the command continues, and heartbeat retries more often. If a round takes longer than a lease,
// this process was stopped in between, and the command is ended first of all.
func (r *run) heartbeat(ctx context.Context) {
	extends := r.out.Reservation != ""
	every := r.TTL / 3
	if len(r.leases.held) > 0 {
		every = min(every, r.leases.ttl/3)
	}
	round := r.leases.renewed
	for wait := every; extends || len(r.leases.held) > 0; {
		if !quota.Pause(ctx, wait) {
			return
		}
		now := wallClock()
		if len(r.leases.held) > 0 && now.Sub(round) >= r.leases.ttl {
			r.leases.lose()
			return
		}
		round = now
		ask, cancel := context.WithTimeout(ctx, askTime)
		err := r.leases.renew(ask)
		if extends && err == nil {
			extends, err = r.extend(ask)
		}
		cancel()
		wait = every
		if err != nil && ctx.Err() == nil {
			r.Log.Debug("cannot extend the hold, retrying", "error", err)
			wait = min(every, 2*time.Second)
		}
	}
}

// extend extends the hold by another TTL, and reports whether it still exists.
func (r *run) extend(ctx context.Context) (bool, error) {
	until, err := r.budget.Extend(ctx, r.out.Reservation, r.TTL)
	switch {
	case err == nil:
		r.out.ExpiresAt = until
	case errors.Is(err, quota.ErrNoReservation):
		if r.lapsed(ctx) {
			r.Log.Warn("the hold has lapsed while the command runs: what it takes is booked when "+
				"it ends", "reservation", r.out.Reservation)
		}
		return false, nil
	}
	return true, err
}
