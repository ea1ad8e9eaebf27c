package daemon

import (
	"errors"
	"strings"

	"quotabudget/internal/ingest"
	"quotabudget/internal/youtube"
)

// Kinds of failure that are not the upstream's.
const (
	ledgerFailure    = "ledger"    // the ledger could not be reached or used
	catalogueFailure = "catalogue" // the catalogue could not be read, or stored no pages
	ownFailure       = "internal"
)

// failureKind returns the reason for a failed run, one of failureKinds.
func failureKind(err error) string {
	if kind, upstream := youtube.KindOf(err); upstream {
		return kindWord(kind)
	}
	switch {
	case errors.Is(err, errDown):
		return kindWord(youtube.Transient)
	case fromLedger(err):
		return ledgerFailure
	case errors.Is(err, ingest.ErrCatalogue):
		return catalogueFailure
	}
	return ownFailure
}

// failureKinds returns all kinds. Exhaustion and a missing chart are no failures.
func failureKinds() []string {
	kinds := []string{ledgerFailure, catalogueFailure, ownFailure, panicked}
	for _, kind := range []youtube.Kind{youtube.Permanent, youtube.Transient, youtube.Throttled,
		youtube.BadCredential, youtube.BadRegion, youtube.BadPageToken} {
		kinds = append(kinds, kindWord(kind))
	}
	return kinds
}

func kindWord(kind youtube.Kind) string { return strings.ReplaceAll(string(kind), " ", "_") }

// failed counts a failed run of a region.
func (m *Metrics) failed(l *lane, err error) {
	m.failures.WithLabelValues(l.Region, failureKind(err)).Inc()
}
