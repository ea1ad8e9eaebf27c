package standin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fault is something that goes wrong with the requests that match all of its conditions; a zero
// condition matches every request.
type Fault struct {
	// Kind is what goes wrong: one of FaultKinds.
	Kind string
	// From and To bound the number of the request, counted from 1 over all outside /standin/.
	From, To int64
	// Every matches the requests whose number is a multiple of it.
	Every int64
	// Times is how often the fault strikes before it is over.
	Times int64
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
		f, err := parseFault(spec)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", spec, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func parseFault(spec string) (f Fault, err error) {
	at := len(spec)
	for at > 0 && err == nil {
		i := strings.LastIndexAny(spec[:at], "@/*")
		if i < 0 {
			break
		}
		err = f.condition(spec[i], spec[i+1:at])
		at = i
	}
	f.Kind = spec[:at]
	if err == nil && faultKinds[f.Kind] == 0 {
		err = fmt.Errorf("kind %q is not one of %s", f.Kind, strings.Join(FaultKinds(), ", "))
	}
	return f, err
}

func (f *Fault) condition(mark byte, value string) (err error) {
	switch mark {
	case '/':
		f.Every, err = positive(value)
	case '*':
		f.Times, err = positive(value)
	default:
		from, to, ranged := strings.Cut(value, "-")
		f.From, err = positive(from)
		if f.To = f.From; ranged {
			f.To = 0
		}
		if err == nil && to != "" {
			f.To, err = positive(to)
		}
	}
	return err
}

func positive(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0", s)
	}
	return n, nil
}

func (f Fault) matches(number int64) bool {
	return number >= f.From && (f.To == 0 || number <= f.To) &&
		(f.Every == 0 || number%f.Every == 0)
}
