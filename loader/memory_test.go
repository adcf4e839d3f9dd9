package loader

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	large = flag.Bool("large", false, "also measure the memory of loading a checkpoint of 4 GiB, written to the temporary folder")
	child = flag.String("load", "", "load the checkpoint in this folder, print the process's peak memory and exit; for the memory tests")
)

// slack is what a load may take above two of the largest matrix: the runtime, headers, chunks.
const slack = 64 << 20

// TestMain lets the test binary run as a process that does nothing but load.
func TestMain(m *testing.M) {
	flag.Parse()
	if *child == "" {
		os.Exit(m.Run())
	}
	peak, err := loadAndMeasure(*child)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(peak)
}

func loadAndMeasure(path string) (peak int64, err error) {
	s, err := Open(Dir(path))
	if err != nil {
		return 0, err
	}
	if _, err := Load(context.Background(), s, everything()); err != nil {
		return 0, err
	}
	return peakMemory()
}

// peakMemory is the most this process ever had resident, in bytes.
func peakMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseInt(field, 10, 64)
	return kib << 10, err
}

func TestMemoryIsBoundedByTheLargestMatrix(t *testing.T) {
	measure(t, 192<<20, 8<<20)
}

func TestMemoryOfALargeCheckpoint(t *testing.T) {
	if !*large {
		t.Skip("run with -large: writes and reads 4 GiB")
	}
	measure(t, 4<<30, 128<<20)
}

// measure loads a checkpoint of at least total bytes in a process of its own, whose peak,
// code and runtime included, must stay below two of the largest matrix and the slack.
func measure(t *testing.T, total, largest int64) {
	if _, err := peakMemory(); err != nil {
		t.Skip("no peak memory on this system: ", err)
	}
	bound := 2*largest + slack
	if total <= bound {
		t.Fatalf("a checkpoint of %d bytes cannot show a bound of %d", total, bound)
	}
	path := t.TempDir()
	if err := Create(path, matrices(total, largest), total/5, fillNoise); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-load", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	peak, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB, largest matrix %d MiB: peak %d MiB of %d allowed, %.2f GB/s",
		total>>20, largest>>20, peak>>20, bound>>20, float64(total)/took.Seconds()/1e9)
	if peak > bound {
		t.Errorf("peak of %d bytes, allowed are %d", peak, bound)
	}
}

// matrices are as in a model: large ones, and between them smaller ones and vectors.
func matrices(total, largest int64) []Tensor {
	const cols = 1024
	var list []Tensor
	for sum, i := int64(0), 0; sum < total; i++ {
		for part, div := range []int64{1, 1, 4, 64} {
			rows := int(largest / div / cols / 2)
			list = append(list, Tensor{Name: fmt.Sprintf("layers.%d.%d", i, part), DType: BF16, Shape: []int{rows, cols}})
			sum += largest / div
		}
		list = append(list, Tensor{Name: fmt.Sprintf("layers.%d.norm", i), DType: BF16, Shape: []int{cols}})
	}
	return list
}

func fillNoise(t Tensor, w io.Writer) error {
	n, err := t.bytes()
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", t.Name)))), n)
	return err
}
