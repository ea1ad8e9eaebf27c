package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

func series(limit int64, use ...int64) plan.Series {
	return plan.Series{Limit: quota.Limit{Bucket: "default", Units: limit,
		Window: quota.Sliding(24 * time.Hour)}, Cap: limit,
		Start: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Step: time.Hour, Use: use}
}

func TestPlanPicture(t *testing.T) {
	var rising []int64
	for i := range int64(400) {
		rising = append(rising, i/4)
	}
	text := pictureOf(series(200, rising...), pictureSize{Columns: 40, Rows: 4})
	for _, want := range []string{"200 ┼───", "  0 ┼", "default 24h: units used, of 200",
		"2026-06-01", "2026-06-17"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("coloured although it is not to be")
	}
	if got := pictureOf(series(0, 0, 0, 0), pictureSize{Columns: 10, Rows: 2}); got == "" {
		t.Error("nothing drawn of a limit of nothing")
	}
	if got := pictureOf(series(5), pictureSize{Columns: 10, Rows: 2}); got != "" {
		t.Errorf("%q", got)
	}
}

// TestTerminalShort: a plan with fewer steps than columns fills the picture too.
func TestPlanPictureShort(t *testing.T) {
	widths := make(map[string]int)
	for line := range strings.Lines(pictureOf(series(10, 5, 5, 5, 5, 5, 5),
		pictureSize{Columns: 40, Rows: 4})) {
		if label, drawn, ok := strings.Cut(line, "┼"); ok {
			widths[strings.TrimSpace(label)] = utf8.RuneCountInString(strings.TrimSpace(drawn))
		}
	}
	if widths["10"] < 39 || widths["5"] != widths["10"] {
		t.Errorf("the curve and the line of the limit are %v columns wide", widths)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		use     []int64
		columns int
		want    []float64
	}{
		{[]int64{1, 9, 2, 3, 4}, 2, []float64{9, 4}},
		{[]int64{1, 2}, 5, []float64{1, 1, 1, 2, 2}},
		{[]int64{1, 2, 3}, 3, []float64{1, 2, 3}},
		{[]int64{7}, 2, []float64{7, 7}},
		{nil, 2, nil},
	} {
		if got := spread(c.use, c.columns); !slices.Equal(got, c.want) {
			t.Errorf("%d in %d columns: %v, want %v", c.use, c.columns, got, c.want)
		}
	}
}

// saw returns a limit of a calendar day over some days and hours, used from 1 unit in the first
// hour to 24 in the last.
func saw(days, hours int) plan.Series {
	s := series(100)
	for i := range 24*days + hours {
		s.Use = append(s.Use, int64(1+i%24))
	}
	return s
}

// TestPeaks: a long plan has one point per day, its peak. The extra hour of a clock change
// belongs to the last day.
func TestPeaks(t *testing.T) {
	if got := peaks(saw(60, 0)); len(got) != 60*24 || slices.Max(got) != 24 ||
		slices.Min(got) != 1 {
		t.Errorf("%d points from %v to %v", len(got), slices.Min(got), slices.Max(got))
	}
	for _, s := range []plan.Series{saw(365, 0), saw(365, 1)} {
		if got := peaks(s); len(got) != 365 || slices.Min(got) != 24 {
			t.Errorf("%d points, the least %v", len(got), slices.Min(got))
		}
	}
}

// drawn holds the texts of a picture.
type drawn struct {
	ViewBox string  `xml:"viewBox,attr"`
	Em      float64 `xml:"font-size,attr"`
	Texts   []struct {
		X      float64 `xml:"x,attr"`
		Y      float64 `xml:"y,attr"`
		Anchor string  `xml:"text-anchor,attr"`
		Text   string  `xml:",chardata"`
	} `xml:"text"`
}

type box struct{ left, top, right, bottom float64 }

// TestSVGLayout: no text overlaps another or is cut off, in fonts of up to 0.6 em a letter.
func TestSVGLayout(t *testing.T) {
	lost := []time.Time{time.Date(2026, 6, 1, 2, 0, 0, 0, time.UTC)}
	for _, days := range []int{1, 2, 3, 5, 7, 14, 30, 60, 61, 100, 365, 366, 3660} {
		var out bytes.Buffer
		if err := writeSVG(&out, []plan.Series{saw(days, 0), saw(days, 0), saw(days, 0)},
			lost); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "the peak of each day"); got != (days > 60) {
			t.Errorf("%d days: mentions peaks: %v", days, got)
		}
		var picture drawn
		if err := xml.Unmarshal(out.Bytes(), &picture); err != nil {
			t.Fatal(err)
		}
		var width, height float64
		if _, err := fmt.Sscanf(picture.ViewBox, "0 0 %g %g", &width, &height); err != nil ||
			len(picture.Texts) < 7 {
			t.Fatalf("%d texts, %v", len(picture.Texts), err)
		}
		var boxes []box
		for _, text := range picture.Texts {
			long := 0.6 * picture.Em * float64(utf8.RuneCountInString(text.Text))
			from := text.X - map[string]float64{"start": 0, "middle": 0.5,
				"end": 1}[text.Anchor]*long
			b := box{from, text.Y - picture.Em, from + long, text.Y}
			if b.left < 0 || b.top < 0 || b.right > width || b.bottom+2 > height {
				t.Errorf("%d days: %q is cut off: %v in %g x %g", days, text.Text, b, width, height)
			}
			for i, other := range boxes {
				if b.left < other.right && other.left < b.right && b.top < other.bottom &&
					other.top < b.bottom {
					t.Errorf("%d days: %q lies on %q", days, text.Text, picture.Texts[i].Text)
				}
			}
			boxes = append(boxes, b)
		}
	}
}

func TestSVG(t *testing.T) {
	var out bytes.Buffer
	lost := []time.Time{time.Date(2026, 6, 1, 2, 0, 0, 0, time.UTC)}
	if err := writeSVG(&out, []plan.Series{series(200, 1, 200, 3), series(0, 0, 0)},
		lost); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "<svg ") || !strings.Contains(text, "default 24h, of 200") ||
		!strings.Contains(text, "get less") {
		t.Errorf("%.300s", text)
	}
	for in := xml.NewDecoder(&out); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
