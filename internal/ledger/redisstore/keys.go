package redisstore

import (
	"time"

	"quotabudget/internal/quota"
)

// Every key of a credential has the same hash tag, so that one charge stays in one slot of a
// cluster. A key that belongs to no bucket has two colons in a row, because no bucket's name is
// empty:
//
//	buckets      sorted set of the credential's buckets, by the time in ms at which their state expires
//	answer:NAME  string, a kept answer
//	lock         string, set by a writer that has lost several races
//	denials:DAY  hash of what was denied in one day of UTC; each row has three fields: the number of
//	             denials, their units, and the time of the last one
func credentialKey(credential, name string) string { return key(credential, "", name) }

func bucketsKey(credential string) string { return credentialKey(credential, "buckets") }

func lockKey(credential string) string { return credentialKey(credential, "lock") }

func denialsKey(credential string, day time.Time) string {
	return credentialKey(credential, "denials:"+day.UTC().Format(time.DateOnly))
}

// key returns a key of a bucket:
//
//	log       sorted set of entries by stamp
//	state     string: see stateText
//	holds     hash of the holds, by reservation
//	lapsed    sorted set of the reservations that have become entries, by the stamp of the entry
//	notes     sorted set of the notes of corrections, like the log
//	sums:DAY  hash of the entries of one day of UTC added up
func key(credential, bucket, name string) string {
	return "quota:{" + credential + "}:" + bucket + ":" + name
}

func logKey(credential, bucket string) string { return key(credential, bucket, "log") }

func stateKey(credential, bucket string) string { return key(credential, bucket, "state") }

func sumsKey(credential, bucket string, at int64) string {
	return key(credential, bucket, "sums:"+quota.StampTime(at).Format(time.DateOnly))
}

// key returns a key of the bucket.
func (b *bucket) key(name string) string { return key(b.Credential, b.Name, name) }

const (
	day   = int64(24 * time.Hour / time.Microsecond)
	grain = int64(quota.Grain / time.Microsecond)
)

// dayOf returns the start of a stored time's day in UTC.
func dayOf(micros int64) int64 { return micros - mod(micros, day) }

func mod(n, by int64) int64 { return ((n % by) + by) % by }
