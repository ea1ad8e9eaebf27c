package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
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
			out.WriteRune(plain(r))
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

// plainLetters maps letters to those without the accents that people omit when they type. The
// index itself only removes accents of Latin letters.
var plainLetters = map[rune]rune{'ά': 'α', 'έ': 'ε', 'ή': 'η', 'ί': 'ι', 'ϊ': 'ι', 'ΐ': 'ι',
	'ό': 'ο', 'ύ': 'υ', 'ϋ': 'υ', 'ΰ': 'υ', 'ώ': 'ω', 'ς': 'σ', 'ё': 'е'}

func plain(r rune) rune {
	r = unicode.ToLower(r)
	return cmp.Or(plainLetters[r], r)
}

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
	before, last string
	open         bool // last may be a prefix; false for a character that stands alone
}

// searchWords splits a query.
func searchWords(typed string) (words []searchWord) {
	for _, word := range strings.FieldsFunc(typed,
		func(r rune) bool { return unicode.IsSpace(r) || r == 0 }) {
		last, found := lastSearchable(word)
		if !found {
			continue
		}
		text := strings.TrimRightFunc(segment(word), betweenWords)
		before := strings.TrimRightFunc(text, inWord)
		words = append(words, searchWord{before, text[len(before):], !standsAlone(last)})
	}
	return words
}

// lastSearchable returns the last character of word that the index stores.
func lastSearchable(word string) (last rune, found bool) {
	for _, r := range word {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || standsAlone(r) {
			last, found = r, true
		}
	}
	return last, found
}

// ending returns the index's phrase for the word with another last part. It contains no
// operators.
func (w searchWord) ending(last string) string {
	return `"` + strings.ReplaceAll(w.before+last, `"`, `""`) + `"`
}

func (w searchWord) whole() string { return w.ending(w.last) }

// beginning matches every word with this prefix. The index reads all their entries.
func (w searchWord) beginning() string {
	if !w.open {
		return w.whole()
	}
	return w.whole() + "*"
}

// all returns an index query with a phrase for each word.
func all(words []searchWord, phrase func(searchWord) string) string {
	phrases := make([]string, len(words))
	for i, w := range words {
		phrases[i] = phrase(w)
	}
	return strings.Join(phrases, " AND ")
}

// sample holds the words of the newest videos, sorted and with repeats. It estimates which words
// with a prefix are common.
type sample struct {
	words  []string
	videos int
	newest int64 // row ID of the newest video, about the number of videos
}

func (s *sample) add(text string) {
	for word := range strings.FieldsFuncSeq(segment(text), betweenWords) {
		s.words = append(s.words, fold(word))
	}
}

// beginning matches the words with the prefix w, but only the most common ones if reading all
// would take long.
func (s *sample) beginning(w searchWord, most int) string {
	const mostRead = 2000 // occurrences of words; a few milliseconds
	if !w.open {
		return w.whole()
	}
	typed, counts, uses := fold(w.last), map[string]int{}, int64(0)
	first, _ := slices.BinarySearch(s.words, typed)
	for _, word := range s.words[first:] {
		if !strings.HasPrefix(word, typed) {
			break
		}
		counts[word]++
		uses++
	}
	if uses*s.newest <= mostRead*int64(s.videos) {
		return w.beginning()
	}
	delete(counts, typed)
	common := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	phrases := []string{w.whole()}
	for _, last := range common[:min(most-1, len(common))] {
		phrases = append(phrases, w.ending(last))
	}
	return "(" + strings.Join(phrases, " OR ") + ")"
}

// inWord reports whether the index takes r as part of a word.
func inWord(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
}

func betweenWords(r rune) bool { return !inWord(r) }

// fold returns a segmented word as the index stores it: in lower case, and Latin letters without
// accents.
func fold(word string) string {
	word = strings.ToLower(word)
	if strings.IndexFunc(word, func(r rune) bool { return r >= 0x80 }) < 0 {
		return word
	}
	var last rune
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if accent := 0x300 <= r && r < 0x370; accent && last < 0x80 {
			return -1
		}
		last = r
		return r
	}, norm.NFD.String(word)))
}
