package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// segment splits text for the index, which takes everything between spaces and punctuation for a
// word. Characters of scripts without spaces, and emoji, become separate words. Queries are split
// in the same way, so a run of such characters is found wherever they follow each other.
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
			r = unicode.ToLower(r)
			out.WriteRune(cmp.Or(unaccentedLetters[r], r))
		case r > 0xffff || unicode.Is(unicode.So, r): // not letters to the index, or unknown to it
			fmt.Fprintf(&out, " u%x ", r)
		default:
			out.WriteByte(' ')
			out.WriteRune(r)
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// unaccentedLetters maps accented letters to the plain ones that people type instead. The index
// itself removes accents only from Latin letters.
var unaccentedLetters = map[rune]rune{'ά': 'α', 'έ': 'ε', 'ή': 'η', 'ί': 'ι', 'ϊ': 'ι', 'ΐ': 'ι',
	'ό': 'ο', 'ύ': 'υ', 'ϋ': 'υ', 'ΰ': 'υ', 'ώ': 'ω', 'ς': 'σ', 'ё': 'е'}

func standsAlone(r rune) bool {
	// used in Katakana, but Unicode assigns them no script
	const longVowel, halfLongVowel = 'ー', 'ｰ'
	return r >= 0x80 && (r == longVowel || r == halfLongVowel || unicode.In(r, unicode.So,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan))
}

// searchWord is one word of a query, split for the index: "rock'n'roll" is three words there, and
// the last may be a prefix.
type searchWord struct {
	text string
	open bool // it may be a prefix; false for a character that stands alone
}

// searchWords splits a query.
func searchWords(typed string) (words []searchWord) {
	for _, word := range strings.FieldsFunc(typed,
		func(r rune) bool { return unicode.IsSpace(r) || r == 0 }) {
		stored := strings.TrimRightFunc(word, func(r rune) bool { // the part that the index stores
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !standsAlone(r)
		})
		if stored != "" {
			last, _ := utf8.DecodeLastRuneInString(stored)
			words = append(words, searchWord{segment(word), !standsAlone(last)})
		}
	}
	return words
}

// whole returns the index's phrase for the word. It contains no operators.
func (w searchWord) whole() string {
	return `"` + strings.ReplaceAll(w.text, `"`, `""`) + `"`
}

// beginning matches every word with this prefix.
func (w searchWord) beginning() string {
	if w.open {
		return w.whole() + "*"
	}
	return w.whole()
}

// all returns an index query with a phrase for each word.
func all(words []searchWord, phrase func(searchWord) string) string {
	phrases := make([]string, len(words))
	for i, w := range words {
		phrases[i] = phrase(w)
	}
	return strings.Join(phrases, " AND ")
}
