package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/slice"
)

// Sliced gives a budget the slice of its units that pays for calls while the ledger cannot be
// reached, where some may pass then. With slice in the configuration nothing else lets them pass. A
// ledger in a file has one only then: where the file is gone, so is the slice, as a rule.
func Sliced(b *quota.Budget, cfg *config.Config, cred config.Credential) *quota.Budget {
	units, demanded := cred.Slice(cfg.Table(cred)), cred.SliceUnits > 0
	possible := len(units) > 0 && cfg.StateDir != "" && !strings.HasPrefix(cfg.Ledger, "sqlite:")
	if len(cred.Open) == 0 || !possible && !demanded {
		return b
	}
	host, _ := os.Hostname()
	var limits []quota.Limit
	for _, u := range units {
		limits = append(limits, quota.LimitsOf(u.Bucket, cred.Limits)...)
	}
	s := &slice.Slice{
		Ledger: b.Ledger, URL: config.HidePassword(cfg.Ledger), Credential: cred.Name,
		Units: units, Limits: limits, Closed: demanded, Log: b.Log,
		Note: "slice of " + cmp.Or(host, "a host") + " for times without the ledger",
	}
	if cfg.StateDir != "" {
		s.Path = filepath.Join(cfg.StateDir, "slices.db")
	}
	b.Slice = s
	return b
}

// SliceState is what a credential may still spend on this host without the ledger.
type SliceState struct {
	Credential string
	Units      []quota.Cost // of a whole slice, by bucket
	quota.SliceStanding
}

// Slices are those of this host that have ever been leased. None needs the ledger.
func (s Source) Slices(ctx context.Context) (all []SliceState, err error) {
	for _, cred := range s.Config.Credentials {
		of, ok := Sliced(s.budget(cred), s.Config, cred).Slice.(*slice.Slice)
		if !ok {
			continue
		}
		now, err := of.Standing(ctx)
		if errors.Is(err, quota.ErrNoSlice) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, SliceState{cred.Name, of.Units, now})
	}
	return all, nil
}

// Text says what is left, and what waits to be recorded: "key1 has 7 of 10 units of default left
// for times without the ledger; 3 entries wait to be recorded".
func (s SliceState) Text() string {
	var left []string
	for _, u := range s.Units {
		left = append(left, fmt.Sprintf("%d of %d units of %s", s.Left[u.Bucket], u.Units,
			u.Bucket))
	}
	text := s.Credential + " has " + strings.Join(left, " and ") +
		" left for times without the ledger"
	switch {
	case s.Waiting == 1:
		text += "; 1 entry waits to be recorded"
	case s.Waiting > 1:
		text += fmt.Sprintf("; %d entries wait to be recorded, the oldest of %s", s.Waiting,
			s.Oldest.UTC().Format(time.DateTime+"Z"))
	}
	return text
}
