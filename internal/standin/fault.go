package standin

import (
	"maps"
	"slices"

	"quotabudget/internal/strike"
)

// Fault is something that goes wrong with some requests.
type Fault struct {
	Kind string // what goes wrong: one of FaultKinds
	strike.When
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

// FaultKinds are the kinds of fault there are, sorted:
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
func FaultKinds() []string { return slices.Sorted(maps.Keys(faultKinds)) }

// ParseFaults reads faults of the form KIND[@FROM[-[TO]]][/EVERY][*TIMES]:
//
//	503@3      the third request
//	503@3-     the third and all that follow
//	cut/3      every third
//	429*2      the first two
func ParseFaults(specs ...string) ([]Fault, error) {
	var all []Fault
	for _, spec := range specs {
		kind, when, err := strike.Parse(spec, FaultKinds(), nil)
		if err != nil {
			return nil, err
		}
		all = append(all, Fault{kind, when})
	}
	return all, nil
}
