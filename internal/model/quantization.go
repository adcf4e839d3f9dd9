package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"tfbatch/quant"
)

// Quantization is what config.json of an MLX checkpoint says of its matrices. The zero value says that
// all are dense.
type Quantization struct {
	format  quant.Format            // of modules that have scales and no entry
	modules map[string]quant.Format // the entries; dense: not quantized
}

// howToConvert ends the refusal of every other way to quantize.
const howToConvert = `take the checkpoint that it was made from, in bf16, and let "tfbatch quantize" make it small`

// Quantization reads "quantization" and its copy "quantization_config", as mlx-lm writes them: bits,
// group_size and mode for all modules, and entries by module path for those that differ. The keys of
// other tools are refused by the tool's name.
func (f *Fields) Quantization() Quantization {
	const key, other = "quantization", "quantization_config"
	if method, ok := f.object(other)["quant_method"]; ok {
		f.Failf("%q has \"quant_method\" %s, which is not supported; %s", other, clip(method), howToConvert)
		return Quantization{}
	}
	q, again := f.readQuantization(key), f.readQuantization(other)
	switch {
	case !f.Has(other):
	case !f.Has(key):
		return again
	case q.format != again.format || !maps.Equal(q.modules, again.modules):
		f.Failf("%q and %q do not agree", key, other)
	}
	return q
}

func (f *Fields) readQuantization(key string) (q Quantization) {
	members := f.object(key)
	if members == nil {
		return q
	}
	q.format, q.modules = f.format(key, members), make(map[string]quant.Format)
	for _, name := range sortedKeys(members) {
		switch name {
		case "bits", "group_size", "mode":
			continue
		}
		switch raw := members[name]; {
		case string(raw) == "false":
			q.modules[name] = quant.Format{}
		case string(raw) == "true":
			q.modules[name] = q.format
		case raw[0] == '{':
			var own map[string]json.RawMessage
			_ = json.Unmarshal(raw, &own) // an object, as ReadFields has checked
			q.modules[name] = f.format(key+"."+clip([]byte(name)), own)
		default:
			f.Failf("%q has %q: %s, neither a setting that is known nor a module's", key, clip([]byte(name)), clip(raw))
		}
	}
	return q
}

// format reads bits, group_size and mode of the object under key.
func (f *Fields) format(key string, members map[string]json.RawMessage) quant.Format {
	const most = 1 << 10 // of either, beyond what quant knows
	own := &Fields{file: fmt.Sprintf("%s: %q", f.file, key), keys: members}
	format, err := quant.ParseFormat(own.StringOr("", "mode"), own.Int(1, most, "bits"), own.Int(1, most, "group_size"))
	if err != nil {
		own.Failf("%w", err)
	}
	f.err = cmp.Or(f.err, own.err)
	return format
}

// of is the format of a module, by its entry or by whether it has scales.
func (q Quantization) of(module string, scales bool) (quant.Format, error) {
	f, ok := q.modules[module]
	if !ok {
		f, ok = q.modules[strings.TrimPrefix(module, languageModel)]
	}
	if !ok && scales {
		f = q.format
	}
	switch {
	case scales && f.Kind != quant.Affine:
		return f, fmt.Errorf("%q has scales, but config.json does not quantize it", module)
	case !scales && f.Kind == quant.Affine:
		return f, fmt.Errorf("%q has no scales, but config.json makes it %v", module, f)
	}
	return f, nil
}
