package standin

import (
	"sync"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
)

// TestYouTubeLimits: of many concurrent requests, a limit admits exactly its units. The other
// requests get the limit's error and take no units.
func TestYouTubeLimits(t *testing.T) {
	const search = "/youtube/v3/search?part=snippet"
	for _, test := range []struct {
		server              *YouTube
		path                string
		units               int64
		code                int
		reason, limit, unit string
	}{
		{&YouTube{Limits: map[string]int64{"default": 25}}, chartQuery + "US", 25, 403,
			"quotaExceeded", "", ""},
		{&YouTube{Limits: map[string]int64{"search_list": 0}}, search, 0, 429,
			"rateLimitExceeded", "0", "1/d/{project}"},
		{&YouTube{MinuteLimit: 2}, chartQuery + "US", 2, 429,
			"rateLimitExceeded", "2", "1/min/{project}"},
	} {
		s := test.server
		s.Now = func() time.Time { return noon }
		url := start(t, s)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { status(t, url+test.path) })
		}
		all.Wait()
		e := wantError(t, test.path, errorOf(t, url+test.path), test.code, test.reason)
		if test.unit != "" {
			m := metadata(t, e)
			if m["quota_limit_value"] != test.limit || m["quota_unit"] != test.unit {
				t.Errorf("metadata %v", m)
			}
		}
		c := s.Counts()
		got := c.Units["default"] + c.Units["search_list"]
		if got != test.units || c.Rejected != 41-test.units || c.Requests != 41 ||
			len(c.Units) > 1 {
			t.Errorf("counts %+v", c)
		}
		if r := get(t, url, "GET /youtube/v3/videos:batchGetStats?part=id&id=x"); r.status != 200 &&
			s.MinuteLimit == 0 {
			t.Errorf("another bucket: %+v", r)
		}
	}
}

func TestUnitsByMethod(t *testing.T) {
	for _, test := range []struct {
		verb, path, bucket string
		units              int64
	}{
		{"GET", "/youtube/v3/videos?part=id&chart=mostPopular", "default", 1},
		{"GET", "/youtube/v3/videos", "default", 1}, // invalid
		{"GET", "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=XX", "default", 1},
		{"GET", "/youtube/v3/videos:batchGetStats", "video_batch_get_stats", 1},
		{"GET", "/youtube/v3/search?part=snippet", "search_list", 1},
		{"POST", "/youtube/v3/videos?part=snippet", "video_insert", 1},
		{"POST", "/upload/youtube/v3/videos?uploadType=multipart", "video_insert", 1},
		{"POST", "/youtube/v3/playlists?part=snippet", "default", 50},
		{"DELETE", "/youtube/v3/playlists?id=x", "default", 50},
		{"POST", "/resumable/upload/youtube/v3/captions", "default", 400},
		{"GET", "/youtube/v3/captions/abc", "default", 200},
		{"GET", "/youtube/v3/captions/a/b", "default", 0},
		{"GET", "/youtube/v3videos", "default", 0},
		{"PATCH", "/youtube/v3/videos", "default", 0},
	} {
		s := &YouTube{}
		get(t, start(t, s), test.verb+" "+test.path)
		c := s.Counts()
		if c.Units[test.bucket] != test.units || c.Total[test.bucket] != test.units ||
			(test.units == 0) != (c.NotFound == 1) {
			t.Errorf("%s %s: counts %+v", test.verb, test.path, c)
		}
	}
}

func TestUnchangedCostsAUnit(t *testing.T) {
	s := &YouTube{}
	list := client(t, start(t, s)).VideoCategories.List([]string{"snippet"}).RegionCode("US")
	l, err := list.Do()
	must(t, err)
	if _, err := list.IfNoneMatch(l.Etag).Do(); !googleapi.IsNotModified(err) {
		t.Errorf("error %v, want not modified", err)
	}
	if c := s.Counts(); c.Units["default"] != 2 {
		t.Errorf("counts %+v", c)
	}
}
