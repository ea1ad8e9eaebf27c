// Package words formats texts, numbers and times for terminals, pages and JSON.
package words

import (
	"fmt"
	"math"
	"strconv"
)

// Count formats a number with commas: "1,234".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural formats a number with its noun: "1 page", "3 pages".
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Short formats a number in about three digits: "1.2M".
func Short(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		f := float64(n) / u.size
		switch {
		case math.Abs(f) >= 999.5:
			return strconv.FormatFloat(f, 'f', 0, 64) + u.name
		case math.Abs(f) >= 0.9995:
			return strconv.FormatFloat(f, 'g', 3, 64) + u.name
		}
	}
	return Count(n)
}

// Percent formats a part of 1: "0.4 %".
func Percent(part float64) string {
	switch p := 100 * part; {
	case p > 0 && p < 0.05:
		return "less than 0.1 %"
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}
