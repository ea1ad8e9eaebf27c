package main

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"quotabudget/client"
)

// quota is River middleware that charges the ledger before each job. A job that does not fit is
// snoozed until it does, which uses up none of its attempts.
type quota struct {
	river.MiddlewareDefaults
	ledger *client.Client
	// cost returns the cost of a job.
	cost func(*rivertype.JobRow) client.Cost
}

// Work implements rivertype.WorkerMiddleware.
func (q *quota) Work(ctx context.Context, job *rivertype.JobRow,
	work func(context.Context) error) error {
	// without a job key: an interrupted attempt may have sent its call
	_, err := q.ledger.Charge(ctx, q.cost(job), "")
	var denied *client.DeniedError
	switch {
	case errors.As(err, &denied) && denied.Never:
		return river.JobCancel(err)
	case errors.As(err, &denied):
		// River rounds times down to milliseconds on SQLite
		return river.JobSnooze(max(0, time.Until(denied.RetryAt)) + time.Millisecond)
	case err != nil:
		return err // the ledger is unreachable: River retries
	}
	return work(ctx)
}
