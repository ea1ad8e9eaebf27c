package main

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quotabudget/client"
)

// quota is a middleware of River that charges the ledger before each job. A job that does not fit
// is snoozed until it does, which uses up none of its attempts.
type quota struct {
	river.MiddlewareDefaults
	ledger *client.Client
	// cost returns what a job takes.
	cost func(*rivertype.JobRow) client.Cost
}

// Work implements rivertype.WorkerMiddleware.
func (q *quota) Work(ctx context.Context, job *rivertype.JobRow,
	work func(context.Context) error) error {
	// without a key of the job: an attempt that was cut off may have sent its call
	_, err := q.ledger.Charge(ctx, q.cost(job), "")
	var denied *client.DeniedError
	switch {
	case errors.As(err, &denied) && denied.Never:
		return river.JobCancel(err)
	case errors.As(err, &denied):
		// River keeps milliseconds on SQLite, and rounds them down
		return river.JobSnooze(max(0, time.Until(denied.RetryAt)) + time.Millisecond)
	case err != nil:
		return err // the ledger is away: River tries again
	}
	return work(ctx)
}
