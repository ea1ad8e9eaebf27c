package report

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// Journaled sets a budget's journal to that of this host, if a folder for journals is configured.
func Journaled(b *quota.Budget, cfg *config.Config, cred config.Credential) *quota.Budget {
	if cfg.StateDir != "" {
		b.Journal = &ledger.Journal{Path: filepath.Join(cfg.StateDir, "journal.db"),
			Ledger: config.HidePassword(cfg.Ledger), Credential: cred.Name}
	}
	return b
}

// Outage holds the units that a credential may still spend on this host without the ledger, and the
// state of its journal.
type Outage struct {
	Credential string
	AtMost     int64
	quota.Outage
}

// Outages returns the outages of this host that have lines in the journal or an at_most. It needs
// no ledger.
func (s Source) Outages(ctx context.Context) (all []Outage, err error) {
	for _, cred := range s.Config.Credentials {
		b := Journaled(s.budget(cred), s.Config, cred)
		if b.Journal == nil {
			continue
		}
		now, err := b.Outage(ctx)
		b.Journal.(*ledger.Journal).Close()
		if err != nil {
			return all, err
		}
		if now.Waiting > 0 || cred.AtMost > 0 {
			all = append(all, Outage{cred.Name, cred.AtMost, now})
		}
	}
	return all, nil
}

// Text returns the units left and the waiting calls: "key1 may spend 7 of 10 units of default
// without the ledger; 3 calls wait in the journal, the oldest of 2026-03-04 12:00:00Z".
func (o Outage) Text() string {
	var left []string
	for _, u := range o.Left {
		left = append(left, fmt.Sprintf("%d of %d units of %s", u.Units, o.AtMost, u.Bucket))
	}
	text := o.Credential
	if len(left) == 0 && o.AtMost > 0 { // prices are known only after the calls
		left = append(left, fmt.Sprintf("%d units of each bucket", o.AtMost))
	}
	if len(left) > 0 {
		text += " may spend " + strings.Join(left, " and ") + " without the ledger"
	}
	if o.Waiting == 0 {
		return text
	}
	waits := fmt.Sprintf("%d calls wait in the journal, the oldest of %s", o.Waiting,
		o.Oldest.UTC().Format(time.DateTime+"Z"))
	if o.Waiting == 1 {
		waits = "1 call waits in the journal, of " + o.Oldest.UTC().Format(time.DateTime+"Z")
	}
	if len(left) == 0 {
		return text + ": " + waits
	}
	return text + "; " + waits
}

// Unposted returns the outages whose journals have lines.
func Unposted(all []Outage) []Outage {
	return slices.DeleteFunc(all, func(o Outage) bool { return o.Waiting == 0 })
}
