// Package standin plays the metered APIs of the price lists over HTTP.
//
// A stand-in is the judge in tests: it meters by itself, on its own clock and with its own code,
// and shares none with what it judges. It answers with the real shapes (headers, usage, streams,
// throttle status), and it refuses as the real API does.
//
//	s, _ := standin.New("anthropic")
//	s.Limits = map[string][]standin.Limit{"output": {{Units: 4000, Window: time.Minute}}}
//	http.ListenAndServe("127.0.0.1:8081", s)
//
// Each stand-in is one account. Everything that it bills is billed when the request is admitted, so
// that a client that cuts its stream, or loses the answer, is billed in full.
//
// GET /standin/counts answers Counts; POST /standin/settings changes limits, prices and faults and
// puts the clock forward. Neither is metered.
package standin
