package standin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fault is something that goes wrong with the requests that match all of its conditions. A zero
// condition matches every request.
type fault struct {
	kind     string // one of FaultKinds
	from, to int64  // range of request numbers, from 1, over all requests outside /standin/
	every    int64  // matches the request numbers that are a multiple of it
	times    int64  // how often it strikes in all
	region   string // regionCode of the request; youtube only
	page     int64  // page of a list, from 1; youtube only
	struck   int64  // how often it has struck
}

// stage says how far a request gets before it goes wrong.
type stage int

const (
	early stage = iota + 1 // refused, and nothing is billed
	half                   // it fails: the request is billed, what it would have taken is not
	late                   // billed in full; the answer is damaged
)

var faultKinds = map[string]stage{
	"401": early, "429": early, "spend": early,
	"500": half, "503": half, "529": half, "html": half,
	"hang": late, "drop": late, "cut": late, "truncated": late, "endless": late, "bomb": late,
	"no-usage": late, "no-headers": late, "minus-one": late, "nonsense": late, "stale": late,
}

// FaultKinds returns the kinds of fault of a stand-in, sorted. Those of youtube are
//
//	200-html 500-html   a page of HTML instead of JSON
//	400-token 404-chart invalidPageToken, videoChartNotFound
//	403-blocked         API_KEY_SERVICE_BLOCKED
//	403-disabled        accessNotConfigured
//	403-daily 403-quota dailyLimitExceeded, quotaExceeded
//	429 429-day         rateLimitExceeded, with details: by the minute, by the day
//	429-bare            rateLimitExceeded without details
//	500 503             backendError
//	500-null            an error whose message is null
//	cut                 the connection is dropped in the middle of the body
//	drop                the connection is dropped before the answer
//	hang                no answer until the client goes away
//	repeat              the first id of the page comes again as its last
//	truncated           half the JSON, with status 200
//
// and those of all others are
//
//	401            the credential is refused
//	429            throttled, with nothing used
//	spend          refused as at the end of the month's money
//	500 503 529    an error of the server in the API's own shape
//	html           502 with a page of HTML
//	hang           no answer until the client goes away
//	drop           the connection is dropped before the answer
//	cut            the connection is dropped in the middle of the answer
//	truncated      the answer ends in the middle, and says that it is whole
//	endless        the answer never ends
//	bomb           the answer is gzip that unpacks to 64 MiB
//	no-usage       the answer does not say what it took
//	no-headers     nor do its headers say what is left
//	minus-one      headers say that -1 is left
//	nonsense       headers hold words where numbers and times belong
//	stale          headers say that nothing was used
func FaultKinds(name string) []string {
	if name == youTubeName {
		return slices.Sorted(maps.Keys(youTubeFaults))
	}
	return slices.Sorted(maps.Keys(faultKinds))
}

// parseFaults reads faults of a stand-in, of the form
// KIND[@FROM[-[TO]]][/EVERY][:REGION][#PAGE][*TIMES] with their conditions in any order:
//
//	503@3        the third request
//	503@3-       the third and all that follow
//	cut/10       every tenth
//	429*2        the first two
//	hang:BR#2    page 2 of Brazil, always; youtube only
func parseFaults(name string, specs []string) ([]fault, error) {
	var all []fault
	for _, spec := range specs {
		f, err := parseFault(name, spec)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", spec, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func parseFault(name, spec string) (f fault, err error) {
	marks := "@/*"
	if name == youTubeName {
		marks += ":#"
	}
	next := func(text string) (string, string) {
		if i := strings.IndexAny(text, marks); i >= 0 {
			return text[:i], text[i:]
		}
		return text, ""
	}
	var rest, value string
	if f.kind, rest = next(spec); !slices.Contains(FaultKinds(name), f.kind) {
		return f, fmt.Errorf("kind %q is not one of %s", f.kind,
			strings.Join(FaultKinds(name), ", "))
	}
	for rest != "" && err == nil {
		mark := rest[0]
		value, rest = next(rest[1:])
		switch mark {
		case '/':
			f.every, err = positive(value)
		case '*':
			f.times, err = positive(value)
		case ':':
			f.region = value
		case '#':
			f.page, err = positive(value)
		default:
			err = f.within(value)
		}
	}
	return f, err
}

// within reads a range of requests.
func (f *fault) within(text string) (err error) {
	from, to, ranged := strings.Cut(text, "-")
	if f.from, err = positive(from); err != nil || !ranged {
		f.to = f.from
		return err
	}
	if f.to = 0; to != "" {
		f.to, err = positive(to)
	}
	return err
}

// positive reads a whole number above 0.
func positive(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0", text)
	}
	return n, nil
}

// strike returns the kind of the first fault that matches a request, "" for none, and counts it.
// matches reports whether the request is of the fault's region and page; nil means it is.
func strike(faults []fault, number int64, matches func(fault) bool) string {
	for i := range faults {
		f := &faults[i]
		if number >= f.from && (f.to == 0 || number <= f.to) &&
			(f.every == 0 || number%f.every == 0) && (f.times == 0 || f.struck < f.times) &&
			(matches == nil || matches(*f)) {
			f.struck++
			return f.kind
		}
	}
	return ""
}
