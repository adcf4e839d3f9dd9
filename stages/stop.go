package stages

import "strings"

// Stream decodes ids one by one. Push returns the text that id completes: never part of a
// rune, and nothing for a special token.
type Stream interface {
	Push(id int32) string
}

// stopper watches the text of one reply for stop strings.
type stopper struct {
	stream Stream
	stops  []string
	tail   string // the end of the text, as much as a stop string may begin in
	keep   int
	hit    bool
}

func newStopper(s Stream, stops []string) *stopper {
	longest := 0
	for _, stop := range stops {
		longest = max(longest, len(stop))
	}
	return &stopper{stream: s, stops: stops, keep: longest - 1}
}

// Push reports whether id completes a stop string.
func (s *stopper) Push(id int32) bool {
	s.tail += s.stream.Push(id)
	for _, stop := range s.stops {
		s.hit = s.hit || strings.Contains(s.tail, stop)
	}
	s.tail = s.tail[max(0, len(s.tail)-s.keep):]
	return s.hit
}

// cutStop cuts text at the first place where a stop string begins.
func cutStop(text string, stops []string) string {
	end := len(text)
	for _, stop := range stops {
		if at := strings.Index(text, stop); at >= 0 {
			end = min(end, at)
		}
	}
	return text[:end]
}
