package engine

import (
	"fmt"
	"strconv"
)

// Depth says how many guesses a lane may get in a round: 0 none, n up to n every time.
type Depth int

// mostDepth bounds a fixed depth. 31 guesses and the row before them are four 8-row tiles,
// past which no measured device checks another row cheaply.
const mostDepth = 31

func (d Depth) most() int { return int(d) }

func (d Depth) check() error {
	if d < 0 || d > mostDepth {
		return fmt.Errorf("draft depth is %d: want 0 to %d", int(d), mostDepth)
	}
	return nil
}

// String is the way a job writes it.
func (d Depth) String() string {
	if d == 0 {
		return "off"
	}
	return "fixed:" + strconv.Itoa(int(d))
}
