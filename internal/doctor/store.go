package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// store checks the server or file of the ledger.
func (e *exam) store(ctx context.Context) {
	if path, err := sqlite.ParseURL(e.Config.Ledger); err == nil {
		e.file(path)
		return
	}
	f, err := redisstore.Examine(ctx, e.Config.Ledger, e.Config.Credentials[0].Name)
	if err == nil {
		e.redis(f)
	} // opening the ledger reports the error
}

// unopened adds the reason why the ledger cannot be opened, unless another finding has it.
func (e *exam) unopened(why error) {
	e.Facts = slices.DeleteFunc(e.Facts, func(fact string) bool {
		return strings.HasPrefix(fact, "ledger: ")
	})
	for _, f := range e.Findings {
		if f.Level == Error {
			return
		}
	}
	do := "start it, or name another ledger in quota.yaml"
	if errors.Is(why, quota.ErrLedgerUnusable) {
		do = "see docs/troubleshooting.md, or name another ledger in quota.yaml"
	}
	if folder := sqlite.FolderAdvice(why); folder != "" {
		do = folder
	}
	e.add(Finding{Error, "ledger", config.HidePassword(e.Config.Ledger), why.Error(),
		"without a ledger, every charge is denied", do})
}

// aheadBy is how far an entry may be ahead of the ledger's clock.
const aheadBy = time.Second

// entries checks the ledger's entries for consistency, and against its clock.
func (e *exam) entries(ctx context.Context) {
	now, err := e.Ledger.Time(ctx)
	if err != nil {
		e.unopened(err)
		return
	}
	for _, c := range e.Config.Credentials {
		buckets, err := e.Ledger.BucketsOf(ctx, c.Name)
		if err != nil {
			e.unopened(err)
			return
		}
		for _, bucket := range quota.BucketNames(buckets) {
			e.bucket(ctx, c.Name, bucket, now)
		}
		e.exhausted(ctx, c)
	}
}

func (e *exam) bucket(ctx context.Context, credential, bucket string, now time.Time) {
	about := "bucket " + bucket + " of " + credential
	faults, err := e.Ledger.Check(ctx, credential, bucket, false)
	if err != nil {
		e.add(Finding{Error, "entries", about, err.Error(), "the spending is unknown",
			"quotactl ledger check"})
		return
	}
	for _, f := range faults {
		e.add(Finding{Error, "entries", about, f.What, "charges that need it are denied",
			"quotactl ledger check --repair"})
	}
	newest, err := e.Ledger.Entries(ctx, quota.Query{Credential: credential, Bucket: bucket,
		Since: now.Add(aheadBy)})
	if err == nil && len(newest) > 0 {
		last := newest[len(newest)-1].At
		e.add(Finding{Error, "clock-entries", about, fmt.Sprintf(
			"its newest entry is %s ahead of the ledger's clock", last.Sub(now).Round(time.Second)),
			"the clock was set back; until it catches up, charges get that time, and " +
				"spent units stay in the windows", "set the clock of the ledger's host by NTP"})
	}
	u, err := e.Ledger.Usage(ctx, credential, []quota.Limit{{Bucket: bucket, Units: 1,
		Window: quota.Sliding(time.Hour)}})
	if err == nil && len(u.Buckets) > 0 && u.Buckets[0].SuspendedUntil.After(now) {
		e.add(Finding{Warning, "suspension", about,
			"it is suspended until " + u.Buckets[0].SuspendedUntil.UTC().Format(time.RFC3339),
			"nothing is allowed until then",
			fmt.Sprintf("if that is wrong: quotactl resume --credential %s --bucket %s", credential,
				bucket)})
	}
}

// exhausted reports limits with no units left for scheduled charges.
func (e *exam) exhausted(ctx context.Context, c config.Credential) {
	usage, err := c.Budget(e.Ledger, e.Config.Table(c), nil).Usage(ctx)
	if err != nil {
		return // reported by entries, or by a suspension
	}
	for _, b := range usage.Buckets {
		for _, l := range b.Limits {
			if l.Remaining > 0 || l.Limit.Cap(false) == 0 || l.NextFreeAt.IsZero() {
				continue
			}
			e.add(Finding{Warning, "exhausted", fmt.Sprintf("limit %s of %s", l.Limit.Name(),
				c.Name), "nothing is left of it until " +
				l.NextFreeAt.Add(time.Second-1).UTC().Truncate(time.Second).Format(time.RFC3339),
				"scheduled charges are denied until then",
				fmt.Sprintf("quotactl explain --credential %s --bucket %s shows who spent it",
					c.Name, b.Bucket)})
		}
	}
}
