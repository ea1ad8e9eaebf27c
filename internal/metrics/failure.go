package metrics

import (
	"errors"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
)

// Kinds of failure that are not the upstream's.
const (
	ledgerFailure = "ledger" // it could not be reached, or used
	ownFailure    = "internal"
	// Panicked is a run that ended in a panic.
	Panicked = "panicked"
)

// FailureKind says in a word what kept a run from its chart. It is one of FailureKinds.
func FailureKind(err error) string {
	if kind, upstream := youtube.KindOf(err); upstream {
		return word(kind)
	}
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return ledgerFailure
	}
	return ownFailure
}

// FailureKinds are all there are. Exhaustion and a missing chart are none.
func FailureKinds() []string {
	kinds := []string{ledgerFailure, ownFailure, Panicked}
	for _, kind := range []youtube.Kind{youtube.Permanent, youtube.Transient, youtube.Throttled,
		youtube.BadCredential, youtube.BadRegion, youtube.BadPageToken} {
		kinds = append(kinds, word(kind))
	}
	return kinds
}

func word(kind youtube.Kind) string { return strings.ReplaceAll(kind.String(), " ", "_") }
