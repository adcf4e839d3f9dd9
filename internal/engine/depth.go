package engine

import (
	"fmt"
	"strconv"
)

// Depth says how many guesses a lane may get in a round: 0 none, n up to n every time,
// or Auto.
type Depth int

// Auto lets the ledger give as many guesses as pay, which may be none.
const Auto Depth = -1

// mostDepth bounds a fixed depth. 31 guesses and the row before them are four 8-row tiles,
// past which no measured device checks another row cheaply.
const mostDepth = 31

// autoDepth is the most that Auto gives a lane: two 8-row tiles with the row before. Longer
// runs of right guesses gain little more, and every lane's share of the state grows with it.
const autoDepth = 15

func (d Depth) most() int {
	if d == Auto {
		return autoDepth
	}
	return int(d)
}

func (d Depth) check() error {
	if d < Auto || d > mostDepth {
		return fmt.Errorf("draft depth is %d: want 0 to %d, or Auto", int(d), mostDepth)
	}
	return nil
}

// String is the way a job writes it.
func (d Depth) String() string {
	switch d {
	case Auto:
		return "auto"
	case 0:
		return "off"
	}
	return "fixed:" + strconv.Itoa(int(d))
}
