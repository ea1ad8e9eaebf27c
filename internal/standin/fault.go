package standin

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fault is a kind of failure, injected into the requests that match all of its conditions. A zero
// condition matches every request.
type fault struct {
	kind     string // one of FaultKinds
	from, to int64  // range of request numbers, from 1, over all requests outside /standin/
	every    int64  // matches its multiples among the request numbers
	times    int64  // maximum number of strikes
	region   string // regionCode of the request; youtube only
	page     int64  // page of a list, from 1; youtube only
	strikes  int64  // number of strikes so far
}

// FaultKinds returns the kinds of fault of a stand-in, sorted.
func FaultKinds(name string) []string {
	if name != youTubeName {
		name = "common"
	}
	return specs()[name].Kinds
}

// parseFaults parses faults of the form KIND[@FROM[-[TO]]][/EVERY][:REGION][#PAGE][*TIMES], with
// the conditions in any order:
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

// condition matches a condition of a fault.
var condition = regexp.MustCompile(`([@/*:#])([^@/*:#]*)`)

func parseFault(name, spec string) (f fault, err error) {
	f.kind = condition.ReplaceAllString(spec, "")
	for _, m := range condition.FindAllStringSubmatch(spec, -1) {
		value, failed := m[2], error(nil)
		switch m[1] {
		case "@":
			from, to, ranged := strings.Cut(value, "-")
			f.from, failed = positive(from)
			if f.to = f.from; ranged {
				f.to = 0
			}
			if to != "" && failed == nil {
				f.to, failed = positive(to)
			}
		case "/":
			f.every, failed = positive(value)
		case "*":
			f.times, failed = positive(value)
		case ":":
			f.region = value
		case "#":
			f.page, failed = positive(value)
		}
		err = cmp.Or(err, failed)
	}
	switch kinds := FaultKinds(name); {
	case !slices.Contains(kinds, f.kind):
		err = fmt.Errorf("kind %q is not one of %s", f.kind, strings.Join(kinds, ", "))
	case name != youTubeName && (f.region != "" || f.page > 0):
		err = errors.New("only youtube has regions and pages")
	}
	return f, err
}

// positive parses a whole number above 0.
func positive(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0", text)
	}
	return n, nil
}

// strike returns the kind of the first fault that matches a request, "" for none, and counts it.
func strike(faults []fault, c *call) string {
	for i := range faults {
		f := &faults[i]
		if c.number >= f.from && (f.to == 0 || c.number <= f.to) &&
			(f.every == 0 || c.number%f.every == 0) && (f.times == 0 || f.strikes < f.times) &&
			(f.region == "" || f.region == c.r.URL.Query().Get("regionCode")) &&
			(f.page == 0 || f.page == newQuery(c).pageNumber()) {
			f.strikes++
			return f.kind
		}
	}
	return ""
}
