package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Prefixes of the fields of a row.
const (
	denialCount = "n|"
	denialUnits = "u|"
	denialLast  = "t|"
)

// AddDenials implements ledger.Store. New rows of a full day lose their labels.
func (s *Store) AddDenials(ctx context.Context, credential string, denials []quota.Denial) error {
	kept := make(map[string]int64) // fields, by key
	for _, d := range denials {
		key := denialsKey(credential, d.Hour)
		if _, ok := kept[key]; !ok {
			n, err := s.client.HLen(ctx, key).Result()
			if err != nil {
				return explain(err)
			}
			kept[key] = n
		}
		if kept[key] += 3; kept[key] > 3*quota.MaxDenials {
			d.Labels = nil
		}
		row := fmt.Sprintf("%02d|%s|%s|%s", d.Hour.UTC().Hour(), d.Bucket, d.Limit,
			d.Labels.Encode())
		_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HIncrBy(ctx, key, denialCount+row, d.Count)
			p.HIncrBy(ctx, key, denialUnits+row, d.Units)
			p.HSet(ctx, key, denialLast+row, d.LastAt.UnixMicro())
			p.PExpireAt(ctx, key, d.Hour.Add(quota.DenialTime))
			return nil
		})
		if err != nil {
			return explain(err)
		}
	}
	return nil
}

// Denials implements ledger.Store.
func (s *Store) Denials(ctx context.Context, credential string, since time.Time) (
	all []quota.Denial, err error) {
	now, err := s.Time(ctx)
	if err != nil {
		return nil, err
	}
	if first := now.Add(-quota.DenialTime); since.Before(first) {
		since = first
	}
	const day = 24 * time.Hour
	for at := since.Truncate(day); !at.After(now); at = at.Add(day) {
		fields, err := s.client.HGetAll(ctx, denialsKey(credential, at)).Result()
		if err != nil {
			return nil, explain(err)
		}
		for name, units := range fields {
			row, ok := strings.CutPrefix(name, denialUnits)
			if !ok {
				continue
			}
			d, err := parseDenial(at, row, units, fields[denialCount+row], fields[denialLast+row])
			if err == nil && !d.LastAt.Before(since) {
				all = append(all, d)
			}
		}
	}
	quota.SortDenials(all)
	return all, nil
}

// parseDenial reads the fields of one row. The caller leaves out rows that cannot be read, because
// no decision depends on them.
func parseDenial(day time.Time, row, units, count, last string) (d quota.Denial, err error) {
	parts := strings.Split(row, "|")
	if len(parts) != 4 {
		return d, fmt.Errorf("denial %q", row)
	}
	hour, err := strconv.Atoi(parts[0])
	var err2, err3, err4 error
	d.Hour, d.Bucket, d.Limit = day.Add(time.Duration(hour)*time.Hour), parts[1], parts[2]
	d.Labels, err2 = quota.ParseLabels(parts[3])
	d.Units, err3 = strconv.ParseInt(units, 10, 64)
	d.Count, err4 = strconv.ParseInt(count, 10, 64)
	at, err5 := strconv.ParseInt(last, 10, 64)
	d.LastAt = quota.StampTime(at)
	return d, errors.Join(err, err2, err3, err4, err5)
}
