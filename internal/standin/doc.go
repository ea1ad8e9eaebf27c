// Package standin simulates the metered APIs of the price lists over HTTP.
//
// Tests compare the programs with a stand-in, which meters by its own clock and shares no code with
// them. Its responses have the form of the real ones (headers, usage, streams, throttle status),
// and it refuses as the real API does.
//
//	s, _ := standin.New("anthropic")
//	s.Limits = map[string][]standin.Limit{"output": {{Units: 4000, Window: time.Minute}}}
//	http.ListenAndServe("127.0.0.1:8081", s)
//
// The folder apis has the limits, prices and responses of each API as data. The code only computes
// the cost of a request, and values that depend on it.
//
// Each stand-in is one account. It bills a request when it admits it, so that a client that
// disconnects early is billed in full.
//
// YouTube simulates the YouTube Data API v3 and Google's metering of it. Its charts are generated
// or loaded.
//
//	s := &standin.YouTube{Limits: map[string]int64{"default": 9}}
//	upstream := httptest.NewServer(s)
//	// … point a client at upstream.URL, then
//	s.Counts().Units["default"]
//
// GET /standin/counts returns Counts; POST /standin/settings changes limits, prices and faults and
// moves the clock forward. Neither is metered. apis/youtube.yaml lists the known and the inferred
// properties of YouTube.
package standin
