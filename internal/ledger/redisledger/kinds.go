package redisledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// wrongKind is how a server says that a key holds something else than a command wants.
const wrongKind = "WRONGTYPE"

// foreign says which of a bucket's keys made a check fail with err. Any other error stays what it
// is.
func (l *Ledger) foreign(ctx context.Context, credential, bucket string, err error) (
	found []quota.Finding, _ error) {
	if err == nil || !strings.Contains(err.Error(), wrongKind) {
		return nil, err
	}
	for _, key := range []struct {
		name, kind string
		size       func(context.Context, string) *redis.IntCmd
	}{
		{stateKey(credential, bucket), "hash", l.client.HLen},
		{logKey(credential, bucket), "sorted set", l.client.ZCard},
		{holdsKey(credential, bucket), "sorted set", l.client.ZCard},
		{sumsKey(credential, bucket), "sorted set", l.client.ZCard},
		{takingsKey(credential, bucket), "sorted set", l.client.ZCard},
		{labelsKey(credential), "hash", l.client.HLen},
	} {
		if err := key.size(ctx, key.name).Err(); err != nil && codeOfReply(err) == wrongKind {
			found = append(found, quota.Finding{
				Bucket: bucket,
				What: fmt.Sprintf("the key %s is not a %s: something else wrote it", key.name,
					key.kind),
				Repair: "none: rename or delete that key, then check again",
			})
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, err
}
