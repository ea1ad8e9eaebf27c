package plan

import "time"

// VerdictWatch detects changes of a bucket's verdict, so that each is reported once, and lost runs
// of a bucket that lasts once a day. A VerdictWatch is for one credential, and for one goroutine at
// a time.
type VerdictWatch struct {
	reported     map[string]Verdict
	reportedLost map[string]time.Time // time up to which lost runs have been reported
}

// Changed reports whether the verdict on the bucket has changed, or runs are lost that were not
// reported for this reset. A first verdict counts as a change only if it is Short.
func (w *VerdictWatch) Changed(f Forecast) (before Verdict, changed bool) {
	before, isKnown := w.reported[f.Bucket]
	now := f.Verdict
	if now == Unused { // no news
		now = Lasts
	}
	isLosing := f.Lost.Runs > 0
	isNew := isLosing && !f.At.Before(w.reportedLost[f.Bucket])
	switch {
	// so that the verdict does not flip
	case before == RunsDry && now == Lasts && !f.Earliest.IsZero(),
		before == Exhausted && now == Lasts && isLosing && !isNew: // units come free one by one
		now = before
	}
	changed = now != before || isNew
	if !isKnown {
		before, changed = "", f.Short()
	}
	if w.reported == nil {
		w.reported, w.reportedLost = make(map[string]Verdict), make(map[string]time.Time)
	}
	w.reported[f.Bucket] = now
	if changed && isLosing {
		w.reportedLost[f.Bucket] = f.ResetAt
	}
	return before, changed
}
