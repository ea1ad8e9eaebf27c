package costs

import (
	"maps"
	"slices"

	"quotabudget/internal/spell"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean is the hint at the one of the known that was meant, or "".
func didYouMean[V any](word string, known map[string]V) string {
	return spell.DidYouMean(word, sorted(known))
}
