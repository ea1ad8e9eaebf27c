package costs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"quotabudget/internal/words"
)

// Unit is the unit of a bucket: Scale units are one of Name. Buckets of money count millionths of a
// dollar.
type Unit struct {
	Name  string // units, requests, tokens, points, bytes or usd
	Scale int64  // 1, or 1,000,000 of usd
}

// unitOf parses the unit in a list, such as tokens or usd/1000000; "" is units.
func unitOf(text string) Unit {
	name, scale, _ := strings.Cut(cmp.Or(text, "units"), "/")
	u := Unit{Name: name, Scale: 1}
	if n, err := strconv.ParseInt(scale, 10, 64); err == nil {
		u.Scale = n
	}
	return u
}

// String returns the unit as written in a list.
func (u Unit) String() string {
	if u.Scale > 1 {
		return fmt.Sprintf("%s/%d", u.Name, u.Scale)
	}
	return u.Name
}

// Text returns an amount for people: "$12.40" or "1,240 tokens". Fractions of a cent are rounded
// up, except below a dollar: "$0.003092".
func (u Unit) Text(units int64) string {
	if !u.IsMoney() {
		return words.Plural(units, strings.TrimSuffix(u.Name, "s"))
	}
	sign := ""
	if units < 0 {
		sign, units = "-", -units
	}
	cent := u.Scale / 100
	if units < u.Scale && units%cent != 0 {
		return fmt.Sprintf("%s$0.%06d", sign, units*1_000_000/u.Scale)
	}
	cents := (units + cent - 1) / cent
	return fmt.Sprintf("%s$%s.%02d", sign, words.Count(cents/100), cents%100)
}

// IsMoney reports whether amounts have a currency sign.
func (u Unit) IsMoney() bool { return u.Name == "usd" }
