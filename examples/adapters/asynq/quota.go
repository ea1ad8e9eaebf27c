package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"quotabudget/client"
)

// charged returns a middleware of asynq that charges the ledger before each task. The server needs
// retryDelay and isFailure, too.
func charged(ledger *client.Client, cost func(*asynq.Task) client.Cost) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			// without a key of the task: an attempt that was cut off may have sent its call
			_, err := ledger.Charge(ctx, cost(task), "")
			if denied := denial(err); denied != nil && denied.Never {
				return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
			}
			if err != nil {
				return err
			}
			return next.ProcessTask(ctx, task)
		})
	}
}

// retryDelay lets a denied task wait until it fits. asynq keeps whole seconds and rounds them down.
func retryDelay(retried int, err error, task *asynq.Task) time.Duration {
	if denied := denial(err); denied != nil {
		return time.Until(denied.RetryAt.Add(time.Second - 1).Truncate(time.Second))
	}
	return asynq.DefaultRetryDelayFunc(retried, err, task)
}

// isFailure reports whether an error uses up one of the retries of a task: a denial does not. asynq
// still gives up a task that has none left.
func isFailure(err error) bool { return denial(err) == nil }

func denial(err error) (denied *client.DeniedError) {
	errors.As(err, &denied)
	return denied
}
