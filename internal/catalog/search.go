package catalog

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"
)

// Search returns the videos whose title, channel title, tags or description have all the words of
// query, best first: each word anywhere, whole or as the beginning of one, whatever its case and
// accents; in scripts without spaces between words any run of characters is found. Nothing in query
// is an operator. A limit of 0 means all; a query without a word finds nothing.
func (c *Catalog) Search(ctx context.Context, query string, limit int) (found []Seen, err error) {
	return c.SearchAfter(ctx, query, 0, limit)
}

// SearchAfter is Search without the first so many videos.
func (c *Catalog) SearchAfter(ctx context.Context, query string, skip,
	limit int) (found []Seen, err error) {
	expression := matchExpression(query)
	if expression == "" {
		return nil, nil
	}
	err = c.view(ctx, func(s *txn) error {
		return s.each("search", func(row scanner) error {
			var number int64
			video, err := scanSeen(row, &number)
			found = append(found, video)
			return err
		}, expression, limitOrAll(limit), skip)
	})
	return found, err
}

// segment cuts text up for the index, which takes what stands between spaces and punctuation for
// words: characters of scripts that are written without spaces, and emoji, become words of their
// own. Queries are cut up likewise, so that such a run is found wherever the same characters follow
// each other.
//
//	東京tower🔥  →  東  京 tower u1f525
func segment(text string) string {
	var out strings.Builder
	out.Grow(len(text) + len(text)/4)
	for _, r := range text {
		switch {
		case r == 0:
			out.WriteByte(' ')
		case r < 0x80:
			out.WriteByte(byte(r))
		case !standsAlone(r):
			out.WriteRune(plain(r))
		case r > 0xffff || unicode.Is(unicode.So, r): // not letters to the index, or newer than it
			fmt.Fprintf(&out, " u%x ", r)
		default:
			out.WriteByte(' ')
			out.WriteRune(r)
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// plainLetters are letters without the accents that people leave out when they type and that the
// index, which knows those of Latin letters, does not.
var plainLetters = map[rune]rune{'ά': 'α', 'έ': 'ε', 'ή': 'η', 'ί': 'ι', 'ϊ': 'ι', 'ΐ': 'ι',
	'ό': 'ο', 'ύ': 'υ', 'ϋ': 'υ', 'ΰ': 'υ', 'ώ': 'ω', 'ς': 'σ', 'ё': 'е'}

func plain(r rune) rune {
	r = unicode.ToLower(r)
	return cmp.Or(plainLetters[r], r)
}

func standsAlone(r rune) bool {
	const longVowel, halfLongVowel = 'ー', 'ｰ' // Katakana's, but of no script
	return r >= 0x80 && (r == longVowel || r == halfLongVowel || unicode.In(r, unicode.So,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan))
}

// matchExpression turns what a person typed into a query of the index that has every word of it,
// each as the beginning of a word at least. Nothing in it is an operator. It is "" when there is
// nothing to look for.
func matchExpression(typed string) string {
	var phrases []string
	for _, word := range strings.FieldsFunc(typed,
		func(r rune) bool { return unicode.IsSpace(r) || r == 0 }) {
		last, found := lastSearchable(word)
		if !found {
			continue
		}
		phrase := `"` + strings.ReplaceAll(segment(word), `"`, `""`) + `"`
		if !standsAlone(last) {
			phrase += "*"
		}
		phrases = append(phrases, phrase)
	}
	return strings.Join(phrases, " AND ")
}

// lastSearchable returns the last character of word that the index knows.
func lastSearchable(word string) (last rune, found bool) {
	for _, r := range word {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || standsAlone(r) {
			last, found = r, true
		}
	}
	return last, found
}
