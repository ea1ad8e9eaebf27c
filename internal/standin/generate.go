package standin

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Generator generates charts. The same fields give the same charts on every machine.
type Generator struct {
	// Days is the number of days; 0 means 2. Ranks, counters and a few names change from day to
	// day.
	Days int
	// Totals are the lengths of charts by region, at most 200; 0 is a region without a chart. The
	// default is 200 in US, GB, DE, FR, BR and CA, 171 in IN, 137 in AU, and 16 to 200 elsewhere.
	Totals map[string]int
}

// Worldwide videos can chart in any region, other videos only where their language is spoken.
const (
	worldwide   = 240
	perLanguage = 260
)

// wordsJSON holds the parts of titles, channels and tags, by language.
//
//go:embed words.json
var wordsJSON []byte

// words are the words of a language.
type words struct{ Openers, Subjects, Tails, Channels, Tags []string }

var languages = sync.OnceValue(func() map[string]words {
	var all map[string]words
	_ = json.Unmarshal(wordsJSON, &all)
	return all
})

// defaultCharts returns the charts of the zero Generator, generated once for all servers.
var defaultCharts = sync.OnceValue(Generator{}.Charts)

// Charts returns the charts of all regions that the API serves.
func (g Generator) Charts() *Charts {
	if g.Days == 0 {
		g.Days = 2
	}
	var all []*Video
	for day := range g.Days {
		videos := map[uint64]*Video{}
		for _, r := range regions() {
			for rank, n := range g.ranking(r[0], r[1], day) {
				if videos[n] == nil {
					videos[n] = video(n, day)
				}
				v := *videos[n]
				v.Region, v.Rank = r[0], rank+1
				all = append(all, &v)
			}
		}
	}
	return newCharts(all)
}

// ranking returns a region's chart as video numbers.
func (g Generator) ranking(region, language string, day int) []uint64 {
	place := uint64(region[0])<<8 | uint64(region[1])
	type scored struct{ n, score uint64 }
	var all []scored
	add := func(n, bonus uint64) {
		score := bonus + dice(n, 1)%1000 + dice(n, place)%200 +
			dice(n, place, uint64(day), 2)%60
		all = append(all, scored{n, score})
	}
	for n := range uint64(worldwide) {
		if reach := 10 + dice(n, 3)%86; dice(n, place, 4)%100 < reach {
			add(n, 60)
		}
	}
	first := firstOf(language)
	for n := first; n < first+perLanguage; n++ {
		add(n, 0)
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.n, b.n))
	})
	total, ok := g.Totals[region]
	if !ok { // the default: see Totals
		usual := map[string]int{"US": 200, "GB": 200, "DE": 200, "FR": 200, "BR": 200, "CA": 200,
			"IN": 171, "AU": 137}
		total = cmp.Or(usual[region], 16+int(dice(place, 5)%185))
	}
	var chart []uint64
	for _, s := range all[:min(max(total, 0), 200)] {
		chart = append(chart, s.n)
	}
	return chart
}

// video returns a video by its number, as of that day.
func video(n uint64, day int) *Video {
	language := languageOf(n)
	w := languages()[language]
	channel := dice(n, 6) % uint64(len(w.Channels))
	owner := firstOf(language) + channel
	channelID := binary.BigEndian.AppendUint64(nil, dice(owner, 8))
	channelID = binary.BigEndian.AppendUint64(channelID, dice(owner, 9))
	age := time.Duration(dice(n, 11) % (12 * 24 * 3600))
	v := &Video{
		ID:           videoID(n, dice(n, 7)),
		ChannelID:    "UC" + base64.RawURLEncoding.EncodeToString(channelID),
		ChannelTitle: w.Channels[channel],
		CategoryID:   pick(strings.Fields("10 20 1 24 10 20 17 22 23"), dice(n, 10)),
		PublishedAt:  firstDay.Add(-age * time.Second).Format(time.RFC3339),
		Duration:     fmt.Sprintf("PT%dM%dS", dice(n, 12)%45, 1+dice(n, 13)%59),
		TrendingDate: firstDay.AddDate(0, 0, day).Format(time.DateOnly),
		language:     language,
	}
	v.Thumbnail = "https://i.ytimg.com/vi/" + v.ID + "/default.jpg"
	v.Title = title(n, day, w)
	v.Description = v.Title + "\n\n" + v.ChannelTitle + " ▸ https://example.com/" + v.ID + "\n" +
		strings.Join(w.Tags, " · ")
	v.Tags = tags(n, w)
	v.count(n, day)
	return v
}

// firstDay is day 0 of all generated charts.
var firstDay = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// title returns a title. Some are hard to handle: control characters, direction marks, decomposed
// letters, joined emoji.
func title(n uint64, day int, w words) string {
	title := pick(w.Openers, dice(n, 20)) + " " + pick(w.Subjects, dice(n, 21))
	tail := pick(w.Tails, dice(n, 22))
	if strings.Contains(tail, "%d") {
		tail = fmt.Sprintf(tail, 1+dice(n, 23)%99)
	}
	title += " " + tail
	switch {
	case n%29 == 4:
		title = strings.Replace(title, " ", "\r", 1)
	case n%31 == 5:
		title += " • Cafe\u0301 man\u0303ana"
	case n%23 == 6:
		title = "\u202b" + title + "\u202c \u200f✦"
	case n%17 == 7:
		title += " 👩🏽‍🚀👨‍👩‍👧‍👦🏳️‍🌈"
	case n%41 == 8:
		title += ` <b>"a & b"</b> 100%`
	}
	if day > 0 && dice(n, 24)%25 == 0 {
		title += " [↻]"
	}
	return title
}

func tags(n uint64, w words) []string {
	switch {
	case n%13 == 0:
		return nil
	case n%11 == 1:
		return []string{w.Tags[0], "", w.Tags[1], w.Tags[0]}
	case n%97 == 2:
		var many []string
		for i := range 132 {
			many = append(many, fmt.Sprintf("%s %d", pick(w.Tags, uint64(i)), i))
		}
		return many
	}
	return w.Tags[:1+dice(n, 30)%uint64(len(w.Tags))]
}

// count sets the counters. Most grow from day to day, and some are missing.
func (v *Video) count(n uint64, day int) {
	views := int64(20_000+dice(n, 40)%40_000_000) * int64(10+day) / 10
	likes := views / int64(12+dice(n, 41)%60)
	comments := likes / int64(5+dice(n, 42)%30)
	if n%53 == 1 {
		likes -= int64(min(day, 3)) * likes / 4
	}
	v.CommentsDisabled, v.RatingsDisabled = n%37 == 9, n%43 == 10
	if n%211 != 11 {
		v.ViewCount = &views
	}
	if !v.RatingsDisabled {
		v.LikeCount = &likes
	}
	if !v.CommentsDisabled {
		v.CommentCount = &comments
	}
}

// languageOf returns the language of a video number. Worldwide videos are in all languages, half
// of them in English.
func languageOf(n uint64) string {
	switch {
	case n < worldwide && dice(n, 51)%2 == 0:
		return "en"
	case n < worldwide:
		return pick(languageCodes, dice(n, 50))
	}
	return languageCodes[(n-worldwide)/perLanguage]
}

var languageCodes = []string{"ar", "de", "en", "es", "fr", "he", "hi", "ja", "ko", "pt", "ru"}

// firstOf returns the first video number of a language.
func firstOf(language string) uint64 {
	return worldwide + uint64(slices.Index(languageCodes, language))*perLanguage
}

// dice returns a number that depends only on its arguments.
func dice(xs ...uint64) uint64 {
	h := uint64(0)
	for _, x := range xs {
		h += 0x9e3779b97f4a7c15 + x
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

func pick(from []string, n uint64) string { return from[n%uint64(len(from))] }

// videoID returns base64url of eight bytes, like real IDs; some begin with "-" or "_".
func videoID(n, random uint64) string {
	b := binary.BigEndian.AppendUint64(nil, random)
	switch n % 19 {
	case 3:
		b[0] = 0xf8 | b[0]&3
	case 5:
		b[0] = 0xfc | b[0]&3
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
