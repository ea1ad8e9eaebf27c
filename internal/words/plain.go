package words

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	joiner    = '\u200d' // joins emoji
	nonJoiner = '\u200c' // parts Persian letters
	blackFlag = '\U0001f3f4'
)

// Plain returns text from outside (titles, labels, notes, IDs, messages of the upstream) as one
// line that is safe for a terminal or browser. A terminal would otherwise obey codes that move the
// cursor or write to the clipboard, and marks that reverse the writing direction. A control
// character becomes �, a line break a space; invisible characters are dropped. Letters of every
// script stay, with their marks, and so do emoji.
func Plain(text string) string {
	before, flag := rune(0), false // flag: letters of a flag emoji may follow
	return strings.Map(func(r rune) rune {
		last := before
		before = r
		// tag characters, from U+E0020 to U+E007F, spell the region of a flag
		flag = r == blackFlag || flag && r >= 0xe0020 && r <= 0xe007f
		switch {
		case r < utf8.RuneSelf && r >= ' ' && r != '\u007f':
			return r
		case unicode.IsSpace(r) && !unicode.Is(unicode.Zs, r):
			return ' '
		case unicode.IsControl(r):
			return '�'
		case Joins(r):
			if last < utf8.RuneSelf {
				return -1
			}
			return r
		case Hidden(r) && !flag:
			return -1
		}
		return r
	}, text)
}

// Joins reports whether a character is one of the two invisible joiners that emoji and letters
// need.
func Joins(r rune) bool { return r == joiner || r == nonJoiner }

// Hidden reports whether a character is invisible and may be obeyed: a formatting character or a
// line separator.
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r&0xfffe == 0xfffe // not a character
}

// maxWord is longer than any name: a longer word is not a typo.
const maxWord = 100

// DidYouMean returns " (did you mean …?)" with the known name that ends in word, as in
// youtube.videos.list for videos.list, or else the name with the fewest typos. It returns "" if no
// name is close.
func DidYouMean(word string, names []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+1
	if len(word) > 3 {
		least++ // two swapped letters
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if strings.HasSuffix(name, "."+word) {
			best = name
			break
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// Clip shortens text from outside for a message.
func Clip(text string) string {
	if len(text) > maxWord {
		return strings.ToValidUTF8(text[:maxWord], "") + "…"
	}
	return text
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
