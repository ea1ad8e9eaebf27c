package quotabudget_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	messageItem = regexp.MustCompile("(?m)^- ((?:`[^`]*`|[^`:])*):")
	varies      = regexp.MustCompile(`…|: |\bdefault\b.*|\bkey1\b|YOUTUBE_API_KEY|\bGB\b|\bpace\b`)
	concat      = regexp.MustCompile("[\"`]\\s*\\+\\s*[\"`]")
)

// foreign are messages of others that the programs pass on.
var foreign = map[string]bool{"file is not a database": true, "address already in use": true}

// What the page on troubleshooting quotes is what the programs say.
func TestMessagesAreReal(t *testing.T) {
	said := sources(t)
	rows := messageItem.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1)
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		for _, message := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			for _, part := range varies.Split(message[1], -1) {
				part = strings.Join(strings.Fields(part), " ")
				if !foreign[part] && !strings.Contains(said, part) {
					t.Errorf("docs/troubleshooting.md: no program says %q, of %q", part, message[1])
				}
			}
		}
	}
}

// sources is the text of the programs, with strings that are put together in one piece.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, path := range append(walk(t, "cmd", ".go"), walk(t, "internal", ".go")...) {
		if !strings.HasSuffix(path, "_test.go") {
			all.WriteString(read(t, path))
		}
	}
	return concat.ReplaceAllString(all.String(), "")
}
