package metal

import (
	"errors"
	"testing"
)

func TestOpenRefusesByName(t *testing.T) {
	if dev, err := Open(); dev != nil || !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, %v; want no device and %v", dev, err, ErrUnsupported)
	}
}
