package words

import (
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
		flag = r == blackFlag || flag && isTag(r)
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

func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// Hidden reports whether a character is invisible and may be obeyed: a formatting character or a
// line separator.
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r&0xfffe == 0xfffe // not a character
}
