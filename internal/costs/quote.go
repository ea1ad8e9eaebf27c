package costs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Learned returns a quantile of the units that calls priced the same way used from a bucket, beyond
// the certain units. It returns false while too few calls are known.
type Learned func(priced, bucket string, percentile int) (units int64, ok bool)

// Quote is the price of a request, as far as it is known before the request is sent.
type Quote struct {
	Method string
	// Costs are the units by bucket or part, possibly estimates (see quota.Cost). They are 0 if the
	// call takes nothing from a bucket that other calls of the method take from.
	Costs []quota.Cost
	Known bool        // Costs are final: charge them, do not settle
	Lapse quota.Lapse // what happens to a hold that is never settled
	TTL   time.Duration
	// Unlisted are the facts without their own row in the list.
	Unlisted []Unlisted
	// Priced names the facts of the request that set the price, such as the model and the tier. It
	// is empty if there are none.
	Priced string
	// Certain is the minimum cost of the call, by bucket.
	Certain map[string]int64

	table *Table
	rules *rules            // nil if the price is known
	env   variables         // variables from the request
	names map[string]string // names of the parts, by bucket
}

// NeedsBody reports whether the price of the method depends on the body of its request.
func (t *Table) NeedsBody(method string) bool { return t.methods[method].needsBody }

// Quote returns the price of a request that calls the method. The body may be nil unless NeedsBody.
// learned may be nil.
func (t *Table) Quote(method string, r *http.Request, body []byte, learned Learned) (Quote, error) {
	m, ok := t.methods[method]
	if !ok {
		_, err := t.Lookup(method)
		return Quote{}, err
	}
	var doc any
	if m.needsJSON && len(body) > 0 {
		var err error
		if doc, err = parseBody(r.Header, body); err != nil {
			return Quote{}, &PriceError{Method: method, Err: err}
		}
	}
	q, err := t.quote(r.Context(), m, r, doc, len(body), learned)
	if err != nil {
		return Quote{}, err
	}
	q.keep()
	return q, nil
}

// quote prices a request with a parsed body.
func (t *Table) quote(ctx context.Context, m Method, r *http.Request, doc any, size int,
	learned Learned) (q Quote, err error) {
	q = Quote{Method: m.ID, Known: m.rules == nil, Lapse: quota.LapseCharge, TTL: defaultTTL,
		table: t, rules: m.rules, names: map[string]string{}}
	lines, err := t.linesOf(ctx, m, doc)
	if err == nil {
		q.env, err = t.request(m, r, doc, size, lines)
	}
	if err != nil {
		return Quote{}, &PriceError{Method: m.ID, Err: err}
	}
	if m.rules == nil {
		for _, c := range m.Costs {
			q.Costs = append(q.Costs, quota.Cost{Bucket: q.part(c.Bucket), Units: c.Units})
		}
	} else {
		q.Lapse, q.TTL = m.rules.lapse, m.rules.ttl
		q.Unlisted = q.unlisted(q.env, "")
		q.Priced, q.Certain = q.priced(m.facts), map[string]int64{}
		if bucket, err := q.price(m, learned); err != nil {
			if lines.Refused != "" {
				err = errors.New(lines.Refused)
			}
			return Quote{}, &PriceError{m.ID, bucket, err}
		}
	}
	return q, nil
}

// Unlisted is a fact of a call without its own row in a table, such as a model without a price.
type Unlisted struct{ Table, Fact, Value string }

// Name returns the value as the name of a bucket's part.
func (u Unlisted) Name() string { return partName(u.Value) }

// unlisted returns the facts in env, or the named fact, that have no row in the tables of the
// price.
func (q *Quote) unlisted(env variables, fact string) (all []Unlisted) {
	for _, p := range q.table.tables {
		if p.warn == "" || fact != "" && fact != p.warn || q.rules == nil || !q.rules.use(p.Name) {
			continue
		}
		value, _ := env[p.warn].(string)
		day, _ := env[dayVariable].(string)
		if _, listed, _ := p.Find(value, day); !listed && value != "" {
			all = append(all, Unlisted{p.Name, p.warn, words.Clip(value)})
		}
	}
	return all
}

// useResponse replaces facts of the request by facts of the response, which names the billed model.
// A name without a row does not replace one with a row, because it may be another spelling.
func (q *Quote) useResponse(env variables, out *Outcome) {
	for _, f := range q.table.facts {
		asked, used := env[f.name].(string)
		if !used || f.Response == nil {
			continue
		}
		text, err := f.Response.String(env)
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

// price evaluates the costs of a request. On an error it returns the bucket or number that failed.
func (q *Quote) price(m Method, learned Learned) (bucket string, err error) {
	for _, n := range m.numbers {
		if q.env[n.key], err = n.value.Value(q.env); err != nil {
			return n.key, err
		}
	}
	for _, a := range q.rules.takes {
		units, err := a.value.Units(q.env)
		if err != nil {
			return a.key, err
		}
		if units > 0 {
			q.Costs = append(q.Costs, quota.Cost{Bucket: q.part(a.key), Units: units})
		}
	}
	for _, h := range q.rules.holds {
		cost, err := q.estimate(h, learned)
		if err != nil {
			return h.bucket, err
		}
		q.Costs = append(q.Costs, cost)
	}
	i := slices.IndexFunc(q.Costs, func(c quota.Cost) bool {
		return q.rules.settles[quota.WholeOf(c.Bucket)] != nil
	})
	if i >= 0 && len(q.Held()) == 0 {
		q.Costs[i].Units = 1 // hold something, because only a hold can be settled
	}
	return "", nil
}

// Held returns the costs above 0, which a ledger charges or holds.
func (q *Quote) Held() []quota.Cost {
	return slices.DeleteFunc(slices.Clone(q.Costs), func(c quota.Cost) bool { return c.Units == 0 })
}

// estimate returns the units to hold: at least 1, unless the call can take nothing. Until enough
// calls with the same price are known, it returns the call's maximum.
func (q *Quote) estimate(h holding, learned Learned) (cost quota.Cost, err error) {
	cost.Bucket = q.part(h.bucket)
	for name := range quantiles {
		q.env[name] = math.Inf(1)
	}
	if cost.Most, err = cmp.Or(h.Most, h.Estimate).Units(q.env); err != nil {
		return cost, err
	}
	var certain int64
	if h.Certain != nil {
		if certain, err = h.Certain.Units(q.env); err != nil {
			return cost, err
		}
	}
	certain = min(certain, cost.Most)
	q.Certain[cost.Bucket], cost.Units = certain, cost.Most
	if q.learn(h, cost.Bucket, certain, learned) {
		if cost.Units, err = h.Estimate.Units(q.env); err != nil {
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

// learn adds the quantiles that a hold uses to the environment. It returns false if one is not
// known yet.
func (q *Quote) learn(h holding, bucket string, certain int64, learned Learned) bool {
	for name, percentile := range quantiles {
		if !h.Estimate.Uses(name) {
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

// keep drops the variables that are only needed while the request is priced.
func (q *Quote) keep() {
	held, most := map[string]float64{}, map[string]float64{}
	for _, c := range q.Costs {
		whole := quota.WholeOf(c.Bucket)
		held[whole], most[whole] = float64(c.Units), float64(max(c.Units, c.Most))
	}
	for name := range quantiles {
		delete(q.env, name)
	}
	for _, n := range q.table.numbers {
		delete(q.env, n.key)
	}
	for _, name := range []string{"body", "count", "header", "lines"} {
		delete(q.env, name)
	}
	q.env["held"], q.env["most"] = held, most
}

// priced names the facts of the request in a form that fits into a label. A digest replaces facts
// that are too long.
func (q *Quote) priced(facts []string) string {
	var words []string
	for _, f := range q.table.facts {
		if slices.Contains(facts, f.name) {
			text, _ := q.env[f.name].(string)
			words = append(words, cmp.Or(text, "-"))
		}
	}
	text := strings.Join(words, "/")
	name := partLetters(text)
	if len(name) > maxPart {
		sum := sha256.Sum256([]byte(text))
		name = name[:maxPart-13] + "-" + hex.EncodeToString(sum[:6])
	}
	return name
}

// Model returns the model in the request, or "" if its price does not depend on a model.
func (q Quote) Model() string {
	model, _ := q.env[modelFact].(string)
	return model
}

// part returns the bucket, or the part of it that the request is charged to.
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

// maxPart is the maximum number of letters in the name of a part.
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
