package costs_test

import (
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

func TestParseEndpoint(t *testing.T) {
	const form, more, clear = "write https://HOST/",
		"write scheme, host and path alone", "would send the API key unencrypted"
	for text, want := range map[string]string{
		"https://youtube.googleapis.com":    "https://youtube.googleapis.com/",
		"https://h:1/a/b/":                  "https://h:1/a/b/",
		"https://h/a%2Fb":                   "https://h/a%2Fb/",
		"http://127.0.0.1:8080":             "http://127.0.0.1:8080/",
		"http://127.9.8.7/":                 "http://127.9.8.7/",
		"http://localhost:8080/x":           "http://localhost:8080/x/",
		"http://[::1]:8080/":                "http://[::1]:8080/",
		"":                                  form,
		"youtube.googleapis.com":            form,
		"ftp://h/":                          form,
		"https:h":                           form,
		"https://:443/":                     form,
		"http://%zz/":                       form,
		"http://127.0.0.1:/":                form, // the client would leave the colon out
		"https://u:pw@h/":                   more,
		"https://h/?key=k":                  more,
		"https://h/?":                       more,
		"https://h/#k":                      more,
		"http://youtube.googleapis.com/":    clear,
		"http://10.0.0.1/":                  clear,
		"http://0.0.0.0/":                   clear,
		"http://[::]/":                      clear,
		"http://[::1%25eth0]/":              clear,
		"http://127.1/":                     clear, // the resolver may take it for another
		"http://2130706433/":                clear,
		"http://127.0.0.1.nip.io/":          clear,
		"http://localhost.example.com/":     clear,
		"http://sub.localhost/":             clear,
		"http://localhost./":                clear,
		"http://LOCALHOST/":                 clear, // a proxy may not know it as this machine
		"HTTP://youtube.googleapis.com/":    clear,
		"http://stand-in/":                  clear,
		"http://localhost@10.0.0.1/":        more,
		"http://10.0.0.1#localhost":         more,
		"http://10.0.0.1\\@localhost/":      form,
		"http://[::ffff:10.0.0.1]/":         clear,
		"http://[::ffff:127.0.0.1]:8080/":   "http://[::ffff:127.0.0.1]:8080/",
		"https://10.0.0.1/":                 "https://10.0.0.1/",
		"HTTPS://h":                         "https://h/",
		"http://host.docker.internal:8080/": clear,
	} {
		u, err := costs.ParseEndpoint(text)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", text, err, want)
		case err == nil && u.String() != want:
			t.Errorf("%s: %s, want %s", text, u, want)
		}
	}
}
