package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cardName is where the Hub looks for a dataset's card.
const cardName = "README.md"

// Line is one fact of a card.
type Line struct{ Name, Value string }

// Card writes README.md: front matter by which load_dataset finds the shards, then what made them. The licence is the
// user's to choose. A card that is there is left alone: it may have been written by hand.
func (s *Set) Card(title string, facts []Line) error {
	var b strings.Builder
	fmt.Fprintf(&b, "---\npretty_name: %q\ntags:\n- synthetic\n- tfbatch\n", title)
	fmt.Fprintf(&b, "configs:\n- config_name: default\n  data_files:\n  - split: %s\n    path: %s/%s-*.%s\n---\n\n", s.o.Split, dataDir, s.o.Split, s.o.Format.ext())
	fmt.Fprintf(&b, "# %s\n\n| | |\n| --- | --- |\n", title)
	for _, f := range facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, cell(f.Value))
	}
	f, err := os.OpenFile(filepath.Join(s.dir, cardName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	if shut := f.Close(); err == nil {
		err = shut
	}
	return err
}

// cell is a value that cannot break out of its cell.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;").Replace(s)
}
