// Package feed updates the rows of a price list's table from public data sets of model prices.
package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

// MaxBytes is the maximum size of a feed. The largest has 2 MB.
const MaxBytes = 16 << 20

var bounds = untrusted.Bounds{Values: 1_000_000, Depth: 30, Items: 100_000, Text: 64 << 10}

// Model is the prices of one model, from the oldest to the newest.
type Model struct {
	ID     string   // in lower case
	Names  []string // its other names
	Prices []Price
}

// Price is what a model costs from a day on: dollars per million tokens, and limits in tokens, by
// the names of columnNames.
type Price struct {
	Since   string // 2026-12-01; "" for always
	Figures figures
	Bands   map[float64]figures // of prompts that are longer than so many tokens
}

type figures map[string]float64

// raise sets a figure to a price, unless it is higher. A table has one price for several kinds of
// tokens, such as texts and images, and the highest counts.
func (f figures) raise(name string, price float64) {
	price = rounded(price)
	if before, ok := f[name]; !ok || price > before || price < 0 {
		f[name] = price
	}
}

// Formats are the data sets that Parse knows.
var Formats = []string{"genai-prices", "models.dev", "litellm"}

// Parse reads a feed's models of the given providers. Format "" is detected.
func Parse(data []byte, format string, providers ...string) (models []Model, detected string, err error) {
	value, err := untrusted.Decode(data, bounds)
	bad, unusable := errors.AsType[*untrusted.Unusable](err)
	switch {
	case unusable:
		return nil, "", fmt.Errorf("%s %s", words.Clip(words.Plain(bad.Path)), bad.Problem)
	case err != nil:
		return nil, "", errors.New("it is not JSON, or cut short")
	}
	if format == "" {
		format = detect(value)
	}
	var known []string
	switch format {
	case "genai-prices":
		models, known, err = parseGenAI(data, providers)
	case "models.dev":
		models, known, err = parseModelsDev(data, providers)
	case "litellm":
		models, known, err = parseLiteLLM(data, providers)
	default:
		err = fmt.Errorf("its format is not one of %s", strings.Join(Formats, ", "))
	}
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other {
		err = errors.New("it is not a feed of the format " + format)
	}
	if err == nil && len(models) == 0 {
		slices.Sort(known)
		err = fmt.Errorf("it has no prices of %s%s", strings.Join(providers, " or "),
			words.DidYouMean(providers[0], slices.Compact(known)))
	}
	if err != nil {
		return nil, format, err
	}
	slices.SortFunc(models, func(a, b Model) int { return strings.Compare(a.ID, b.ID) })
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

// detect returns the format of a feed, by its first keys.
func detect(value any) string {
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

func (m Model) check() error {
	for _, p := range m.Prices {
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

// tiered is a price, or a base price with prices of longer prompts.
type tiered struct {
	Base  float64
	Tiers []struct{ Start, Price float64 }
}

func (t *tiered) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &t.Base) == nil {
		return nil
	}
	type plain tiered
	return json.Unmarshal(data, (*plain)(t))
}

var genAINames = map[string]string{"input_mtok": "input", "output_mtok": "output",
	"cache_read_mtok": "cache_read", "cache_write_mtok": "cache_write",
	"cache_write_1h_mtok": "cache_write_1h", "input_image_mtok": "input_image",
	"input_audio_mtok": "input_audio", "output_audio_mtok": "output_audio",
	"output_image_mtok": "output", "output_video_mtok": "output", "output_reasoning_mtok": "output"}

func parseGenAI(data []byte, providers []string) (models []Model, known []string, err error) {
	var feed []struct {
		ID     string
		Models []struct {
			ID            string
			ContextWindow float64 `json:"context_window"`
			Match         any
			Prices        json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &feed); err != nil {
		return nil, nil, err
	}
	for _, provider := range feed {
		known = append(known, provider.ID)
		if !slices.Contains(providers, provider.ID) {
			continue
		}
		for _, m := range provider.Models {
			model := Model{ID: strings.ToLower(m.ID), Names: genAIMatches(m.Match)}
			var dated []struct {
				Constraint map[string]any
				Prices     map[string]tiered
			}
			if json.Unmarshal(m.Prices, &dated) != nil {
				dated = slices.Grow(dated[:0], 1)[:1]
				if err := json.Unmarshal(m.Prices, &dated[0].Prices); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", words.Clip(m.ID), err)
				}
			}
			for _, d := range dated {
				since, ok := d.Constraint["start_date"].(string)
				if len(d.Constraint) > 0 && !ok {
					continue // a price of some hours of the day
				}
				model.Prices = append(model.Prices, genAIPrice(since, m.ContextWindow, d.Prices))
			}
			models = append(models, model)
		}
	}
	return models, known, nil
}

// genAIMatches returns the names that a rule such as {"or": [{"equals": "a"}]} matches.
func genAIMatches(rule any) (names []string) {
	switch of := rule.(type) {
	case []any:
		for _, item := range of {
			names = append(names, genAIMatches(item)...)
		}
	case map[string]any:
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

func genAIPrice(since string, context float64, prices map[string]tiered) Price {
	p := newPrice(since)
	p.limit("context", context)
	for key, name := range genAINames {
		if price, ok := prices[key]; ok {
			p.Figures.raise(name, price.Base)
			for _, tier := range price.Tiers {
				p.band(tier.Start).raise(name, tier.Price)
			}
		}
	}
	return p
}

func newPrice(since string) Price {
	return Price{since, figures{}, map[float64]figures{}}
}

func (p *Price) band(above float64) figures {
	if p.Bands[above] == nil {
		p.Bands[above] = figures{}
	}
	return p.Bands[above]
}

func (p *Price) limit(name string, tokens float64) {
	if tokens > 0 {
		p.Figures[name] = tokens
	}
}

// modelCost is the cost of models.dev.
type modelCost struct {
	Input, Output *float64
	CacheRead     *float64 `json:"cache_read"`
	CacheWrite    *float64 `json:"cache_write"`
	InputAudio    *float64 `json:"input_audio"`
	OutputAudio   *float64 `json:"output_audio"`
}

func (c modelCost) put(into figures) {
	for name, figure := range map[string]*float64{"input": c.Input, "output": c.Output,
		"cache_read": c.CacheRead, "cache_write": c.CacheWrite, "input_audio": c.InputAudio,
		"output_audio": c.OutputAudio} {
		if figure != nil {
			into.raise(name, *figure)
		}
	}
}

func parseModelsDev(data []byte, providers []string) (models []Model, known []string, err error) {
	var feed map[string]struct {
		Models map[string]struct {
			Cost *struct {
				modelCost
				Over200k *modelCost `json:"context_over_200k"`
				Tiers    []struct {
					modelCost
					Tier struct{ Size float64 }
				}
			}
			Limit struct{ Context, Output float64 }
		}
	}
	if err := json.Unmarshal(data, &feed); err != nil {
		return nil, nil, err
	}
	for provider, of := range feed {
		known = append(known, provider)
		if !slices.Contains(providers, provider) {
			continue
		}
		for id, m := range of.Models {
			if m.Cost == nil {
				continue
			}
			p := newPrice("")
			p.limit("context", m.Limit.Context)
			p.limit("max_output", m.Limit.Output)
			m.Cost.put(p.Figures)
			for _, tier := range m.Cost.Tiers {
				tier.put(p.band(tier.Tier.Size))
			}
			if m.Cost.Over200k != nil && len(m.Cost.Tiers) == 0 {
				m.Cost.Over200k.put(p.band(200_000))
			}
			models = append(models, Model{ID: strings.ToLower(id), Prices: []Price{p}})
		}
	}
	return models, known, nil
}

// liteLLMForm matches the names of prices per token, for all prompts or only long ones.
var liteLLMForm = regexp.MustCompile(`^(input_cost_per_token|output_cost_per_token|` +
	`cache_read_input_token_cost|cache_creation_input_token_cost|` +
	`cache_creation_input_token_cost_above_1hr|input_cost_per_audio_token|` +
	`output_cost_per_audio_token|input_cost_per_image_token|output_cost_per_image_token)(?:_above_(\d+)k_tokens)?$`)

var liteLLMNames = map[string]string{"input_cost_per_token": "input",
	"output_cost_per_token": "output", "cache_read_input_token_cost": "cache_read",
	"cache_creation_input_token_cost":           "cache_write",
	"cache_creation_input_token_cost_above_1hr": "cache_write_1h",
	"input_cost_per_audio_token":                "input_audio",
	"output_cost_per_audio_token":               "output_audio",
	"input_cost_per_image_token":                "input_image",
	"output_cost_per_image_token":               "output"}

func parseLiteLLM(data []byte, providers []string) (models []Model, known []string, err error) {
	var feed map[string]map[string]any
	if err := json.Unmarshal(data, &feed); err != nil {
		return nil, nil, err
	}
	byID := map[string]Price{}
	for _, id := range slices.Sorted(maps.Keys(feed)) {
		m := feed[id]
		provider, _ := m["litellm_provider"].(string)
		known = append(known, provider)
		if !slices.Contains(providers, provider) || m["input_cost_per_token"] == nil ||
			strings.HasPrefix(id, "ft:") {
			continue
		}
		p := newPrice("")
		for key, value := range m {
			name, figure := liteLLMForm.FindStringSubmatch(key), 0.0
			if figure, _ = value.(float64); name == nil {
				continue
			}
			into := p.Figures
			if name[2] != "" {
				thousands, _ := strconv.ParseFloat(name[2], 64)
				into = p.band(1000 * thousands)
			}
			into.raise(liteLLMNames[name[1]], figure*1e6)
		}
		for key, name := range map[string]string{"max_input_tokens": "context",
			"max_output_tokens": "max_output"} {
			tokens, _ := m[key].(float64)
			p.limit(name, tokens)
		}
		// it has some models as a, maker/a and other-maker/a
		id = strings.ToLower(strings.TrimPrefix(id, provider+"/"))
		if same, ok := byID[id]; !ok || p.Figures["input"] > same.Figures["input"] {
			byID[id] = p
		}
	}
	for id, p := range byID {
		models = append(models, Model{ID: id, Prices: []Price{p}})
	}
	return models, known, nil
}
