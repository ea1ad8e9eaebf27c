package quota

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// idEpoch is time 0 of an ID: 40 bits of milliseconds last until October 2054.
var idEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// idLetters encodes five bits of an ID as one letter.
var idLetters = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").
	WithPadding(base32.NoPadding)

const idLength = 14

// NewID returns a 14-letter ID that sorts by time: 8 letters of milliseconds, then 6 random ones
// (30 bits). It is short because a ledger keeps one with every entry.
func NewID(now time.Time) string {
	var id [9]byte
	ms := max(0, now.Sub(idEpoch).Milliseconds())
	binary.BigEndian.PutUint64(id[:], uint64(ms)<<24) // 40 bits
	// Read never fails: on an error, crypto/rand ends the process.
	rand.Read(id[5:])
	return idLetters.EncodeToString(id[:])[:idLength]
}

// idTime returns the time in an ID of NewID.
func idTime(id string) (at time.Time, ok bool) {
	if len(id) != idLength {
		return at, false
	}
	bits, err := idLetters.DecodeString(id[:8])
	if err != nil || len(bits) != 5 {
		return at, false
	}
	ms := binary.BigEndian.Uint64(append(bits, 0, 0, 0)) >> 24
	return idEpoch.Add(time.Duration(ms) * time.Millisecond), true
}

// Names of credentials and of buckets become part of keys. A part of a split bucket may have dots.
var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	partForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // of NewID or another program
)

// SplitBucket returns the bucket of one part of a split bucket: output/claude-sonnet-4-5.
func SplitBucket(bucket, part string) string { return bucket + "/" + part }

// CheckBucket reports what is wrong with the name of a bucket or of a part of one.
func CheckBucket(bucket string) error {
	name, part, split := strings.Cut(bucket, "/")
	if split && !partForm.MatchString(part) {
		return fmt.Errorf("%q is not a bucket: after the / come up to 63 lower-case letters, "+
			"digits, _, . and -", bucket)
	}
	return CheckName(name)
}

// WholeOf returns the bucket that a part or a label's value belongs to; any other bucket unchanged.
func WholeOf(bucket string) string {
	if end := strings.IndexAny(bucket, "/@"); end >= 0 {
		return bucket[:end]
	}
	return bucket
}

// CheckName reports what is wrong with the name of a credential or a bucket.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%q is not a name: "+
			"use up to 63 lower-case letters, digits, _ and -", name)
	}
	return nil
}

// MaxBuckets is the maximum number of buckets of one charge or reservation.
const MaxBuckets = 16

// ReservationID joins an ID and the buckets of a reservation, in order, so that a program can find
// the buckets from the name alone.
func ReservationID(id string, buckets ...string) string {
	return strings.Join(buckets, "+") + "." + id
}

// ParseReservation splits a reservation's ID. Errors: ErrMalformed.
func ParseReservation(reservation string) (id string, buckets []string, err error) {
	dot := strings.LastIndexByte(reservation, '.')
	if dot < 0 || !idForm.MatchString(reservation[dot+1:]) {
		return "", nil, notReservation(reservation)
	}
	buckets = strings.Split(reservation[:dot], "+")
	for i, bucket := range buckets {
		if checkLogName(bucket) != nil || slices.Contains(buckets[:i], bucket) || i == MaxBuckets {
			return "", nil, notReservation(reservation)
		}
	}
	return reservation[dot+1:], buckets, nil
}

func notReservation(text string) error {
	return malformed("%q is not a reservation ID such as default.06fmjq2kx4a9bc", text)
}

// NewRunID returns a 10-letter ID for one execution of a job. It sorts by time as NewID's does. It
// is only a label, so equal ones (one in a thousand pairs of the same millisecond) do no harm.
func NewRunID(now time.Time) string { return NewID(now)[:10] }
