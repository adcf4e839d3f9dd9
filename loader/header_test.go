package loader

import (
	"reflect"
	"strings"
	"testing"
)

func TestMetadataMayBeNull(t *testing.T) {
	if _, err := parseHeader([]byte(`{"__metadata__":null,"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}`), 1); err != nil {
		t.Error(err)
	}
}

func TestHeaderKeepsOrderOfBytes(t *testing.T) {
	raw := `{"__metadata__": {"format": "pt"}, "b": {"shape": [2, 3], "data_offsets": [4, 16], "dtype": "F16"},
		"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "none": {"dtype": "I8", "shape": [0], "data_offsets": [4, 4]}}   `
	got, err := parseHeader([]byte(raw), 16)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{
		{Name: "a", DType: F32, Offset: 0, Size: 4},
		{Name: "none", DType: I8, Shape: []int{0}, Offset: 4, Size: 0},
		{Name: "b", DType: F16, Shape: []int{2, 3}, Offset: 4, Size: 12},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBadHeadersAreRefused(t *testing.T) {
	entry := func(dtype, shape, offsets string) string {
		return `{"w": {"dtype": ` + dtype + `, "shape": ` + shape + `, "data_offsets": ` + offsets + `}}`
	}
	two := func(first, second string) string {
		return `{"v": {"dtype": "U8", "shape": [8], "data_offsets": ` + first + `}, "w": {"dtype": "U8", "shape": [8], "data_offsets": ` + second + `}}`
	}
	tests := []struct{ name, raw, want string }{
		{"empty", ``, "unexpected EOF"},
		{"not an object", `[]`, `"[" where "{" belongs`},
		{"cut", `{"w": {`, "unexpected EOF"},
		{"more after it", `{} {}`, "more follows"},
		{"zeros after it", "{}\x00", "more follows"},
		{"not UTF-8", "{\"\xff\": 1}", "header: not UTF-8"},
		{"half a surrogate pair", `{"w\ud800": {}}`, "the name is not UTF-8"},
		{"no name", `{"": {}}`, "1 to 512 bytes, this one 0"},
		{"long name", `{"` + strings.Repeat("w", 513) + `": {}}`, "1 to 512 bytes, this one 513"},
		{"a tensor twice", `{"w": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "w": {}}`, `key "w" is there twice`},
		{"a key twice", `{"w": {"dtype": "U8", "dtype": "U8"}}`, `tensor "w": key "dtype" is there twice`},
		{"unknown key", `{"w": {"Dtype": "U8"}}`, `tensor "w": "Dtype": key is not known`},
		{"missing key", `{"w": {"dtype": "U8", "shape": [16]}}`, "dtype, shape and data_offsets are needed"},
		{"metadata is text", `{"__metadata__": "pt"}`, `"pt" where "{" belongs`},
		{"metadata holds a number", `{"__metadata__": {"step": 3}}`, `"step": "3" is not a string`},
		{"null dtype", entry(`null`, `[16]`, `[0, 16]`), `"<nil>" is not a string`},
		{"F64", entry(`"F64"`, `[2]`, `[0, 16]`), `dtype "F64" is none of`},
		{"lower case dtype", entry(`"u8"`, `[16]`, `[0, 16]`), `dtype "u8" is none of`},
		{"rank", entry(`"U8"`, `[1,1,1,1,1,1,1,1,16]`, `[0, 16]`), "more than 8 numbers"},
		{"fraction", entry(`"U8"`, `[16.0]`, `[0, 16]`), `"16.0" is not a whole number`},
		{"minus", entry(`"U8"`, `[-16]`, `[0, 16]`), `"-16" is not a whole number`},
		{"text in shape", entry(`"U8"`, `["16"]`, `[0, 16]`), `"16" is not a whole number`},
		{"past 63 bits", entry(`"U8"`, `[9223372036854775808]`, `[0, 16]`), "is not a whole number"},
		{"product overflows", entry(`"U8"`, `[4294967296, 4294967296]`, `[0, 16]`), "overflows"},
		{"bytes overflow", entry(`"I64"`, `[2305843009213693952]`, `[0, 16]`), "overflows"},
		{"one offset", entry(`"U8"`, `[16]`, `[16]`), "are not a begin and an end"},
		{"three offsets", entry(`"U8"`, `[16]`, `[0, 8, 16]`), "more than 2 numbers"},
		{"offsets swapped", entry(`"U8"`, `[16]`, `[16, 0]`), "are not a begin and an end"},
		{"extent too small", entry(`"BF16"`, `[3, 4]`, `[0, 16]`), "data_offsets [0 16] hold 16 bytes, BF16 of shape [3 4] needs 24"},
		{"extent past the file", entry(`"U8"`, `[17]`, `[0, 17]`), "ends at 17, the file holds 16 bytes"},
		{"extent at the end of int64", entry(`"U8"`, `[1]`, `[9223372036854775806, 9223372036854775807]`), "belong to no tensor"},
		{"gap before", entry(`"U8"`, `[8]`, `[8, 16]`), `tensor "w" begins at 8, and bytes from 0 on belong to no tensor`},
		{"gap between", two(`[0, 8]`, `[9, 17]`), `tensor "w" begins at 9, and bytes from 8 on`},
		{"gap after", entry(`"U8"`, `[8]`, `[0, 8]`), "tensors end at 8, the file holds 16 bytes"},
		{"overlap", two(`[0, 8]`, `[4, 12]`), `tensor "w" begins at 4, inside tensor "v" that ends at 8`},
		{"same extent", two(`[0, 8]`, `[0, 8]`), `tensor "w" begins at 0, inside tensor "v"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseHeader([]byte(tt.raw), 16)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzHeader asks that an accepted header owns every byte once, and that the header
// written for its tensors is accepted as the same.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"b":{"dtype":"F32","shape":[],"data_offsets":[12,16]}}  `), int64(16))
	f.Add([]byte(`{"a":{"dtype":"I8","shape":[0,9223372036854775807],"data_offsets":[0,0]}}`), int64(0))
	f.Add([]byte(`{}`), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, size int64) {
		tensors, err := parseHeader(raw, size)
		if err != nil {
			return
		}
		var end int64
		for _, x := range tensors {
			if n, err := x.bytes(); err != nil || n != x.Size || x.Offset != end {
				t.Fatalf("%v follows byte %d and holds %d bytes: %v", x, end, n, err)
			}
			end += x.Size
		}
		again, n, err := makeHeader(tensors)
		if err != nil || n != size || end != size {
			t.Fatalf("written for %d of %d bytes: %v", n, size, err)
		}
		back, err := parseHeader(again, size)
		if err != nil || !reflect.DeepEqual(back, tensors) {
			t.Fatalf("came back as %v, was %v: %v", back, tensors, err)
		}
	})
}
