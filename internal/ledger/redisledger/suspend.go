package redisledger

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Suspend closes a bucket until the given time, or opens it again.
func (l *Ledger) Suspend(ctx context.Context, credential, bucket string, until time.Time) error {
	if err := quota.CheckBucketOf(credential, bucket); err != nil {
		return err
	}
	var us int64
	if !until.IsZero() {
		us = until.UnixMicro()
	}
	n := numbers{us, quota.Retention.Microseconds()}
	_, err := l.run1(ctx, "suspend", keysOf(credential, bucket), n.blob())
	return err
}
