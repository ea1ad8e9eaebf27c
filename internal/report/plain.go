package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text from outside (titles, labels, notes, IDs, messages of the upstream) may hold what a terminal
// obeys: codes that move the cursor, colour the screen or write to the clipboard, and marks that
// turn the direction of writing around, in a browser, too. Everything that the programs show to
// people goes through Plain: each cell of a table, each sentence, each error and its hint.

const (
	joiner    = '\u200d' // joins emoji
	nonJoiner = '\u200c' // parts Persian letters
	blackFlag = '\U0001f3f4'
)

// Plain is a line of text without what a terminal would obey. A control character becomes �, a line
// break a space; what is invisible is left out. Letters of every script stay, with their marks, and
// so do emoji.
func Plain(text string) string {
	before, flag := rune(0), false // flag: the letters of a region's flag may follow
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

// Joins reports the two invisible characters that emoji and letters need between them.
func Joins(r rune) bool { return r == joiner || r == nonJoiner }

func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// Hidden reports what no screen shows and some obey: formatting characters, of which a few are
// visible, and separators of lines.
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r&0xfffe == 0xfffe // no character at all
}
