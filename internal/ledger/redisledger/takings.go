package redisledger

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Takings lists what was taken off entries.
func (l *Ledger) Takings(ctx context.Context, q quota.Query) ([]quota.Taking, error) {
	list, err := l.readTakings(ctx, q)
	if err != nil {
		return nil, err
	}
	members, err := parseMembers(q.Credential, q.Bucket, list)
	if err != nil {
		return nil, err
	}
	entries, err := l.entries(ctx, q, members)
	takings := make([]quota.Taking, len(entries))
	for i, e := range entries {
		takings[i] = quota.Taking{At: e.At, ID: e.ID, Bucket: e.Bucket, Units: e.Units,
			Labels: e.Labels}
	}
	return takings, err
}

// readTakings reads notes as they are kept, oldest first, in bounded steps. Unlike entries, two can
// be of one time.
func (l *Ledger) readTakings(ctx context.Context, q quota.Query) (all []redis.Z, err error) {
	key := takingsKey(q.Credential, q.Bucket)
	by := &redis.ZRangeBy{Min: after(q.Since), Max: "+inf", Count: readAtOnce}
	if !q.Until.IsZero() {
		by.Max = strconv.FormatInt(q.Until.UnixMicro(), 10)
	}
	for {
		if q.Limit > 0 {
			by.Count = min(readAtOnce, int64(q.Limit-len(all)))
		}
		page, err := l.client.ZRevRangeByScoreWithScores(ctx, key, by).Result()
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, page...)
		if len(page) < int(by.Count) || len(all) == q.Limit {
			slices.Reverse(all)
			return all, nil
		}
		by.Offset += by.Count
	}
}

// damage reports whether something that is kept cannot be read.
func damage(err error) bool {
	_, is := errors.AsType[*quota.DamagedError](err)
	return is
}

// checkTakings finds the notes that cannot be read, and removes them in a repair. They decide
// nothing, but while one of them is there, the log cannot be listed.
func (l *Ledger) checkTakings(ctx context.Context, credential, bucket string, repair bool) (
	[]quota.Finding, error) {
	q := quota.Query{Credential: credential, Bucket: bucket}
	if _, err := l.Takings(ctx, q); !damage(err) {
		return nil, err
	}
	list, err := l.readTakings(ctx, q)
	if err != nil {
		return nil, err
	}
	var found quota.Findings
	var gone []any
	for _, z := range list {
		some, err := parseMembers(credential, bucket, []redis.Z{z})
		if err == nil {
			_, err = l.entries(ctx, q, some)
		}
		if damage(err) {
			gone = append(gone, z.Member)
		} else if err != nil {
			return nil, err
		}
	}
	if found.Unread(len(gone)); repair && len(gone) > 0 {
		err = explain(l.client.ZRem(ctx, takingsKey(credential, bucket), gone...).Err())
	}
	return found.In(bucket), err
}
