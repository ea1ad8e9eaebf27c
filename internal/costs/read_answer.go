package costs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// errorForm locates the reason in an error response.
type errorForm struct {
	message []string // paths of the message; the first that exists counts
	word    string   // path of the word of an error without a reason
	reasons []reasonPlace
	found   []found
	metric  *formula.Formula // the upstream's name of the exhausted bucket
	since   *formula.Formula // when the upstream's window began
}

// reasonPlace locates the reasons in an object, or in each item of a list.
type reasonPlace struct {
	items
	name, domain string // keys of an item
}

// items locates the objects at a path that meet a condition; nil is no condition.
type items struct {
	at    string
	where *formula.Formula
}

// found is a named object in expressions: the value at take in the first of the items.
type found struct {
	items
	name, take string
}

// learning is a rule for what responses report about a bucket.
type learning struct {
	bucket string
	where  *formula.Formula
	window quota.Window // of the limit; zero if the list has none

	limit, used, remaining, reset place
}

// place locates a value in a response: in a header, at a path in its JSON, or by an expression.
type place struct {
	header, path string
	policy       string // name of the item, in a header with several
	as           Form
	units        *formula.Formula
	after        time.Duration // fixed duration
}

// refusing is a rule for responses that refuse a call.
type refusing struct {
	statuses []statusRange // empty: any from 300 on
	where    *formula.Formula
	kind     Kind
	as       string
	bucket   string
	until    place
	window   bool // until the end of the bucket's window
}

// statusRange is a status or a class of them, such as 429 or 5xx.
type statusRange struct{ least, most int }

func (r *reader) errorForm(f fileErrors, at grammar.Place) {
	form := &r.table.errors
	form.message, form.word = f.Message, f.Word
	for i, w := range f.Reasons {
		form.reasons = append(form.reasons, reasonPlace{
			items: r.items(w.fileItems, at.Key("reasons").Item(i)),
			name:  cmp.Or(w.Name, "reason"), domain: cmp.Or(w.Domain, "domain")})
	}
	for _, e := range f.Found {
		at := at.Key("found").Key(e.key)
		r.free(e.key, at)
		form.found = append(form.found, found{items: r.items(e.value.fileItems, at), name: e.key,
			take: e.value.Take})
		r.scope.Found = append(r.scope.Found, e.key)
	}
	form.metric = r.expression(f.Metric, formula.Refused, formula.Text, at.Key("metric"))
	form.since = r.expression(f.Since, formula.Refused, formula.Text, at.Key("since"))
}

func (r *reader) items(f fileItems, at grammar.Place) items {
	return items{f.At, r.expression(f.Where, formula.Item, formula.Condition, at.Key("where"))}
}

func (r *reader) learning(f fileLearn, at grammar.Place) {
	r.knownBucket(f.Bucket, at.Key("bucket"))
	r.source(f.Source, at.Key("source"))
	l := learning{bucket: f.Bucket,
		where:     r.expression(f.Where, formula.Answer, formula.Condition, at.Key("where")),
		window:    window(f.Window, f.Timezone, at.Key("window")),
		limit:     r.amount(f.Limit, at.Key("limit")),
		used:      r.amount(f.Used, at.Key("used")),
		remaining: r.amount(f.Remaining, at.Key("remaining")),
	}
	if at.Has("reset") {
		l.reset = moment(f.Reset, at.Key("reset"))
	}
	switch {
	case at.Has("used") && !at.Has("limit"):
		at.Add("used needs a limit: write the place of it, or a number")
	case !at.Has("remaining") && !at.Has("used") && !at.Has("reset"):
		at.Add("write remaining or used, or reset")
	}
	r.table.learn = append(r.table.learn, l)
}

// amount returns the place of a number: a header, an expression, or a header or path with a form.
func (r *reader) amount(f filePlace, at grammar.Place) place {
	p := place{as: FormNumber}
	switch {
	case f == filePlace{}:
		return place{}
	case f.text == "":
		return f.place(FormNumber, at)
	case !f.number && headerForm.MatchString(f.text):
		p.header = f.text
	default:
		p.units = r.expression(f.text, formula.Answer, formula.Number, at)
	}
	return p
}

// moment returns the place of a time, whose form is required.
func moment(f filePlace, at grammar.Place) place {
	if f.As == "" || Form(f.As) == FormNumber {
		at.Add("as is missing: rfc3339, epoch, duration, seconds, millis or date")
	}
	return f.place("", at)
}

func (f filePlace) place(usual Form, at grammar.Place) place {
	if (f.Header == "") == (f.Path == "") {
		at.Add("write header or path, one of them")
	}
	return place{header: f.Header, path: f.Path, policy: f.Policy,
		as: cmp.Or(Form(f.As), usual)}
}

func (r *reader) refusing(f fileRefusal, at grammar.Place) {
	r.knownBucket(f.Bucket, at.Key("bucket"))
	r.source(f.Source, at.Key("source"))
	rule := refusing{kind: Kind(f.Kind), as: f.As, bucket: f.Bucket, statuses: statuses(f.Status),
		where: r.expression(f.Where, formula.Refused, formula.Condition, at.Key("where"))}
	switch until := f.Until.text; {
	case !at.Has("until"):
	case until == "window":
		rule.window = true
	case until != "":
		rule.until.after, _ = time.ParseDuration(until)
	default:
		rule.until = moment(f.Until, at.Key("until"))
	}
	for _, before := range r.table.refusals {
		if before.covers(rule) {
			at.Add("never applies: a rule before it is for the same statuses, and has no where")
			break
		}
	}
	r.table.refusals = append(r.table.refusals, rule)
}

// covers reports whether a rule applies to every response to which a later one applies.
func (f refusing) covers(later refusing) bool {
	if f.where != nil {
		return false
	}
	in := func(s statusRange) bool {
		return slices.ContainsFunc(f.statuses, func(of statusRange) bool {
			return of.least <= s.least && s.most <= of.most
		})
	}
	outside := func(s statusRange) bool { return !in(s) }
	return len(f.statuses) == 0 && !later.ofSuccess() ||
		len(later.statuses) > 0 && !slices.ContainsFunc(later.statuses, outside)
}

// statuses parses texts such as 429 and 5xx. The schema allows nothing else.
func statuses(list []string) (all []statusRange) {
	for _, text := range list {
		digits := strings.TrimSuffix(text, "xx")
		least, err := strconv.Atoi(digits)
		if err != nil {
			continue
		}
		most := least
		if digits != text {
			least, most = least*100, least*100+99
		}
		all = append(all, statusRange{least, most})
	}
	return all
}
