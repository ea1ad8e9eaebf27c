package daemon

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
)

// FailureKind says in a word what kept a run from its chart, for metrics. There is a fixed number of them.
func FailureKind(err error) string {
	if kind, upstream := youtube.KindOf(err); upstream {
		return strings.ReplaceAll(kind.String(), " ", "_")
	}
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		return ledgerFailure
	}
	return ownFailure
}

// failureKinds are those that a run may end with.
func failureKinds() []string {
	kinds := []string{ledgerFailure, ownFailure, panicked}
	for _, kind := range []youtube.Kind{youtube.Permanent, youtube.Transient, youtube.Throttled, youtube.BadCredential,
		youtube.BadRegion, youtube.BadPageToken} {
		kinds = append(kinds, strings.ReplaceAll(kind.String(), " ", "_"))
	}
	return kinds
}
