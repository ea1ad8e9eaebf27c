package standin

import (
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
)

func TestToTheLastUnit(t *testing.T) {
	s := &YouTube{Limits: map[string]int64{"default": 9}}
	c := client(t, start(t, s))
	for i := range 12 {
		if err := head(c); i >= 9 {
			wantError(t, "over the limit", err, 403, "quotaExceeded")
		} else if err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	got := s.Counts()
	if got.Units["default"] != 9 || got.Rejected != 3 || got.Requests != 12 ||
		got.ByMethod["youtube.videos.list"] != 9 {
		t.Errorf("counts %+v", got)
	}
	if _, err := c.Search.List([]string{"snippet"}).Do(); err != nil {
		t.Errorf("another bucket: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := &YouTube{Limits: map[string]int64{"default": 25}}
	url := start(t, s)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() { status(t, url+chartQuery+"US") })
	}
	all.Wait()
	if c := s.Counts(); c.Units["default"] != 25 || c.Rejected != 15 {
		t.Errorf("counts %+v", c)
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

func TestZeroIsALimit(t *testing.T) {
	s := &YouTube{Limits: map[string]int64{"search_list": 0}}
	_, err := client(t, start(t, s)).Search.List([]string{"snippet"}).Do()
	e := wantError(t, "no units", err, 429, "rateLimitExceeded")
	if m := metadata(t, e); m["quota_limit_value"] != "0" || m["quota_unit"] != "1/d/{project}" {
		t.Errorf("metadata %v", m)
	}
	if c := s.Counts(); c.Units["search_list"] != 0 || c.Rejected != 1 {
		t.Errorf("counts %+v", c)
	}
}

// TestPacificDays spends the day's only unit and checks at each moment whether another is free.
func TestPacificDays(t *testing.T) {
	for name, at := range map[string]struct{ spend, still, next string }{
		"summer":   {"2026-07-01T07:00:00Z", "2026-07-02T06:59:59Z", "2026-07-02T07:00:00Z"},
		"winter":   {"2026-01-15T08:00:00Z", "2026-01-16T07:59:59Z", "2026-01-16T08:00:00Z"},
		"23 hours": {"2026-03-08T08:00:00Z", "2026-03-09T06:59:59Z", "2026-03-09T07:00:00Z"},
		"25 hours": {"2026-11-01T07:00:00Z", "2026-11-02T07:59:59Z", "2026-11-02T08:00:00Z"},
	} {
		var now time.Time
		s := &YouTube{Now: func() time.Time { return now }, Limits: map[string]int64{"default": 1}}
		url := start(t, s)
		for _, ask := range []struct {
			at   string
			want int
		}{{at.spend, 200}, {at.still, 403}, {at.next, 200},
			{at.still, 403}} { // a clock that jumps back frees nothing
			var err error
			if now, err = time.Parse(time.RFC3339, ask.at); err != nil {
				t.Fatal(err)
			}
			if status, _ := status(t, url+chartQuery+"US"); status != ask.want {
				t.Errorf("%s, at %s: status %d, want %d", name, ask.at, status, ask.want)
			}
		}
		if c := s.Counts(); c.Total["default"] != 2 || c.Units["default"] != 1 {
			t.Errorf("%s: counts %+v", name, c)
		}
	}
}

func TestMinuteLimit(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 30, 0, time.UTC)
	s := &YouTube{Now: func() time.Time { return now }, MinuteLimit: 2}
	c := client(t, start(t, s))
	must(t, errors.Join(head(c), head(c)))
	e := wantError(t, "third in a minute", head(c), 429, "rateLimitExceeded")
	if unit := metadata(t, e)["quota_unit"]; unit != "1/min/{project}" {
		t.Errorf("quota_unit %v", unit)
	}
	now = now.Add(30 * time.Second)
	if err := head(c); err != nil {
		t.Errorf("next minute: %v", err)
	}
	if c := s.Counts(); c.Units["default"] != 3 || c.Rejected != 1 {
		t.Errorf("counts %+v", c)
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
