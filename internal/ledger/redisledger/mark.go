package redisledger

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Mark implements quota.Ledger: every change of a bucket writes the numbers of its state, in which
// the time of the newest decision never moves back.
func (l *Ledger) Mark(ctx context.Context, credential string, buckets []string) (string, error) {
	pipe := l.client.Pipeline()
	states := make([]*redis.StringCmd, len(buckets))
	for i, b := range buckets {
		states[i] = pipe.HGet(ctx, stateKey(credential, b), stateField)
	}
	if len(states) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
			return "", explain(err)
		}
	}
	var mark strings.Builder
	for _, s := range states {
		mark.WriteString(s.Val() + "\n")
	}
	return mark.String(), nil
}
