package costs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

// MaxFeed is the maximum size in bytes of a feed, a public data set of model prices. The largest
// has 2 MB.
const MaxFeed = 16 << 20

var feedBounds = untrusted.Bounds{Values: 1_000_000, Depth: 30, Items: 100_000, Text: 64 << 10}

// FeedModel is the prices of one model, from the oldest to the newest.
type FeedModel struct {
	ID     string   // in lower case
	Names  []string // its other names
	Prices []FeedPrice
}

// FeedPrice is what a model costs from a day on: dollars per million tokens, and limits in tokens,
// by the names of columnNames.
type FeedPrice struct {
	Since   string // 2026-12-01; "" for always
	Figures figures
	Bands   map[float64]figures // by the number of tokens that prompts must exceed
}

type figures map[string]float64

// raise sets a figure to a price, unless it is higher already. A table has one price for several
// kinds of tokens, such as text and images: the highest one.
func (f figures) raise(name string, price float64) {
	price = rounded(price)
	if before, ok := f[name]; !ok || price > before || price < 0 {
		f[name] = price
	}
}

// FeedFormats are the data sets that ParseFeed reads.
var FeedFormats = []string{"genai-prices", "models.dev", "litellm"}

// ParseFeed reads a feed's models of the given providers. Format "" is detected.
func ParseFeed(data []byte, format string, providers ...string) (
	models []FeedModel, detected string, err error) {
	value, err := untrusted.Decode(data, feedBounds)
	bad, unusable := errors.AsType[*untrusted.Unusable](err)
	switch {
	case unusable:
		return nil, "", fmt.Errorf("%s %s", words.Clip(words.Plain(bad.Path)), bad.Problem)
	case err != nil:
		return nil, "", errors.New("it is not JSON, or cut short")
	}
	if format == "" {
		format = detectFeed(value)
	}
	d := feedReader{providers: providers}
	read := map[string]func(any){"genai-prices": d.genAI, "models.dev": d.modelsDev,
		"litellm": d.liteLLM}[format]
	if read == nil {
		return nil, format, fmt.Errorf("its format is not one of %s", strings.Join(FeedFormats, ", "))
	}
	read(value)
	switch models = d.models; {
	case d.mistyped:
		return nil, format, errors.New("it is not a feed of the format " + format)
	case len(models) == 0:
		slices.Sort(d.available)
		return nil, format, fmt.Errorf("it has no prices of %s%s", strings.Join(providers, " or "),
			words.DidYouMean(providers[0], slices.Compact(d.available)))
	}
	slices.SortFunc(models, func(a, b FeedModel) int { return strings.Compare(a.ID, b.ID) })
	for i, m := range models {
		if i > 0 && m.ID == models[i-1].ID {
			return nil, format, fmt.Errorf("%s appears twice", words.Clip(m.ID))
		}
		if err := m.check(); err != nil {
			return nil, format, err
		}
	}
	return models, format, nil
}

// detectFeed returns the format of a feed, by its first keys.
func detectFeed(value any) string {
	object, _ := value.(map[string]any)
	for _, entry := range object {
		provider, _ := entry.(map[string]any)
		switch {
		case provider["models"] != nil:
			return "models.dev"
		case provider["litellm_provider"] != nil:
			return "litellm"
		}
	}
	if list, _ := value.([]any); len(list) > 0 {
		return "genai-prices"
	}
	return ""
}

func (m FeedModel) check() error {
	for _, p := range m.Prices {
		if _, err := time.Parse(time.DateOnly, p.Since); p.Since != "" && err != nil {
			return fmt.Errorf("%s: %s is not a day such as 2026-12-01", words.Clip(m.ID),
				words.Clip(words.Plain(p.Since)))
		}
		all := slices.Collect(maps.Values(p.Bands))
		for _, figures := range append(all, p.Figures) {
			for name, figure := range figures {
				if !(figure >= 0 && figure <= 1e9) {
					return fmt.Errorf("%s: %s is %g: it must be 0 to a billion", words.Clip(m.ID), name,
						figure)
				}
			}
		}
	}
	return nil
}

// rounded drops the noise of figures such as 0.049999999999999996.
func rounded(figure float64) float64 {
	if figure == 0 || math.IsInf(figure, 0) {
		return figure
	}
	scale := math.Pow(10, 9-math.Ceil(math.Log10(math.Abs(figure))))
	return math.Round(figure*scale) / scale
}

type object = map[string]any

// feedReader collects the models of some providers from the JSON of a feed.
type feedReader struct {
	providers []string
	available []string // all providers in the feed
	models    []FeedModel
	mistyped  bool // a value has a type that the format does not have
}

// has reports whether a provider is one of those to collect.
func (d *feedReader) has(provider string) bool {
	d.available = append(d.available, provider)
	return slices.Contains(d.providers, provider)
}

// add adds a model. It ignores an ID and names that end with *, because a row of that key applies
// to every model with the prefix.
func (d *feedReader) add(id string, names []string, prices ...FeedPrice) {
	isPattern := func(name string) bool { return strings.HasSuffix(name, "*") }
	if !isPattern(id) {
		names = slices.DeleteFunc(names, isPattern)
		d.models = append(d.models, FeedModel{strings.ToLower(id), names, prices})
	}
}

// valueAs returns a value as a T, or zero if there is none.
func valueAs[T any](d *feedReader, value any) T {
	typed, ok := value.(T)
	d.mistyped = d.mistyped || value != nil && !ok
	return typed
}

// number returns a required number: the feed is mistyped if it is missing.
func (d *feedReader) number(value any) float64 {
	d.mistyped = d.mistyped || value == nil
	return valueAs[float64](d, value)
}

// price returns a FeedPrice with the limits at the keys of a model.
func (d *feedReader) price(since string, limits object, context, output string) FeedPrice {
	p := FeedPrice{since, figures{}, map[float64]figures{}}
	for name, key := range map[string]string{"context": context, "max_output": output} {
		if tokens := valueAs[float64](d, limits[key]); tokens > 0 {
			p.Figures[name] = tokens
		}
	}
	return p
}

// band returns the figures of prompts above a length.
func (p *FeedPrice) band(above float64) figures {
	if p.Bands[above] == nil {
		p.Bands[above] = figures{}
	}
	return p.Bands[above]
}

var genAINames = map[string]string{"input_mtok": "input", "output_mtok": "output",
	"cache_read_mtok": "cache_read", "cache_write_mtok": "cache_write",
	"cache_write_1h_mtok": "cache_write_1h", "input_image_mtok": "input_image",
	"input_audio_mtok": "input_audio", "output_audio_mtok": "output_audio",
	"output_image_mtok": "output", "output_video_mtok": "output", "output_reasoning_mtok": "output"}

func (d *feedReader) genAI(feed any) {
	for _, item := range valueAs[[]any](d, feed) {
		provider := valueAs[object](d, item)
		if !d.has(valueAs[string](d, provider["id"])) {
			continue
		}
		for _, item := range valueAs[[]any](d, provider["models"]) {
			m := valueAs[object](d, item)
			if m["prices"] == nil {
				continue
			}
			dated, several := m["prices"].([]any)
			if !several {
				dated = []any{object{"prices": m["prices"]}}
			}
			var prices []FeedPrice
			for _, item := range dated {
				price := valueAs[object](d, item)
				constraint := valueAs[object](d, price["constraint"])
				since, ok := constraint["start_date"].(string)
				if len(constraint) > 0 && !ok {
					continue // a price of some hours of the day
				}
				p := d.price(since, m, "context_window", "")
				d.genAIPrices(&p, valueAs[object](d, price["prices"]))
				prices = append(prices, p)
			}
			d.add(valueAs[string](d, m["id"]), genAIMatches(m["match"]), prices...)
		}
	}
}

// genAIPrices reads prices, or base prices with prices of longer prompts.
func (d *feedReader) genAIPrices(p *FeedPrice, prices object) {
	for key, name := range genAINames {
		tiered, ok := prices[key].(object)
		switch {
		case prices[key] == nil:
			continue
		case !ok:
			tiered = object{"base": prices[key]}
		}
		p.Figures.raise(name, d.number(tiered["base"]))
		for _, item := range valueAs[[]any](d, tiered["tiers"]) {
			tier := valueAs[object](d, item)
			p.band(d.number(tier["start"])).raise(name, d.number(tier["price"]))
		}
	}
}

// genAIMatches returns the names that a rule such as {"or": [{"equals": "a"}]} matches.
func genAIMatches(rule any) (names []string) {
	switch of := rule.(type) {
	case []any:
		for _, item := range of {
			names = append(names, genAIMatches(item)...)
		}
	case object:
		for key, value := range of {
			if name, ok := value.(string); ok && (key == "equals" || key == "starts_with") {
				names = append(names, strings.ToLower(name))
			} else if key == "or" {
				names = append(names, genAIMatches(value)...)
			}
		}
	}
	return names
}

var modelsDevNames = []string{"input", "output", "cache_read", "cache_write", "input_audio",
	"output_audio"}

func (d *feedReader) modelsDev(feed any) {
	raise := func(into figures, cost object) {
		for _, name := range modelsDevNames {
			if cost[name] != nil {
				into.raise(name, valueAs[float64](d, cost[name]))
			}
		}
	}
	for provider, value := range valueAs[object](d, feed) {
		if !d.has(provider) {
			continue
		}
		for id, value := range valueAs[object](d, valueAs[object](d, value)["models"]) {
			m := valueAs[object](d, value)
			cost := valueAs[object](d, m["cost"])
			if cost == nil {
				continue
			}
			p := d.price("", valueAs[object](d, m["limit"]), "context", "output")
			raise(p.Figures, cost)
			tiers := valueAs[[]any](d, cost["tiers"])
			for _, item := range tiers {
				tier := valueAs[object](d, item)
				raise(p.band(d.number(valueAs[object](d, tier["tier"])["size"])), tier)
			}
			if long := valueAs[object](d, cost["context_over_200k"]); long != nil && len(tiers) == 0 {
				raise(p.band(200_000), long)
			}
			d.add(id, nil, p)
		}
	}
}

// liteLLMForm splits the name of a price per token, for all prompts or only long ones.
var liteLLMForm = regexp.MustCompile(`^(.+?)(?:_above_(\d+)k_tokens)?$`)

var liteLLMNames = map[string]string{"input_cost_per_token": "input",
	"output_cost_per_token": "output", "cache_read_input_token_cost": "cache_read",
	"cache_creation_input_token_cost":           "cache_write",
	"cache_creation_input_token_cost_above_1hr": "cache_write_1h",
	"input_cost_per_audio_token":                "input_audio",
	"output_cost_per_audio_token":               "output_audio",
	"input_cost_per_image_token":                "input_image",
	"output_cost_per_image_token":               "output"}

func (d *feedReader) liteLLM(feed any) {
	entries := valueAs[object](d, feed)
	byID := map[string]FeedPrice{}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		m := valueAs[object](d, entries[id])
		provider, _ := m["litellm_provider"].(string)
		if !d.has(provider) || m["input_cost_per_token"] == nil || strings.HasPrefix(id, "ft:") {
			continue
		}
		p := d.price("", object{}, "", "")
		for key, value := range m {
			part := liteLLMForm.FindStringSubmatch(key)
			figure, _ := value.(float64)
			name := liteLLMNames[part[1]]
			switch thousands, err := strconv.ParseFloat(part[2], 64); {
			case key == "max_input_tokens" && figure > 0:
				p.Figures["context"] = figure
			case key == "max_output_tokens" && figure > 0:
				p.Figures["max_output"] = figure
			case name == "", value == nil:
			case err == nil:
				p.band(1000*thousands).raise(name, d.number(value)*1e6)
			default:
				p.Figures.raise(name, d.number(value)*1e6)
			}
		}
		// it has some models as a, maker/a and other-maker/a
		id = strings.ToLower(strings.TrimPrefix(id, provider+"/"))
		if same, ok := byID[id]; !ok || p.Figures["input"] > same.Figures["input"] {
			byID[id] = p
		}
	}
	for id, p := range byID {
		d.add(id, nil, p)
	}
}
