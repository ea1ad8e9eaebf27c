package costs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sorted is the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean is " (did you mean …?)" with the one name of the known that is nearest to the word, or "" when none is near.
func didYouMean[V any](word string, known map[string]V) string {
	if len(word) > 100 {
		return ""
	}
	best, least := "", len(word)/3+1
	for _, name := range sorted(known) {
		if strings.HasSuffix(name, "."+word) { // videos.list for youtube.videos.list
			return fmt.Sprintf(" (did you mean %s?)", name)
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
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

// clip keeps a foreign text short enough for a message.
func clip(text string) string {
	if len(text) > 100 {
		return strings.ToValidUTF8(text[:100], "") + "…"
	}
	return text
}
