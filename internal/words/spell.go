package words

import (
	"fmt"
	"slices"
	"strings"
)

// maxWord is longer than any name there is: what is longer is no slip.
const maxWord = 100

// DidYouMean is " (did you mean …?)" with the known name that word was meant to be, or "" when none
// is near.
func DidYouMean(word string, known []string) string {
	if meant := nearest(word, known); meant != "" {
		return fmt.Sprintf(" (did you mean %s?)", meant)
	}
	return ""
}

// Clip keeps a text from outside short enough for a message.
func Clip(text string) string {
	if len(text) > maxWord {
		return strings.ToValidUTF8(text[:maxWord], "") + "…"
	}
	return text
}

// nearest is the name of which the word is the end (videos.list of youtube.videos.list), else the
// one with the fewest slips.
func nearest(word string, known []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+1
	if len(word) > 3 {
		least++ // two letters that changed places
	}
	for _, name := range slices.Sorted(slices.Values(known)) {
		if strings.HasSuffix(name, "."+word) {
			return name
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
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
