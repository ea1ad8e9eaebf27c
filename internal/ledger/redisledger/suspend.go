package redisledger

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Suspend closes a bucket until the given time, or opens it again.
func (l *Ledger) Suspend(ctx context.Context, credential, bucket string, until time.Time) error {
	for _, name := range []string{credential, bucket} {
		if err := quota.CheckName(name); err != nil {
			return fmt.Errorf("%w: %w", quota.ErrMalformed, err)
		}
	}
	var us int64
	if !until.IsZero() {
		us = until.UnixMicro()
	}
	keys := append([]string{labelsKey(credential)}, bucketKeys(credential, bucket)...)
	return explain(l.suspend.Run(ctx, l.client, keys, numbers{us, quota.Retention.Microseconds()}.blob()).Err())
}
