package engine

import (
	"reflect"
	"testing"
)

// TestSinceTakesEveryCounter holds that no counter is forgotten, whichever are added.
func TestSinceTakesEveryCounter(t *testing.T) {
	var was, now Stats
	count(reflect.ValueOf(&was).Elem(), 3)
	count(reflect.ValueOf(&now).Elem(), 10)
	var want Stats
	count(reflect.ValueOf(&want).Elem(), 7)
	if got := now.Since(was); got != want {
		t.Errorf("got %+v, want 7 everywhere", got)
	}
}

// count sets every number in v to n.
func count(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			count(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			count(v.Index(i), n)
		}
	default:
		v.SetInt(n)
	}
}
