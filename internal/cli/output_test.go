package cli

import (
	"bytes"
	"errors"
	"testing"
)

// TestPrintEach: a list written item by item equals one written at once.
func TestPrintEach(t *testing.T) {
	type item struct {
		ID     string            `json:"id"`
		Labels map[string]string `json:"labels"`
	}
	all := []item{{"no", map[string]string{}},
		{"\u202e<b>", map[string]string{"b": "1:30", "a": "x\ny"}}, {"", nil}}
	for _, form := range []string{"json", "yaml"} {
		for n := range len(all) + 1 {
			var each bytes.Buffer
			whole := written(t, form, map[string][]item{"items": all[:n:n]})
			c := &Common{Output: form, Stdout: &each}
			err := c.PrintEach("items", func(do func(any) error) error {
				for _, one := range all[:n] {
					if err := do(one); err != nil {
						return err
					}
				}
				return nil
			}, nil)
			if err != nil || each.String() != whole {
				t.Errorf("%s, %d items: %v\n%s\nwant\n%s", form, n, err, each.String(), whole)
			}
		}
	}
	failed := errors.New("the ledger has gone")
	var out bytes.Buffer
	c := &Common{Output: "json", Stdout: &out}
	err := c.PrintEach("items", func(func(any) error) error { return failed }, nil)
	if !errors.Is(err, failed) || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}
