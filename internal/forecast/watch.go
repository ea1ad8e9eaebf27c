package forecast

// Watch tells when the verdict on a bucket changes, so that it is said once. The zero Watch has heard nothing yet. It is for one
// credential and one goroutine.
type Watch struct{ said map[string]Verdict }

// Between these chances of running dry, a verdict that was given stands: it would change to and fro otherwise.
const (
	surelyLasts = 0.35
	surelyDry   = 0.65
)

// Changed reports whether the verdict is another than the last one told of the bucket, which was. The first one is a change only
// when it is Short.
func (w *Watch) Changed(f Forecast) (was Verdict, changed bool) {
	was, heard := w.said[f.Bucket]
	now := f.Verdict
	switch {
	case was == Lasts && now == RunsDry && f.Chance < surelyDry, was == RunsDry && now == Lasts && f.Chance > surelyLasts:
		now = was
	}
	if w.said == nil {
		w.said = make(map[string]Verdict)
	}
	w.said[f.Bucket] = now
	if !heard {
		return "", now.Short()
	}
	return was, now != was
}
