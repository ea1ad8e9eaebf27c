package quotabudget_test

import (
	"fmt"
	"html"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/standin"
)

const (
	picture = "docs/terminal.svg"
	columns = 96
)

// session is what the picture at the top of the README shows. The first commands are not in it.
var session = struct{ before, shown []string }{
	before: append(slices.Repeat(
		[]string{"quotactl spend --method youtube.search.list --label job=report"}, 20),
		"quotactl spend --units 300 --label job=backfill"),
	shown: []string{
		"ingestor once --region US,GB,DE,BR",
		"quotactl status",
		"quotactl spend --method youtube.search.list --label job=report",
		"quotactl log --by job",
	},
}

const sessionConfig = `credentials:
  - name: default
    api_key: {env: YOUTUBE_API_KEY}
    limits:
      - {bucket: default, units: 10000, headroom: 500, window: 24h}
      - {bucket: default, units: 10000, headroom: 500, window: day}
      - {bucket: search_list, units: 100, headroom: 5, window: day}
      - {bucket: search_list, units: 20, window: 1h}
`

// The picture is what the programs print on a terminal today, except for times and the forecast.
func TestPicture(t *testing.T) {
	t.Parallel()
	day := quotaDay(t)
	drawn := drawSVG(record(t))
	if quotaDay(t) != day { // a new day began in the middle, and some of its units are free again
		drawn = drawSVG(record(t))
	}
	if *update {
		must(t, os.WriteFile(picture, []byte(drawn), 0o644))
	}
	if want, got := timeless(drawn), timeless(read(t, picture)); want != got {
		t.Errorf("%s is out of date; run make picture\nthe programs print:\n%s\nit has:\n%s",
			picture, want, got)
	}
}

var (
	moving = regexp.MustCompile(
		`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|\d\d:\d\dZ|\bin (?:\d+(?:h|min|s) ?)+`)
	blanks = regexp.MustCompile(` +`)
	text   = regexp.MustCompile(`<text [^>]*>(.*)</text>`)
)

// timeless is a drawing without what differs from one moment to the next.
func timeless(drawing string) string {
	var lines []string
	for _, drawn := range text.FindAllStringSubmatch(drawing, -1) {
		if !strings.HasPrefix(drawn[1], "default: ") { // what the forecast says
			line := moving.ReplaceAllString(drawn[1], "TIME")
			lines = append(lines, blanks.ReplaceAllString(line, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// quotaDay is the day by which the session's units are counted.
func quotaDay(t *testing.T) int {
	t.Helper()
	zone, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	return time.Now().In(zone).YearDay()
}

// record plays the session on a terminal, against the stand-in.
func record(t *testing.T) (lines []string) {
	t.Helper()
	upstream := httptest.NewServer(&standin.YouTube{})
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(file, []byte(sessionConfig), 0o600))
	command := func(line string) *exec.Cmd {
		words := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), program(t, words[0]), words[1:]...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "TZ=UTC", "TERM=xterm",
			"YOUTUBE_API_KEY=any", "YOUTUBE_ENDPOINT=" + upstream.URL + "/"}
		return cmd
	}
	for _, line := range session.before {
		if out, err := command(line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	for _, line := range session.shown {
		cmd := command(line)
		if strings.HasPrefix(line, "quotactl") { // a denial is printed to standard error
			cmd.Args = append([]string{"sh", "-c", `"$0" "$@" 2>&1`}, cmd.Args...)
			cmd.Args[3], cmd.Path = cmd.Path, "/bin/sh"
		}
		seen, err := clitest.Seen(t, columns, cmd)
		if failed := err != nil; failed != strings.Contains(seen, "denied:") {
			t.Fatalf("%s: %v\n%s", line, err, seen)
		}
		clitest.Fits(t, columns, seen)
		lines = append(lines, "\x1b[1m$ "+line+"\x1b[0m")
		seen = strings.NewReplacer("\r", "", dir, "/home/you").Replace(seen)
		for line := range strings.Lines(seen) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
		lines = append(lines, "")
	}
	return lines[:len(lines)-1]
}

// styles are the SVG attributes of the terminal codes that the programs use.
var styles = map[string]string{
	"1": ` font-weight="bold" fill="#ffffff"`, "2": ` fill="#8b949e"`,
	"31": ` fill="#ff7b72"`, "32": ` fill="#7ee787"`, "33": ` fill="#e3b341"`,
}

var coded = regexp.MustCompile("\x1b\\[([0-9]+)m(.*?)\x1b\\[0m")

// drawSVG draws lines of a terminal.
func drawSVG(lines []string) string {
	const width, height, margin = columns * 783 / 100, 18, 16
	var b strings.Builder
	w, h := width+2*margin, len(lines)*height+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `, w, h)
	fmt.Fprintf(&b, `width="%d" height="%d">`, w, h)
	fmt.Fprintf(&b, "\n"+`<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`, w, h)
	b.WriteString("\n" + `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, ` +
		`'DejaVu Sans Mono', monospace" font-size="13" fill="#c9d1d9">` + "\n")
	for i, line := range lines {
		line = coded.ReplaceAllStringFunc(html.EscapeString(line), func(s string) string {
			m := coded.FindStringSubmatch(s)
			return "<tspan" + styles[m[1]] + ">" + m[2] + "</tspan>"
		})
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n",
			margin, margin+14+i*height, line)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}
