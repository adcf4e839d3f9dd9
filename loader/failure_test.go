package loader

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// everything loads all tensors and keeps none.
func everything() Steps[[]byte] {
	return Steps[[]byte]{
		Want:   func(Tensor) bool { return true },
		Encode: func(_ Tensor, raw []byte) ([]byte, error) { return raw, nil },
		Upload: func(Tensor, []byte) error { return nil },
	}
}

// loadInBubble fails the test when Load leaves a goroutine behind.
func loadInBubble(t *testing.T, s *Snapshot, steps func(cancel context.CancelFunc) Steps[[]byte]) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err = Load(ctx, s, steps(cancel))
	})
	return err
}

func TestAnyErrorStopsEveryStep(t *testing.T) {
	s, err := Open(inMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for x := range s.All() {
		for _, step := range []string{"encode", "upload"} {
			uploads := 0
			err := loadInBubble(t, s, func(context.CancelFunc) Steps[[]byte] {
				steps := everything()
				fail := func(now Tensor, at string) error {
					if at == step && now.Name == x.Name {
						return broken
					}
					return nil
				}
				steps.Encode = func(now Tensor, raw []byte) ([]byte, error) { return raw, fail(now, "encode") }
				steps.Upload = func(now Tensor, _ []byte) error { uploads++; return fail(now, "upload") }
				return steps
			})
			want := x.Shard + `: tensor "` + x.Name + `": ` + step + ": broken"
			if !errors.Is(err, broken) || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if step == "upload" && s.byName[x.Name] != uploads-1 {
				t.Errorf("%d uploads, tensor %d failed", uploads, s.byName[x.Name])
			}
		}
	}
}

func TestCancelStopsEveryStep(t *testing.T) {
	s, err := Open(inMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]func(*Steps[[]byte], context.CancelFunc){
		"before anything is read": func(_ *Steps[[]byte], cancel context.CancelFunc) { cancel() },
		"while reading": func(s *Steps[[]byte], cancel context.CancelFunc) {
			s.Progress = func(int64) { cancel() }
		},
		"in encode": func(s *Steps[[]byte], cancel context.CancelFunc) {
			s.Encode = func(_ Tensor, raw []byte) ([]byte, error) { cancel(); return raw, nil }
		},
		"in upload, the reader out of buffers": func(s *Steps[[]byte], cancel context.CancelFunc) {
			s.Upload = func(Tensor, []byte) error { time.Sleep(time.Second); cancel(); return nil }
		},
	}
	for name, cancelIn := range places {
		t.Run(name, func(t *testing.T) {
			err := loadInBubble(t, s, func(cancel context.CancelFunc) Steps[[]byte] {
				steps := everything()
				cancelIn(&steps, cancel)
				return steps
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A tensor of gigabytes must not hold up the end of a run.
func TestCancelStopsWithinAChunk(t *testing.T) {
	huge := []Tensor{{Name: "huge", DType: U8, Shape: []int{4 * chunk}}}
	var file bytes.Buffer
	w, err := NewWriter(&file, huge)
	if err == nil {
		err = fillNoise(huge[0], w)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(fstest.MapFS{singleName: {Data: file.Bytes()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []bool{true, false} {
		var reads []int64
		err := loadInBubble(t, s, func(cancel context.CancelFunc) Steps[[]byte] {
			steps := everything()
			steps.Want = func(Tensor) bool { return wanted }
			steps.Progress = func(n int64) {
				if reads = append(reads, n); n == chunk {
					cancel()
				}
			}
			return steps
		})
		if !errors.Is(err, context.Canceled) || len(reads) != 2 {
			t.Errorf("wanted %v: read %d after a cancel in the second read: %v", wanted, reads, err)
		}
	}
}

func TestNothingIsUploadedAfterTheEnd(t *testing.T) {
	s, err := Open(inMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // encode's select takes either way when the reader of its channel waits too
		encodes, uploads := 0, 0
		err := loadInBubble(t, s, func(cancel context.CancelFunc) Steps[[]byte] {
			steps := everything()
			steps.Encode = func(_ Tensor, raw []byte) ([]byte, error) {
				if encodes++; encodes == 2 {
					time.Sleep(time.Second) // of the bubble: the first upload is over
					cancel()
				}
				return raw, nil
			}
			steps.Upload = func(Tensor, []byte) error { uploads++; return nil }
			return steps
		})
		if !errors.Is(err, context.Canceled) || uploads != 1 {
			t.Fatalf("%d uploads, cancelled before the second: %v", uploads, err)
		}
	}
}

// The bytes that Encode got must not move while Upload looks at them.
func TestBytesStayUntilUploadReturns(t *testing.T) {
	s, err := Open(inMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	err = loadInBubble(t, s, func(context.CancelFunc) Steps[[]byte] {
		steps := everything()
		steps.Upload = func(x Tensor, raw []byte) error {
			time.Sleep(time.Second) // of the bubble: returns once every other step is stuck
			if !bytes.Equal(raw, content(x)) {
				t.Errorf("tensor %q was overwritten", x.Name)
			}
			return nil
		}
		return steps
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangedShardsAreNoticed(t *testing.T) {
	replace := func(files fstest.MapFS, change func(*fstest.MapFile)) {
		f := *files[shard2]
		f.Data = bytes.Clone(f.Data)
		change(&f)
		files[shard2] = &f
	}
	tests := map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"gone": {func(files fstest.MapFS) { delete(files, shard2) }, "file does not exist"},
		"cut in its header": {func(files fstest.MapFS) {
			replace(files, func(f *fstest.MapFile) { f.Data = f.Data[:20] })
		}, "header: changed since it was opened: shorter than it was"},
		"cut in a tensor": {func(files fstest.MapFS) {
			replace(files, func(f *fstest.MapFile) { f.Data = f.Data[:len(f.Data)-2] })
		}, `tensor "mask": changed since it was opened: shorter`},
		"longer": {func(files fstest.MapFS) {
			replace(files, func(f *fstest.MapFile) { f.Data = append(f.Data, 0) })
		}, "longer than"},
		"another header": {func(files fstest.MapFS) {
			replace(files, func(f *fstest.MapFile) { f.Data = bytes.Replace(f.Data, []byte("U32"), []byte("I32"), 1) })
		}, "header: changed since it was opened"},
		"written to": {func(files fstest.MapFS) {
			replace(files, func(f *fstest.MapFile) { f.ModTime = f.ModTime.Add(time.Second) })
		}, "changed since it was opened"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := inMemory(t)
			s, err := Open(files)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(files)
			err = loadInBubble(t, s, func(context.CancelFunc) Steps[[]byte] { return everything() })
			if err == nil || !strings.HasPrefix(err.Error(), shard2+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// failingFS breaks off one file in the middle, as a disk does.
type failingFS struct {
	fs.FS
	name string
	left int
}

type failingFile struct {
	fs.File
	left int
}

var errDisk = errors.New("input/output error")

func (f failingFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || name != f.name {
		return file, err
	}
	return &failingFile{file, f.left}, nil
}

func (f *failingFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errDisk
	}
	n, err := f.File.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

func TestReadErrorsNameShardAndTensor(t *testing.T) {
	files := inMemory(t)
	whole, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	mask, _ := whole.Tensor("mask")
	s, err := Open(failingFS{files, shard2, int(mask.Offset) + 1})
	if err != nil {
		t.Fatal(err)
	}
	err = loadInBubble(t, s, func(context.CancelFunc) Steps[[]byte] { return everything() })
	if !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), shard2+`: tensor "mask": `) {
		t.Errorf("error %v", err)
	}
}
