// Package regions knows the regions of a sweep: which exist, and in what order they are visited.
package regions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/spell"
)

// Region is an ISO 3166-1 alpha-2 code in upper case, made by Parse.
type Region string

// Parse reads one code, in either case and with blanks around it. A code that ISO does not assign
// is an error, with the one that was meant if it is a common slip.
func Parse(code string) (Region, error) {
	up := strings.ToUpper(strings.TrimSpace(code))
	if len(up) == 2 && strings.Contains(assigned, up+" ") {
		return Region(up), nil
	}
	if meant, ok := slip(up); ok {
		return "", fmt.Errorf("%q is not a region: did you mean %s?", spell.Clip(code), meant)
	}
	return "", fmt.Errorf("%q is not a region: write an ISO 3166-1 code of two letters, such as US",
		spell.Clip(code))
}

// ParseList reads codes in their order. Every bad code is reported; so is a code that stands there
// twice, because a sweep visits a region once.
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

// Order returns the regions in the order in which a sweep visits them: those without a complete
// chart first, then the one whose last complete chart is oldest. Ties keep the order of the list,
// which is not changed.
func Order(list []Region, lastComplete map[Region]time.Time) []Region {
	return slices.SortedStableFunc(slices.Values(list), func(a, b Region) int {
		return lastComplete[a].Compare(lastComplete[b]) // one that is missing is the zero time
	})
}

// All are the codes that ISO assigns, in their order.
func All() []Region {
	var list []Region
	for code := range strings.FieldsSeq(assigned) {
		list = append(list, Region(code))
	}
	return list
}
