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
// reached, where some may pass then. A ledger in a file needs none: where the file is gone, so is
// the slice.
func Sliced(b *quota.Budget, cfg *config.Config, cred config.Credential) *quota.Budget {
	units := cred.Slice(cfg.Table(cred))
	if len(units) == 0 || cfg.StateDir == "" || strings.HasPrefix(cfg.Ledger, "sqlite:") {
		return b
	}
	host, _ := os.Hostname()
	var limits []quota.Limit
	for _, u := range units {
		limits = append(limits, quota.LimitsOf(u.Bucket, cred.Limits)...)
	}
	b.Slice = &slice.Slice{
		Path: filepath.Join(cfg.StateDir, "slices.db"), Ledger: b.Ledger,
		URL: config.HidePassword(cfg.Ledger), Credential: cred.Name, Units: units, Limits: limits,
		Note: "slice of " + cmp.Or(host, "a host") + " for times without the ledger", Log: b.Log,
	}
	return b
}
