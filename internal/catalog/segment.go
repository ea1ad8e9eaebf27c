package catalog

import (
	"fmt"
	"strings"
	"unicode"
)

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

// plain takes off the accents that people leave out when they type and that the index, which knows
// those of Latin letters, does not.
func plain(r rune) rune {
	switch r = unicode.ToLower(r); r {
	case 'ά':
		return 'α'
	case 'έ':
		return 'ε'
	case 'ή':
		return 'η'
	case 'ί', 'ϊ', 'ΐ':
		return 'ι'
	case 'ό':
		return 'ο'
	case 'ύ', 'ϋ', 'ΰ':
		return 'υ'
	case 'ώ':
		return 'ω'
	case 'ς':
		return 'σ'
	case 'ё':
		return 'е'
	}
	return r
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
