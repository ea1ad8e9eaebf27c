package catalog

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"quotabudget/internal/sqlite"
)

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
	var pages int
	must(t, c.db.Write.QueryRow("PRAGMA page_count").Scan(&pages))
	limit := func(pages int) {
		t.Helper()
		if _, err := c.db.Write.Exec("PRAGMA max_page_count = " + strconv.Itoa(pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(pages)
	if _, err := c.db.Write.Exec("DELETE FROM room"); err != nil {
		t.Fatal(err)
	}
	// of the free space
	if _, err := c.db.Write.Exec("CREATE TABLE other AS SELECT zeroblob(300000) AS x"); err != nil {
		t.Fatal(err)
	}
	check(sqlite.ErrFull)
	limit(pages + 1000)
	check(nil)
	if _, _, err := c.Begin(t.Context(), us, "run", noOther, page); err != nil {
		t.Error(err)
	}
	before, err := os.Stat(c.Path())
	must(t, err)
	for range 20 { // only the first one grows the file
		check(nil)
	}
	if _, err := c.db.Write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
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
	if _, err := c.db.Write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	begin(t, c, us, Page{Videos: list, FetchedAt: nine})
	info, err := os.Stat(c.Path() + "-wal")
	if err != nil || info.Size() > roomForPage {
		t.Errorf("a page took %d bytes, %v", info.Size(), err)
	}
}
