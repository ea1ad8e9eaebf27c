package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text from outside (titles, labels, notes, IDs, messages of the upstream) may hold what a terminal
// obeys: codes that move the cursor, colour the screen or write to the clipboard, and marks that
// turn the direction of writing around. Everything that the programs print for people goes through
// Plain: each cell of a table, each sentence, each error and its hint.

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
		case r == joiner || r == nonJoiner:
			if last < utf8.RuneSelf {
				return -1
			}
			return r
		case hidden(r) && !flag:
			return -1
		}
		return r
	}, text)
}

func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// hidden reports what no screen shows and some obey: formatting characters, of which a few are
// visible, and separators of lines.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r&0xfffe == 0xfffe // no character at all
}

// escaped is JSON, or YAML with such text in double quotes, with everything escaped that a terminal
// would obey and encoding/json leaves as it is. It means the same. spell writes one character.
func escaped(data []byte, spell func(rune) string) []byte {
	if bytes.IndexFunc(data, acts) < 0 {
		return data
	}
	var out bytes.Buffer
	for _, r := range string(data) {
		if acts(r) {
			out.WriteString(spell(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// acts reports a character that encoding/json leaves as it is and a terminal may obey.
func acts(r rune) bool {
	return r >= '\u007f' && (unicode.IsControl(r) || hidden(r) && r != joiner && r != nonJoiner)
}

func inJSON(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func inYAML(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08X`, r)
	}
	return fmt.Sprintf(`\u%04X`, r)
}

// escaper escapes the lines of a log on their way to w. Each Write is of whole lines, as those of
// log/slog are.
type escaper struct{ w io.Writer }

func (e escaper) Write(data []byte) (int, error) {
	if _, err := e.w.Write(escaped(data, inJSON)); err != nil {
		return 0, err
	}
	return len(data), nil
}
