package redisledger

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// Every key of a credential carries the same hash tag, so that one charge stays in one slot of a
// cluster. What is not of a bucket has two colons in a row, since no bucket's name is empty.

func prefix(credential string) string { return "quota:{" + credential + "}:" }

// logKey is the sorted set of a bucket's entries.
func logKey(credential, bucket string) string { return prefix(credential) + bucket + ":log" }

// stateKey is the hash of a bucket's totals, suspension and reservations.
func stateKey(credential, bucket string) string { return prefix(credential) + bucket + ":state" }

// holdsKey is the sorted set of a bucket's reservations, by expiry.
func holdsKey(credential, bucket string) string { return prefix(credential) + bucket + ":holds" }

// bucketKeys are the keys of a bucket, in the order in which every script takes them.
func bucketKeys(credential, bucket string) []string {
	return []string{
		stateKey(credential, bucket), logKey(credential, bucket), holdsKey(credential, bucket),
	}
}

// keysOf are the keys of the scripts that work on one bucket.
func keysOf(credential, bucket string) []string {
	return append([]string{labelsKey(credential)}, bucketKeys(credential, bucket)...)
}

// sumsKey is the sorted set of what was spent in a bucket by whom, by grains of time.
func sumsKey(credential, bucket string) string { return prefix(credential) + bucket + ":sums" }

// takingsKey is the sorted set of what was taken off a bucket's entries by hand (adjust.lua).
func takingsKey(credential, bucket string) string {
	return prefix(credential) + bucket + ":takings"
}

// labelsKey is the hash of label lines by their code.
func labelsKey(credential string) string { return prefix(credential) + ":labels" }

// suspensionsKey is the hash of who suspended which bucket, when and why.
func suspensionsKey(credential string) string { return prefix(credential) + ":suspensions" }

// answerKey is the answer given to an idempotency key.
func answerKey(credential, key string) string { return prefix(credential) + ":answer:" + key }

// committedKey is the answer to the commit of a reservation.
func committedKey(credential, reservation string) string {
	return prefix(credential) + ":committed:" + reservation
}

// claimKey is the lease on a piece of work.
func claimKey(credential, name string) string { return prefix(credential) + ":claim:" + name }

// label is what a script needs to keep labels: a code for the line, the line, and the run, which is
// different every time and therefore is in the entry itself.
type label struct{ code, line, run string }

func labelOf(l quota.Labels) label {
	return label{line: l.EncodeWithoutRun(), run: url.QueryEscape(l[quota.LabelRun])}
}

// after is the ID of an entry and its labels, as its member has them.
func (l label) after(id string) string {
	text := id + ":" + l.code
	if l.run != "" {
		text += ":" + l.run
	}
	return text
}

// codeOf is 24 bits of a digest, in four letters: short, because every entry carries it, and
// because the script notices when two lines share one.
func codeOf(line string) string {
	if line == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(line))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

// tellAgain is how often the server is sent the line of a code again, should it have lost it. The
// code is a digest of the line, so what was lost is whole again then.
const tellAgain = time.Minute

// told is what the server was sent lately: the codes of lines that it knows. It is safe for
// concurrent use.
type told struct {
	mu   sync.Mutex
	last map[[2]string]telling // by audience and line
}

type telling struct {
	code string
	at   time.Time
}

// maxTold bounds the memory for callers who never use the same labels twice.
const maxTold = 10_000

// code fills in the line's code, and leaves the line out where the server was told of it a short
// while ago.
func (t *told) code(audience string, of label) label {
	t.mu.Lock()
	known, ok := t.last[[2]string{audience, of.line}]
	t.mu.Unlock()
	if ok && time.Since(known.at) < tellAgain {
		return label{code: known.code, run: of.run}
	}
	of.code = codeOf(of.line)
	return of
}

// note remembers that the server has just kept the line under its code.
func (t *told) note(audience string, of label) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || len(t.last) >= maxTold {
		t.last = make(map[[2]string]telling)
	}
	t.last[[2]string{audience, of.line}] = telling{of.code, time.Now()}
}
