package proxy_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/meter/metertest"
)

// packed is the answer {"id":"chatcmpl-1","usage":{"prompt_tokens":9,"completion_tokens":1,
// "total_tokens":10}}, as the libraries of Node and the zstd program pack it.
var packed = map[string]string{
	"br": "G1YAgIzUYs0Z7gTRzmm/+ZUfbZP0Bop82CR0POBW7AvxrmSKF6kxHpDI9egVrJVr00dQBMvFw/eafnPqckjC" +
		"J6JQKgVw/B8=",
	"zstd": "KLUv/QRoNQIAQsQOE5DPAVJSlAU8Jo7YfUBDVNc/KAH3inea+2BEbq2ehIwOSDmNynGblpCnvC1X69B6" +
		"8BGehKgPQy9P7TYCADQ3zywmFBTNKrM=",
	"deflate": "eJxFyD0OgCAMBtC7fDMmMsplTFOJEn7aSJ0Id3fTN76BdCCALzKuWhYPh6fTGREG9Jaqtpvk2DrC5sBS" +
		"tURL0r71DiZG5Y91zhcc+h5f",
}

// TestPackedAnswers: the proxy requests an encoding that it can read, whatever the caller accepts.
// If the response has another encoding anyway, the caller gets it unchanged, the most that the call
// can take is booked, and the log says why.
func TestPackedAnswers(t *testing.T) {
	for encoding, text := range packed {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			body, err := base64.StdEncoding.DecodeString(text)
			must(t, err)
			asked := make(chan string, 10)
			m := meteredOn(t, metertest.File(t), nil, answering(t, "openai",
				func(w http.ResponseWriter, r *http.Request) {
					asked <- strings.Join(r.Header["Accept-Encoding"], ", ")
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Content-Encoding", encoding)
					w.Write(body)
				}))
			for range 2 {
				resp, err := m.post(t.Context(), chatPath, chat(1, 3),
					"Accept-Encoding", "br, zstd, deflate")
				must(t, err)
				got, err := io.ReadAll(resp.Body)
				must(t, err)
				resp.Body.Close()
				if how := <-asked; how != "gzip" || !bytes.Equal(got, body) ||
					resp.Header.Get("Content-Encoding") != encoding {
					t.Errorf("asked for %s, answered %q of %s", how, got, resp.Header)
				}
			}
			m.settled(t)
			if booked, held := m.booked(t, "openai"); booked["tokens/gpt-4.1"] < 2*400 || held != 0 {
				t.Errorf("booked %v, %d held", booked, held)
			}
			if n := strings.Count(m.log.String(), "a body that can be read"); n != 1 {
				t.Errorf("said %d times: %s", n, &m.log)
			}
		})
	}
}
