package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/sqlite"
)

// TestMain turns the test binary into another sweeping process if SWEEP_CATALOG is set: it stores
// charts there for the region in SWEEP_REGION.
func TestMain(m *testing.M) {
	path := os.Getenv("SWEEP_CATALOG")
	if path == "" {
		os.Exit(m.Run())
	}
	if err := sweep(path, os.Getenv("SWEEP_REGION")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

const sweepCharts, sweepPages = 5, 3

// sweep stores charts of three pages. All regions share some of their videos.
func sweep(path, region string) error {
	ctx := context.Background()
	c, err := Open(ctx, "sqlite://"+path)
	if err != nil {
		return err
	}
	for round := range sweepCharts {
		if err := sweepChart(ctx, c, region,
			nine.Add(time.Duration(round)*time.Minute)); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

func sweepChart(ctx context.Context, c *Catalog, region string, at time.Time) error {
	var id ChartID
	for n := range sweepPages {
		page := Page{Token: token(n), Next: token(n + 1), FetchedAt: at, Last: n == sweepPages-1}
		for place := range 10 {
			page.Videos = append(page.Videos, video(fmt.Sprintf("%s-%d-%d", region, n, place)),
				video(fmt.Sprintf("shared-%d-%d", n, place)))
		}
		var err error
		if n == 0 {
			id, _, err = c.Begin(ctx, region, "run", noOther, page)
		} else {
			_, err = c.StorePage(ctx, id, page)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func token(page int) string {
	if page%sweepPages == 0 {
		return ""
	}
	return fmt.Sprint("page", page)
}

func TestProcessesSweepAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	regions := []string{"US", "GB", "DE", "FR"}
	var wait sync.WaitGroup
	for _, region := range regions {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SWEEP_CATALOG="+path, "SWEEP_REGION="+region)
		wait.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", region, err, out)
			}
		})
	}
	wait.Wait()
	c := openAt(t, path)
	for _, region := range regions {
		charts, err := c.Charts(t.Context(), region, 0)
		if err != nil || len(charts) != sweepCharts {
			t.Fatalf("%s: %d charts, %v", region, len(charts), err)
		}
		wholeChart(t, c, region)
	}
	if got := history(t, c, "shared-0-0"); len(got.Names) != 1 || len(got.Counters) != 1 {
		t.Errorf("%+v", got)
	}
	if n := len(strings.Fields(found(t, c, "title shared"))); n != sweepPages*10 {
		t.Errorf("found %d", n)
	}
}

// wholeChart checks that the current chart has every place.
func wholeChart(t *testing.T, c *Catalog, region string) {
	t.Helper()
	chart, ranked, err := c.Current(t.Context(), region, 0)
	if errors.Is(err, ErrNotFound) {
		return // none is complete yet
	}
	if want := sweepPages * 20; err != nil || len(ranked) != want || chart.Videos != want ||
		ranked[want-1].Rank != want {
		t.Errorf("%s: %d of %d places, %v", region, len(ranked), chart.Videos, err)
	}
}

func TestReadersSeeWholeChartsWhileOthersWrite(t *testing.T) {
	c := open(t)
	done := make(chan error, 1)
	go func() { done <- sweep(c.Path(), "US") }()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			must(t, err)
			wholeChart(t, c, "US")
			t.Logf("%d reads meanwhile", reads)
			return
		default:
			wholeChart(t, c, "US")
			found(t, c, "shared")
		}
	}
}

// TestCheckRoom: the check fails when a page would not fit, and a page fits when the check
// succeeds.
func TestCheckRoom(t *testing.T) {
	c := open(t)
	page := Page{FetchedAt: nine, Last: true, Videos: videos("a", "b")}
	for i := range page.Videos {
		page.Videos[i].Description = strings.Repeat("words of a long description ", 180)
	}
	check := func(want error) {
		t.Helper()
		if err := c.CheckRoom(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	check(nil)
	pages := scalar(t, c, "PRAGMA page_count")
	execute(t, c, fmt.Sprint("PRAGMA max_page_count = ", pages))
	execute(t, c, "DELETE FROM room")
	execute(t, c, "CREATE TABLE other AS SELECT zeroblob(300000) AS x") // takes the free space
	check(sqlite.ErrFull)
	execute(t, c, fmt.Sprint("PRAGMA max_page_count = ", pages+1000))
	check(nil)
	if _, _, err := c.Begin(t.Context(), us, "run", noOther, page); err != nil {
		t.Error(err)
	}
	before, err := os.Stat(c.Path())
	must(t, err)
	for range 20 { // only the first one grows the file
		check(nil)
	}
	execute(t, c, "PRAGMA wal_checkpoint(TRUNCATE)")
	if after, err := os.Stat(c.Path()); err != nil || after.Size() > before.Size()+4*roomForPage {
		t.Errorf("grown from %d to %d bytes, %v", before.Size(), after.Size(), err)
	}
}

// TestRoomForPage: the check writes more than a page of long texts does, with its index.
func TestRoomForPage(t *testing.T) {
	c := open(t)
	var list []Video
	for i := range 50 {
		v := video(fmt.Sprint("v", i))
		for n := range 300 { // about what the longest descriptions of real charts have
			v.Description += fmt.Sprintf("word%d ", (i*7919+n*104729)%5000)
		}
		list = append(list, v)
	}
	execute(t, c, "PRAGMA wal_checkpoint(TRUNCATE)")
	begin(t, c, us, Page{Videos: list, FetchedAt: nine})
	info, err := os.Stat(c.Path() + "-wal")
	if err != nil || info.Size() > roomForPage {
		t.Errorf("a page took %d bytes, %v", info.Size(), err)
	}
}
