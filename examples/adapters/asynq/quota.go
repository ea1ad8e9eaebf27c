package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"quotabudget/client"
)

// charged returns asynq middleware that charges the ledger before each task. The server also needs
// retryDelay and isFailure.
func charged(ledger *client.Client, cost func(*asynq.Task) client.Cost) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			// without a task key: an interrupted attempt may have sent its call
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

// retryDelay makes a denied task wait until it fits. asynq rounds times down to whole seconds.
func retryDelay(retried int, err error, task *asynq.Task) time.Duration {
	if denied := denial(err); denied != nil {
		return time.Until(denied.RetryAt.Add(time.Second - 1).Truncate(time.Second))
	}
	return asynq.DefaultRetryDelayFunc(retried, err, task)
}

// isFailure reports whether an error uses up one of a task's retries: a denial does not. asynq
// still gives up a task without retries.
func isFailure(err error) bool { return denial(err) == nil }

func denial(err error) (denied *client.DeniedError) {
	errors.As(err, &denied)
	return denied
}
