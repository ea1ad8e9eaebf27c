package quota

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Labels tell entries apart by what spent their units: method, region, job, run, and labels that
// the caller adds.
type Labels map[string]string

// The labels that the programs of this project set themselves.
const (
	LabelMethod = "method" // the priced operation, by its id in the discovery document
	LabelRegion = "region" // ISO 3166-1 alpha-2
	LabelJob    = "job"    // the scheduled work
	LabelRun    = "run"    // one execution of a job
	LabelPriced = "priced" // what set the price of a metered call: its model and tier
	LabelDenied = "denied" // in observe mode: the limit that would have denied the charge
	LabelSource = "source" // why units were added that no call spent: adjust, reconcile, upstream
	LabelCaller = "caller" // the program or person of a token, by its line in the token file
	LabelReason = "reason" // why a correction was made
	LabelBy     = "by"     // the person or program that made a correction

	LabelTrace = "trace" // the trace that the HTTP request of the call belongs to

	LabelUnlisted = "unlisted" // the model or other value that the price list has no row for
)

const (
	maxLabels     = 16
	maxLabelBytes = 1024 // names and values together
)

// labelForm matches the names of labels.
var labelForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// secretForm matches what looks like a Google API key, OAuth token or client secret. Labels, notes
// and idempotency keys are stored and printed, so none of them may hold one.
var secretForm = regexp.MustCompile(
	`AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}`)

// LooksSecret reports whether text contains what looks like an API key or a token.
func LooksSecret(text string) bool {
	return len(text) > len("ya29.")+19 && secretForm.MatchString(text) // most texts are shorter
}

// Check reports the first label that cannot be kept.
func (l Labels) Check() error {
	if len(l) > maxLabels {
		return malformed("%d labels: at most %d go with one charge", len(l), maxLabels)
	}
	bytes := 0
	for k, v := range l {
		bytes += len(k) + len(v)
		if !labelForm.MatchString(k) {
			return malformed("label name %q: use a lower-case letter, then up to 31 letters, "+
				"digits and _", k)
		}
		if flaw := flawOf(v); flaw != "" {
			return malformed("label %s %s", k, flaw)
		}
	}
	if bytes > maxLabelBytes {
		return malformed("the labels take %d bytes: at most %d", bytes, maxLabelBytes)
	}
	return nil
}

// CheckText reports why a ledger refuses a person's text (a label, a note, a key): it must be valid
// UTF-8 without control characters, at most 256 bytes, and hold no secret.
func CheckText(what, text string) error {
	if flaw := flawOf(text); flaw != "" {
		return malformed("%s %s", what, flaw)
	}
	return nil
}

// maxText is the maximum length in bytes of a text that a ledger accepts.
const maxText = 256

// flawOf describes why a ledger refuses a text; "" if it does not.
func flawOf(text string) string {
	switch {
	case len(text) > maxText:
		return fmt.Sprintf("is %d bytes long: at most %d", len(text), maxText)
	case !utf8.ValidString(text):
		return "is not valid UTF-8"
	case LooksSecret(text):
		return "holds what looks like an API key; it would be stored and printed"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "holds a control character"
	}
	return ""
}

// With returns a copy of the labels in which more replaces and adds some.
func (l Labels) With(more Labels) Labels {
	all := make(Labels, len(l)+len(more))
	maps.Copy(all, l)
	maps.Copy(all, more)
	return all
}

// WithoutRun returns the labels without the run and the trace, which have a value for every run and
// every request.
func (l Labels) WithoutRun() Labels {
	others := maps.Clone(l)
	delete(others, LabelRun)
	delete(others, LabelTrace)
	return others
}

// IsSummed reports whether a ledger has sums by the label.
func IsSummed(label string) bool { return label != LabelRun && label != LabelTrace }

// WithTrace returns the labels with the trace of a traceparent header (W3C Trace Context), unless
// that is malformed or there is no room for another label.
func (l Labels) WithTrace(traceparent string) Labels {
	parts := traceForm.FindStringSubmatch(traceparent)
	if parts == nil || strings.Trim(parts[2], "0") == "" || parts[1] == "00" && parts[3] != "" {
		return l
	}
	if all := l.With(Labels{LabelTrace: parts[2]}); all.Check() == nil {
		return all
	}
	return l
}

// traceForm is the version, the trace, the caller's span and its flags. Later versions may have
// more.
var traceForm = regexp.MustCompile(
	`^([0-9a-e][0-9a-f]|f[0-9a-e])-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,200})?$`)

// Encode writes the labels in one canonical line: name=value pairs in the order of names, escaped
// as in a URL query, so that it holds neither colons nor spaces. Labels without a value are left
// out.
func (l Labels) Encode() string {
	pairs := make(url.Values, len(l))
	for name, value := range l {
		if value != "" {
			pairs.Set(name, value)
		}
	}
	return pairs.Encode()
}

// CutRun removes the run and the trace from a line that Encode wrote.
func CutRun(line string) string { return cutLabel(cutLabel(line, LabelRun), LabelTrace) }

func cutLabel(line, name string) string {
	before, after, found := strings.Cut("&"+line, "&"+name+"=")
	if !found {
		return line
	}
	_, rest, _ := strings.Cut(after, "&")
	return strings.Trim(before+"&"+rest, "&")
}

// ParseLabels reads what Encode wrote.
func ParseLabels(line string) (Labels, error) {
	q, err := url.ParseQuery(line)
	if err != nil {
		return nil, fmt.Errorf("labels %q: %w", line, err)
	}
	l := make(Labels, len(q))
	for k := range q {
		l[k] = q.Get(k)
	}
	return l, nil
}
