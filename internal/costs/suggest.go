package costs

import (
	"maps"
	"slices"
	"strings"

	"quotabudget/internal/spell"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean is the hint at the one of the known that was meant, or "".
func didYouMean[V any](word string, known map[string]V) string {
	return spell.DidYouMean(word, sorted(known))
}

// clip keeps a foreign text short enough for a message.
func clip(text string) string {
	if len(text) > 100 {
		return strings.ToValidUTF8(text[:100], "") + "…"
	}
	return text
}
