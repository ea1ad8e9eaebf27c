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

// searchWord is one word that a person typed, cut up for the index: "rock'n'roll" is three words
// there, of which the last may be the beginning of a longer one.
type searchWord struct {
	before, last string
	open         bool // unless last is a character that stands alone
}

// searchWords takes apart what a person typed.
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

// lastSearchable returns the last character of word that the index knows.
func lastSearchable(word string) (last rune, found bool) {
	for _, r := range word {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || standsAlone(r) {
			last, found = r, true
		}
	}
	return last, found
}

// ending is the phrase of the index for the word with another end. Nothing in it is an operator.
func (w searchWord) ending(last string) string {
	return `"` + strings.ReplaceAll(w.before+last, `"`, `""`) + `"`
}

func (w searchWord) whole() string { return w.ending(w.last) }

// beginning finds every word that begins so. The index reads all it has of all of them.
func (w searchWord) beginning() string {
	if !w.open {
		return w.whole()
	}
	return w.whole() + "*"
}

// all is a query of the index that has a phrase for each word.
func all(words []searchWord, phrase func(searchWord) string) string {
	phrases := make([]string, len(words))
	for i, w := range words {
		phrases[i] = phrase(w)
	}
	return strings.Join(phrases, " AND ")
}

// sample is the words of the newest videos, sorted, as often as they are used: it tells which words
// that begin somehow are common.
type sample struct {
	words  []string
	videos int
	newest int64 // the number of the newest video, about how many there are
}

func (s *sample) add(text string) {
	for word := range strings.FieldsFuncSeq(segment(text), betweenWords) {
		s.words = append(s.words, fold(word))
	}
}

// beginning finds the words that begin as w, but only the most common ones if all would take long
// to read.
func (s *sample) beginning(w searchWord, most int) string {
	const mostRead = 2000 // uses of words: a few milliseconds
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

// inWord reports whether the index takes r for part of a word.
func inWord(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
}

func betweenWords(r rune) bool { return !inWord(r) }

// fold is a word of a segmented text as the index keeps it: without case, and Latin letters without
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
