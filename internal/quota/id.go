package quota

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// idEpoch is where the time in an ID begins to count: 40 bits of milliseconds last until October
// 2054.
var idEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a 14-letter ID that sorts by time: 8 letters of milliseconds, then 6 random ones
// (30 bits). It is short because a ledger keeps one with every entry.
func NewID(now time.Time) string {
	var random [6]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	id := make([]byte, 14)
	ms := max(0, now.Sub(idEpoch).Milliseconds())
	for i := 7; i >= 0; i-- {
		id[i] = idAlphabet[ms&31]
		ms >>= 5
	}
	for i, b := range random {
		id[8+i] = idAlphabet[b&31]
	}
	return string(id)
}

// nameForm is what credentials and buckets may be called: they become part of keys.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// CheckName reports what is wrong with the name of a credential or a bucket.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%q is not a name: "+
			"use up to 63 lower-case letters, digits, _ and -", name)
	}
	return nil
}

var idForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

// ReservationID joins a bucket and an ID: a reservation's ID says which bucket it is of.
func ReservationID(bucket, id string) string { return bucket + "." + id }

// ParseReservation takes a reservation's ID apart. A text of another form is ErrMalformed.
func ParseReservation(reservation string) (bucket, id string, err error) {
	bucket, id, ok := strings.Cut(reservation, ".")
	if !ok || CheckName(bucket) != nil || !idForm.MatchString(id) {
		err = malformed("%q is not a reservation ID such as default.06fmjq2kx4a9bc", reservation)
		return "", "", err
	}
	return bucket, id, nil
}

// NewRunID returns a 10-letter ID for one execution of a job: it sorts by time like NewID's, but is
// only a label, so two that are alike (once in a thousand pairs begun in the same millisecond) do
// no harm.
func NewRunID(now time.Time) string { return NewID(now)[:10] }
