package untrusted

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"quotabudget/internal/quota"
)

var tagForm = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

const maxMessage = 300

// Plain returns a text in one line of at most 300 characters, without markup and control codes.
// It drops a text that contains something like a key.
func Plain(text string) string {
	text = html.UnescapeString(tagForm.ReplaceAllString(text, ""))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if quota.LooksSecret(text) {
		return ""
	}
	if runes := []rune(text); len(runes) > maxMessage {
		return strings.TrimSpace(string(runes[:maxMessage])) + "…"
	}
	return text
}
