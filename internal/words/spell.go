package words

import (
	"fmt"
	"slices"
	"strings"
)

// maxWord is longer than any name: a longer word is not a typo.
const maxWord = 100

// DidYouMean returns " (did you mean …?)" with the known name closest to word, or "" if none is
// close.
func DidYouMean(word string, names []string) string {
	if name := nearest(word, names); name != "" {
		return fmt.Sprintf(" (did you mean %s?)", name)
	}
	return ""
}

// Clip shortens text from outside for a message.
func Clip(text string) string {
	if len(text) > maxWord {
		return strings.ToValidUTF8(text[:maxWord], "") + "…"
	}
	return text
}

// nearest returns the name that ends in word (videos.list of youtube.videos.list), otherwise the
// name with the fewest typos.
func nearest(word string, names []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+1
	if len(word) > 3 {
		least++ // two swapped letters
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if strings.HasSuffix(name, "."+word) {
			return name
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance returns how many bytes must be inserted, deleted or replaced to turn a into b.
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
