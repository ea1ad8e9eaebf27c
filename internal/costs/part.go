package costs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// priced names the facts of the request in a form that fits into a label. Facts that are too long
// are replaced by a digest.
func (q *Quote) priced(facts []string) string {
	var words []string
	for _, f := range q.table.facts {
		if slices.Contains(facts, f.name) {
			text, _ := q.env[f.name].(string)
			words = append(words, cmp.Or(text, "-"))
		}
	}
	if len(words) == 0 {
		return ""
	}
	text := strings.Join(words, "/")
	name := partLetters(text)
	if len(name) > maxPart {
		sum := sha256.Sum256([]byte(text))
		name = name[:maxPart-13] + "-" + hex.EncodeToString(sum[:6])
	}
	return name
}

// Model returns the model in the request, or "" if its price does not depend on a model.
func (q Quote) Model() string {
	model, _ := q.env[modelFact].(string)
	return model
}

// part returns the bucket, or the part of it that the request is charged to.
func (q *Quote) part(bucket string) string {
	b := q.table.bucketNamed(bucket)
	name := bucket
	if len(b.Split) > 0 {
		var words []string
		for _, fact := range b.Split {
			text, _ := q.env[fact].(string)
			words = append(words, cmp.Or(text, "unknown"))
		}
		name += "/" + partName(strings.Join(words, "."))
	}
	q.names[bucket] = name
	return name
}

// maxPart is the maximum number of letters in the name of a part.
const maxPart = 63

// partLetters replaces what is not a lower-case letter, a digit, ".", "_", "-" or "/".
func partLetters(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', strings.ContainsRune("._-/", r):
			return r
		}
		return '-'
	}, strings.ToLower(text))
}

// partName makes the name of a part: lower-case letters, digits, ".", "_" and "-".
func partName(text string) string {
	text = strings.ReplaceAll(partLetters(text), "/", "-")
	if text = strings.TrimLeft(text, "._-"); text == "" {
		return "unknown"
	}
	return text[:min(len(text), maxPart)]
}
