package cli

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"

	"quotabudget/internal/words"
)

// escaped escapes, in JSON or double-quoted YAML, the characters that a terminal may obey and
// encoding/json does not escape. The value stays the same. spell formats one character.
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

// acts reports whether encoding/json leaves a character unescaped that a terminal may obey.
func acts(r rune) bool {
	return r >= '\u007f' && (unicode.IsControl(r) || words.Hidden(r) && !words.Joins(r))
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

// escaper escapes log lines on their way to w. Each Write must be whole lines, as log/slog's are.
type escaper struct{ w io.Writer }

func (e escaper) Write(data []byte) (int, error) {
	if _, err := e.w.Write(escaped(data, inJSON)); err != nil {
		return 0, err
	}
	return len(data), nil
}
