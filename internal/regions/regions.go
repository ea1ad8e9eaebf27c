// Package regions validates region codes, and orders the regions of a sweep.
package regions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/words"
)

// Region is an ISO 3166-1 alpha-2 code in upper case. Parse creates it.
type Region string

// Parse reads one code, in upper or lower case and trimmed. The error for a common mistake
// suggests the right code.
func Parse(code string) (Region, error) {
	up := strings.ToUpper(strings.TrimSpace(code))
	if len(up) == 2 && strings.Contains(assigned, up+" ") {
		return Region(up), nil
	}
	if meant, ok := slip(up); ok {
		return "", fmt.Errorf("%q is not a region: did you mean %s?", words.Clip(code), meant)
	}
	return "", fmt.Errorf("%q is not a region: write an ISO 3166-1 code of two letters, such as US",
		words.Clip(code))
}

// ParseList reads codes in order. It reports every invalid code, and every repeated one, because
// a sweep visits a region once.
func ParseList(codes []string) ([]Region, error) {
	var list []Region
	var errs []error
	for _, code := range codes {
		r, err := Parse(code)
		switch {
		case err != nil:
			errs = append(errs, err)
		case slices.Contains(list, r):
			errs = append(errs, fmt.Errorf("region %s is listed twice", r))
		default:
			list = append(list, r)
		}
	}
	if len(codes) == 0 {
		errs = append(errs, errors.New("no region is listed"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, nil
}

// Order returns the regions in the order of a sweep: those without a complete chart first, then
// by the age of the last complete chart, oldest first. Ties keep the order of the list. It does
// not change the list.
func Order(list []Region, lastComplete map[Region]time.Time) []Region {
	return slices.SortedStableFunc(slices.Values(list), func(a, b Region) int {
		return lastComplete[a].Compare(lastComplete[b]) // a missing one is the zero time
	})
}

// All returns the codes that ISO assigns, in order.
func All() []Region {
	var list []Region
	for code := range strings.FieldsSeq(assigned) {
		list = append(list, Region(code))
	}
	return list
}
