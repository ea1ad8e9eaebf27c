package deploy_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quotabudget/internal/standin"
)

// TestEveryMetricIsDocumented requires that docs/operations.md lists exactly the metrics that the
// programs export, each in the section of its program, with its labels.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	daemon, file := exported(scrapeDaemon(t)), exported(scrapeFile(t))
	maps.Copy(file, exported(sweepFile(t, serve(t, &standin.YouTube{}), true)))
	both := make(map[string]string)
	for name, labels := range daemon {
		if _, ok := file[name]; ok {
			both[name] = labels
			delete(daemon, name)
			delete(file, name)
		}
	}
	page := read(t, "../docs/operations.md")
	for title, want := range map[string]map[string]string{
		"The daemon, and the file of a sweep": both,
		"Only the daemon":                     daemon,
		"Only the file of a sweep":            file,
		"The proxy":                           exported(scrapeProxy(t)),
	} {
		_, section, _ := strings.Cut(page, "\n### "+title+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		got := listed(section)
		for name, labels := range want {
			if got[name] != labels {
				t.Errorf("%s: %s{%s} has the labels {%s} on the page",
					title, name, labels, got[name])
			}
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("%s: nothing exports %s", title, name)
			}
		}
	}
}

// exported returns the metrics of a scrape with the labels of each, or "none".
func exported(text string) map[string]string {
	all := make(map[string]string)
	usual := regexp.MustCompile(`^(go|process|promhttp)_`)
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (\w+)`).FindAllStringSubmatch(text, -1) {
		if usual.MatchString(name[1]) {
			continue
		}
		sample := regexp.MustCompile(
			`(?m)^` + name[1] + `(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
		labels := regexp.MustCompile(`(\w+)="`)
		var names []string
		for _, s := range sample.FindAllStringSubmatch(text, -1) {
			for _, l := range labels.FindAllStringSubmatch(s[1], -1) {
				names = append(names, l[1])
			}
		}
		all[name[1]] = joined(slices.DeleteFunc(names, func(l string) bool { return l == "le" }))
	}
	return all
}

// listed returns the metrics in the lists of a page. "same" means the labels of the item above.
func listed(section string) map[string]string {
	all, above := make(map[string]string), ""
	item := regexp.MustCompile("(?m)^- `(\\w+)`(?: \\(([^)]*)\\))?(?::|$)")
	for _, r := range item.FindAllStringSubmatch(section, -1) {
		if labels := strings.TrimSpace(r[2]); labels != "same" {
			above = joined(regexp.MustCompile(`\w+`).FindAllString(labels, -1))
		}
		all[r[1]] = above
	}
	return all
}

func joined(labels []string) string {
	if len(labels) == 0 {
		return "none"
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(labels))), ", ")
}

// scrapeProxy returns the metrics of a proxy that has served one request.
func scrapeProxy(t *testing.T) (text string) {
	t.Helper()
	log := launch(t, "credentials: [{name: default, api_key: {env: YOUTUBE_API_KEY}}, "+
		"{name: other, upstream: openai, api_key: {env: YOUTUBE_API_KEY}}]\n",
		"quotactl", "proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	await(t, log, func() bool {
		web, admin := listens.FindString(log.String()), served.FindStringSubmatch(log.String())
		if web != "" && admin != nil {
			get(web + "/youtube/v3/i18nRegions?part=snippet")
			text = get("http://" + admin[1] + "/metrics")
		}
		return text != ""
	})
	return text
}

var listens = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
