package costs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs/answer"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Learned returns a quantile of what calls that were priced the same way took from a bucket beyond
// what was certain. It returns false while too few are known.
type Learned func(priced, bucket string, percentile int) (units int64, ok bool)

// Quote is what a request takes, as far as that is known before it is sent.
type Quote struct {
	Method string
	// Costs are by bucket or part of one. Units may be an estimate, see quota.Cost, and are 0 where
	// the call can take nothing from a bucket that other calls of the method take from.
	Costs []quota.Cost
	Known bool        // Costs are final: charge them, and settle nothing
	Lapse quota.Lapse // what happens to a hold that is never settled
	TTL   time.Duration
	// AsJSON is whether its body was priced as JSON although it is not called that: an upstream that
	// goes by the Content-Type could read another thing.
	AsJSON bool
	// Reports is the id of a pending call whose usage the response may report; "" for none.
	Reports string
	// Unlisted is the facts for which the list has no row of their own.
	Unlisted []Unlisted
	// Priced names the facts of the request that set the price, such as the model and the tier. It is
	// empty if there are none.
	Priced string
	// Certain is the least that the call takes, by bucket.
	Certain map[string]int64

	table *Table
	rules *rules            // nil of a price that is known
	env   formula.Env       // names of the request
	names map[string]string // of the parts, by bucket
}

// PriceError is a request whose price cannot be computed: it is quota.ErrUnpriced, and not sent.
type PriceError struct {
	Method, Bucket string
	Err            error
}

// Error names the method and the problem of the request, for its sender: without the
// expressions of the list, and without values.
func (e *PriceError) Error() string {
	what := e.Err.Error()
	if missing, ok := e.Err.(*formula.MissingError); ok {
		what = inWords(missing.Paths) + " is missing"
	} else if unlisted, ok := e.Err.(*formula.RowError); ok {
		what = fmt.Sprintf("the price list has no %s for %q", unlisted.Table, spell.Clip(unlisted.Key))
	} else if wrong, ok := e.Err.(*formula.ValueError); ok && len(wrong.Reads) > 0 {
		what = fmt.Sprintf("its price depends on %s, and with what is there it is no number from "+
			"0 to %s", inWords(wrong.Reads), grouped(quota.MaxUnits))
	}
	return fmt.Sprintf("cannot price %s: %s", e.Method, what)
}

// Formula is the expression that has no result, for who wrote the list; "" where that is not why.
func (e *PriceError) Formula() string {
	wrong, ok := errors.AsType[*formula.ValueError](e.Err)
	fact, _ := e.Err.(*factError)
	switch {
	case fact != nil:
		return fmt.Sprintf("%s: %v", fact.name, fact.err)
	case ok:
		return fmt.Sprintf("%s: %v", e.Bucket, wrong)
	}
	return ""
}

// factError is a fact of the list that a request has something for, but no text.
type factError struct {
	name string
	err  error
}

// Error says so without the expression of the list, and without its own word for the fact.
func (e *factError) Error() string {
	return "what its price depends on is there in another form than it should be"
}

// inWords names what a formula looks at: max_tokens in the body.
func inWords(reads []string) string {
	var all []string
	for _, path := range reads {
		root, name, _ := strings.Cut(path, ".")
		all = append(all, name+" in the "+root)
	}
	return strings.Join(all, ", ")
}

// Unwrap is what is wrong, and quota.ErrUnpriced.
func (e *PriceError) Unwrap() []error { return []error{e.Err, quota.ErrUnpriced} }

// NeedsBody reports whether the price of the method depends on the body of its request.
func (t *Table) NeedsBody(method string) bool { return t.methods[method].needsBody }

// Quote is what a request takes that calls the method. Its body is read if NeedsBody says so, and
// may be nil otherwise; learned may be nil.
func (t *Table) Quote(method string, r *http.Request, body []byte, learned Learned) (Quote, error) {
	m, ok := t.methods[method]
	if !ok {
		_, err := t.Lookup(method)
		return Quote{}, err
	}
	q := Quote{Method: method, Known: m.rules == nil, table: t, rules: m.rules,
		names: map[string]string{}}
	var err error
	if q.env, err = t.request(m, r, body); err != nil {
		return Quote{}, &PriceError{Method: method, Err: err}
	}
	if m.reports != nil {
		if q.Reports, err = m.reports.String(q.env); err != nil {
			return Quote{}, &PriceError{Method: method, Err: err}
		}
	}
	q.AsJSON = q.env["body"] != nil && !namesBody(r.Header.Get("Content-Type"))
	if m.rules == nil {
		for _, c := range m.Costs {
			q.Costs = append(q.Costs, quota.Cost{Bucket: q.part(c.Bucket), Units: c.Units})
		}
	} else {
		q.Lapse, q.TTL = m.rules.lapse, m.rules.ttl
		q.Unlisted = q.unlisted(q.env, "")
		q.Priced, q.Certain = q.priced(m.facts), map[string]int64{}
		if bucket, err := q.price(m, learned); err != nil {
			return Quote{}, &PriceError{method, bucket, err}
		}
	}
	q.keep()
	return q, nil
}

// Unlisted is a fact of a call without its own row in a table, such as a model without a price.
type Unlisted struct{ Table, Fact, Value string }

// Name returns the value as the name of a bucket's part.
func (u Unlisted) Name() string { return partName(u.Value) }

// warning is a table for which unlisted values of a fact are reported.
type warning struct {
	table, fact string
	rows        formula.Table
}

// unlisted returns the facts in env, or the named one, without a row in the tables of the price.
func (q *Quote) unlisted(env formula.Env, fact string) (all []Unlisted) {
	for _, w := range q.table.warns {
		if fact != "" && fact != w.fact || q.rules == nil || !q.rules.use(w.table) {
			continue
		}
		value, _ := env[w.fact].(string)
		if _, listed, _ := w.rows.Find(value); !listed {
			all = append(all, Unlisted{w.table, w.fact, spell.Clip(value)})
		}
	}
	return all
}

// useResponse replaces facts of the request by those of the response, which names the billed model.
// A name without a row does not replace one with a row: it may be another spelling of it.
func (q *Quote) useResponse(env formula.Env, out *Outcome) {
	for _, f := range q.table.facts {
		asked, used := env[f.name].(string)
		if !used || f.response == nil {
			continue
		}
		text, err := f.response.String(env)
		if err != nil || text == "" || text == asked {
			continue
		}
		env[f.name] = text
		unlisted := q.unlisted(env, f.name)
		out.Unlisted = append(out.Unlisted, unlisted...)
		if env[f.name] = asked; len(unlisted) == 0 || len(q.unlisted(env, f.name)) > 0 {
			env[f.name] = text
		}
	}
}

// price evaluates the costs of a request. On an error it names the bucket, or the number.
func (q *Quote) price(m Method, learned Learned) (bucket string, err error) {
	for _, n := range m.numbers {
		if q.env[n.name], err = n.value.Value(q.env); err != nil {
			return n.name, err
		}
	}
	for _, a := range q.rules.takes {
		units, err := a.units.Units(q.env)
		if err != nil {
			return a.bucket, err
		}
		if units > 0 {
			q.Costs = append(q.Costs, quota.Cost{Bucket: q.part(a.bucket), Units: units})
		}
	}
	for _, h := range q.rules.holds {
		cost, err := q.estimate(h, learned)
		if err != nil {
			return h.bucket, err
		}
		q.Costs = append(q.Costs, cost)
	}
	q.holdSomething()
	return "", nil
}

// holdSomething holds 1 unit for a call with a settlement and no hold, because only a hold can be
// settled.
func (q *Quote) holdSomething() {
	if len(q.Held()) > 0 {
		return
	}
	for i, c := range q.Costs {
		if q.rules.settles[quota.WholeOf(c.Bucket)] != nil {
			q.Costs[i].Units = 1
			return
		}
	}
}

// Held returns the costs above 0, which a ledger charges or holds.
func (q *Quote) Held() []quota.Cost {
	return slices.DeleteFunc(slices.Clone(q.Costs), func(c quota.Cost) bool { return c.Units == 0 })
}

// estimate returns what a hold sets aside: at least 1, unless the call can take nothing. It is the
// most that the call can take, until enough calls that were priced the same way are known.
func (q *Quote) estimate(h holding, learned Learned) (cost quota.Cost, err error) {
	cost.Bucket = q.part(h.bucket)
	for name := range formula.Quantiles() {
		q.env[name] = math.Inf(1)
	}
	most := h.most
	if most == nil {
		most = h.units
	}
	if cost.Most, err = most.Units(q.env); err != nil {
		return cost, err
	}
	var certain int64
	if h.certain != nil {
		if certain, err = h.certain.Units(q.env); err != nil {
			return cost, err
		}
	}
	certain = min(certain, cost.Most)
	q.Certain[cost.Bucket] = certain
	cost.Units = cost.Most
	if q.learn(h, cost.Bucket, certain, learned) {
		if cost.Units, err = h.units.Units(q.env); err != nil {
			return cost, err
		}
	}
	cost.Units = min(max(1, certain, cost.Units), cost.Most)
	if cost.Most <= cost.Units {
		cost.Most = 0
	}
	cost.Bounded = cost.Most > 0
	return cost, nil
}

// learn puts the quantiles that a hold uses into the environment. It returns false if one of them
// is not known yet.
func (q *Quote) learn(h holding, bucket string, certain int64, learned Learned) bool {
	for name, percentile := range formula.Quantiles() {
		if !h.units.Uses(name) {
			continue
		}
		if learned == nil {
			return false
		}
		units, ok := learned(q.Priced, bucket, percentile)
		if !ok {
			return false
		}
		q.env[name] = float64(certain + units)
	}
	return true
}

// priced names the facts of the request in a form that fits into a label. Facts that are too long
// are replaced by a digest.
func (q *Quote) priced(facts []string) string {
	var words []string
	for _, f := range q.table.facts {
		if slices.Contains(facts, f.name) {
			text, _ := q.env[f.name].(string)
			words = append(words, cmp.Or(text, "-"))
		}
	}
	if len(words) == 0 {
		return ""
	}
	text := strings.Join(words, "/")
	name := partLetters(text)
	if len(name) > maxPart {
		sum := sha256.Sum256([]byte(text))
		name = name[:maxPart-13] + "-" + hex.EncodeToString(sum[:6])
	}
	return name
}

// maxBody is how many bytes of a request are decoded.
const maxBody = 32 << 20

// request is the names of a request, those that the method asks for.
func (t *Table) request(m Method, r *http.Request, body []byte) (formula.Env, error) {
	query := map[string]string{}
	for name, values := range r.URL.Query() {
		query[name] = values[0]
	}
	env := formula.Env{methodFact: m.ID, "query": query, "path": m.values(r),
		"header": lineOf(r.Header), "body_bytes": len(body)}
	var doc any
	if m.needsJSON && len(body) > 0 {
		var err error
		if doc, err = parseBody(r.Header, body); err != nil {
			return nil, err
		}
	}
	if err := m.reads.check(r.URL.Query(), doc); err != nil {
		return nil, err
	}
	env["body"] = doc
	env["count"] = func(path string) any { return float64(answer.Count(doc, path)) }
	for _, f := range t.facts {
		if !slices.Contains(m.facts, f.name) && !slices.Contains(t.answering, f.name) {
			continue
		}
		text, err := f.text.String(env)
		if err != nil {
			return nil, &factError{f.name, err}
		}
		env[f.name] = text
	}
	return env, nil
}

// parseBody reads a body of JSON, or the fields of a form in parts.
func parseBody(h http.Header, body []byte) (doc any, err error) {
	encoding := h.Get("Content-Encoding")
	switch {
	case encoding != "" && encoding != "identity":
		return nil, errors.New("its body is packed: send it as it is")
	case len(body) > maxBody:
		return nil, fmt.Errorf("its body has %d bytes: %d at most", len(body), maxBody)
	}
	kind, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if kind == "multipart/form-data" {
		doc, err = answer.ParseMultipart(body, params["boundary"])
	} else {
		doc, err = answer.ParseUnique(body)
	}
	if err != nil {
		return nil, fmt.Errorf("its body cannot be read: %w", err)
	}
	return doc, nil
}

// namesBody reports whether parseBody can read a body with this Content-Type.
func namesBody(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && (kind == "multipart/form-data" ||
		(kind == "application/json" || strings.HasSuffix(kind, "+json")) &&
			(charset == "" || strings.EqualFold(charset, "utf-8")))
}

// values are what the {names} of the method's route stand for in the request's path.
func (m Method) values(r *http.Request) map[string]string {
	path := r.URL.EscapedPath()
	for _, at := range m.routes {
		if values := at.values(path); values != nil {
			return values
		}
	}
	return map[string]string{}
}

// part is the bucket, or the part of it that the request is charged to.
func (q *Quote) part(bucket string) string {
	b := q.table.bucketNamed(bucket)
	name := bucket
	if len(b.Split) > 0 {
		var words []string
		for _, fact := range b.Split {
			text, _ := q.env[fact].(string)
			words = append(words, cmp.Or(text, "unknown"))
		}
		name += "/" + partName(strings.Join(words, "."))
	}
	q.names[bucket] = name
	return name
}

// maxPart is how many letters the name of a part has.
const maxPart = 63

// partLetters replaces what is not a lower-case letter, a digit, ".", "_", "-" or "/".
func partLetters(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', strings.ContainsRune("._-/", r):
			return r
		}
		return '-'
	}, strings.ToLower(text))
}

// partName makes the name of a part: lower-case letters, digits, ".", "_" and "-".
func partName(text string) string {
	text = strings.ReplaceAll(partLetters(text), "/", "-")
	if text = strings.TrimLeft(text, "._-"); text == "" {
		return "unknown"
	}
	return text[:min(len(text), maxPart)]
}

// keep lets go of what is not needed after the request.
func (q *Quote) keep() {
	held := map[string]float64{}
	for _, c := range q.Costs {
		whole, _, _ := strings.Cut(c.Bucket, "/")
		held[whole] = float64(c.Units)
	}
	for name := range formula.Quantiles() {
		delete(q.env, name)
	}
	for _, n := range q.table.numbers {
		delete(q.env, n.name)
	}
	for _, name := range []string{"body", "count", "header"} {
		delete(q.env, name)
	}
	q.env["held"] = held
}
