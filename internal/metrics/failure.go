package metrics

import (
	"errors"
	"strings"

	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
)

// Kinds of failure that are not the upstream's.
const (
	ledgerFailure    = "ledger"    // it could not be reached, or used
	catalogueFailure = "catalogue" // it could not be read, or took no pages
	ownFailure       = "internal"
	// Panicked is a run that ended in a panic.
	Panicked = "panicked"
)

// FailureKind says in a word why a run failed. It is one of FailureKinds.
func FailureKind(err error) string {
	if kind, upstream := youtube.KindOf(err); upstream {
		return word(kind)
	}
	switch {
	case errors.Is(err, quota.ErrUnreachable), errors.Is(err, quota.ErrLedgerUnusable):
		return ledgerFailure
	case errors.Is(err, ingest.ErrCatalogue):
		return catalogueFailure
	}
	return ownFailure
}

// FailureKinds are all kinds. Exhaustion and a missing chart are no failures.
func FailureKinds() []string {
	kinds := []string{ledgerFailure, catalogueFailure, ownFailure, Panicked}
	for _, kind := range []youtube.Kind{youtube.Permanent, youtube.Transient, youtube.Throttled,
		youtube.BadCredential, youtube.BadRegion, youtube.BadPageToken} {
		kinds = append(kinds, word(kind))
	}
	return kinds
}

func word(kind youtube.Kind) string { return strings.ReplaceAll(string(kind), " ", "_") }
