package redisledger

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"

	"quotabudget/internal/quota"
)

// Every key of a credential carries the same hash tag, so that one charge stays in one slot of a cluster. What is not of a bucket
// has two colons in a row, since no bucket's name is empty.

func prefix(credential string) string { return "quota:{" + credential + "}:" }

// logKey is the sorted set of a bucket's entries.
func logKey(credential, bucket string) string { return prefix(credential) + bucket + ":log" }

// stateKey is the hash of a bucket's totals, suspension and reservations.
func stateKey(credential, bucket string) string { return prefix(credential) + bucket + ":state" }

// labelsKey is the hash of label lines by their code.
func labelsKey(credential string) string { return prefix(credential) + ":labels" }

// answerKey is the answer given to an idempotency key.
func answerKey(credential, key string) string { return prefix(credential) + ":answer:" + key }

// claimKey is the lease on a piece of work.
func claimKey(credential, name string) string { return prefix(credential) + ":claim:" + name }

// label is what a script needs to keep labels: a code for the line, the line, and the run, which is different every time
// and therefore stands in the entry itself.
type label struct{ code, line, run string }

func labelOf(l quota.Labels) label {
	run := l[quota.LabelRun]
	if run != "" {
		l = l.With(quota.Labels{quota.LabelRun: ""})
	}
	line := l.Encode()
	return label{code: codeOf(line), line: line, run: url.QueryEscape(run)}
}

// codeOf is 48 bits of a digest: two of a credential's 10,000 lines share one with a chance of 1 in 5 million.
func codeOf(line string) string {
	if line == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(line))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}
