package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Suspend closes a bucket until the given time, or opens it again.
func (l *Ledger) Suspend(ctx context.Context, s quota.Suspension) error {
	if err := s.Check(); err != nil {
		return err
	}
	var us int64
	if !s.Until.IsZero() {
		us = s.Until.UnixMicro()
	}
	note, err := json.Marshal([]string{s.By, s.Reason})
	if err != nil {
		return err
	}
	n := numbers{us, quota.Retention.Microseconds()}
	keys := append(keysOf(s.Credential, s.Bucket), suspensionsKey(s.Credential))
	_, err = l.run1(ctx, "suspend", keys, n.blob(), s.Bucket, note)
	return err
}

// noteSuspensions adds who suspended buckets, when and why. A note that is not there or cannot be
// read is left out.
func (l *Ledger) noteSuspensions(ctx context.Context, credential string,
	buckets []quota.BucketUsage) error {
	for i := range buckets {
		b := &buckets[i]
		if b.SuspendedUntil.IsZero() {
			continue
		}
		text, err := l.client.HGet(ctx, suspensionsKey(credential), b.Bucket).Result()
		if err != nil && err != redis.Nil {
			return explain(err)
		}
		var since int64
		var note []string
		var rest string
		if n, _ := fmt.Sscanf(text, "%d", &since); n == 1 {
			_, rest, _ = strings.Cut(text, " ")
		}
		if json.Unmarshal([]byte(rest), &note) == nil && len(note) == 2 {
			b.SuspendedSince, b.SuspendedBy, b.Reason = fromMicro(since), note[0], note[1]
		}
	}
	return nil
}
