package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

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
