package redisstore

import (
	"time"

	"quotabudget/internal/quota"
)

// Every key of a credential has the same hash tag, so that one charge stays in one slot of a
// cluster. A key that belongs to no bucket has two colons in a row, since no bucket's name is
// empty.

func prefix(credential string) string { return "quota:{" + credential + "}:" }

// logKey returns the key of a bucket's log: a sorted set of entries by stamp.
func logKey(credential, bucket string) string { return prefix(credential) + bucket + ":log" }

// stateKey returns the key of a bucket's state: see stateText.
func stateKey(credential, bucket string) string { return prefix(credential) + bucket + ":state" }

// holdsKey returns the key of a bucket's holds: a hash by reservation.
func holdsKey(credential, bucket string) string { return prefix(credential) + bucket + ":holds" }

// lapsedKey returns the key of the reservations that have become entries: a sorted set by the
// stamp of the entry.
func lapsedKey(credential, bucket string) string { return prefix(credential) + bucket + ":lapsed" }

// notesKey returns the key of the notes of corrections: a sorted set like the log.
func notesKey(credential, bucket string) string { return prefix(credential) + bucket + ":notes" }

// sumsKey returns the key of the entries of one day of UTC added up: a hash.
func sumsKey(credential, bucket string, at int64) string {
	return prefix(credential) + bucket + ":sums:" + stampTime(at).Format(time.DateOnly)
}

// bucketsKey returns the key of a credential's buckets: a sorted set by the time in ms at which
// their state expires.
func bucketsKey(credential string) string { return prefix(credential) + ":buckets" }

// answerKey returns the key of a kept answer.
func answerKey(credential, name string) string { return prefix(credential) + ":answer:" + name }

// lockKey returns the key of the lock that a writer takes after it lost several races.
func lockKey(credential string) string { return prefix(credential) + ":lock" }

// denialsKey returns the key of what was denied in one day of UTC: a hash. Each row has three
// fields: the number of denials, their units, and the time of the last one.
func denialsKey(credential string, day time.Time) string {
	return prefix(credential) + ":denials:" + day.UTC().Format(time.DateOnly)
}

// stampTime returns a stored time.
func stampTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

const (
	day   = int64(24 * time.Hour / time.Microsecond)
	grain = int64(quota.Grain / time.Microsecond)
)

// dayOf returns the start of the day of UTC that a stored time lies in.
func dayOf(micros int64) int64 { return micros - mod(micros, day) }

func mod(n, by int64) int64 { return ((n % by) + by) % by }
