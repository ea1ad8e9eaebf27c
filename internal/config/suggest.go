package config

import (
	"fmt"
	"slices"
	"strings"
)

// DidYouMean is " (did you mean …?)" with the one of the known names that is nearest to word, or "" when none is near.
func DidYouMean(word string, known []string) string {
	if len(word) > 100 {
		return ""
	}
	best, least := "", len(word)/3+1
	if len(word) > 3 {
		least++ // two letters that changed places
	}
	for _, name := range slices.Sorted(slices.Values(known)) {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is how many bytes must be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
