package redisledger

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Sums implements quota.Ledger.
func (l *Ledger) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	query := quota.Query{Credential: q.Credential, Bucket: q.Bucket}
	if !q.Since.IsZero() {
		query.Since = quota.GrainOf(q.Since.Add(quota.Grain - time.Microsecond)).Add(-time.Microsecond)
	}
	entries, err := l.Entries(ctx, query)
	return quota.AddUp(entries), err
}

// Between implements quota.Ledger: the running totals of the first and the last entry say it.
func (l *Ledger) Between(
	ctx context.Context,
	credential, bucket string,
	from, to time.Time,
) (int64, error) {
	log, until := logKey(credential, bucket), strconv.FormatInt(to.UnixMicro(), 10)
	pipe := l.client.TxPipeline()
	first := pipe.ZRangeByScoreWithScores(ctx, log,
		&redis.ZRangeBy{Min: after(from), Max: until, Count: 1})
	last := pipe.ZRevRangeByScoreWithScores(ctx, log,
		&redis.ZRangeBy{Min: after(from), Max: until, Count: 1})
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, explain(err)
	}
	var ends []member
	for _, z := range append(first.Val(), last.Val()...) {
		m, err := parseMember(z.Member.(string), z.Score)
		if err != nil {
			return 0, damaged(credential, bucket, err)
		}
		ends = append(ends, m)
	}
	if len(ends) < 2 {
		return 0, nil
	}
	return ends[1].total - ends[0].total + ends[0].units, nil
}
