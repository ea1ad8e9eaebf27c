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

// assigned holds the 249 officially assigned codes of ISO 3166-1, each followed by a blank.
const assigned = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ " +
	"BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ " +
	"CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ " +
	"DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY " +
	"HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP " +
	"KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY " +
	"MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ " +
	"NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY " +
	"QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ " +
	"TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ " +
	"VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW "

// slips maps common mistakes to codes: the code of a language, the letters on cars or in the
// European Union, or a three-letter code. The mistakes come before their "=".
const slips = " UK EN GBR ENG =GB EL GRC =GR JA JPN =JP KO KOR =KR ZH CHN =CN USA =US " +
	"DEU GER D =DE FRA F =FR BRA =BR IND =IN AUS =AU CAN =CA MEX =MX RUS =RU ESP =ES ITA =IT "

// slip returns the region that a common mistake stands for.
func slip(code string) (region string, ok bool) {
	if strings.ContainsAny(code, " =") {
		return "", false
	}
	_, after, ok := strings.Cut(slips, " "+code+" ")
	_, region, _ = strings.Cut(after, "=")
	return region[:min(2, len(region))], ok && code != ""
}
