package dataset

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowFile is one shard in Arrow's IPC file format, its batches in zstd.
type arrowFile struct {
	rows  *array.RecordBuilder
	held  int64
	group int64
	out   *ipc.FileWriter
}

func newArrow(w io.Writer, o Options) (*arrowFile, error) {
	meta := arrow.MetadataFrom(o.Facts)
	schema := arrow.NewSchema(columns, &meta)
	out, err := ipc.NewFileWriter(w, ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return nil, err
	}
	return &arrowFile{array.NewRecordBuilder(memory.DefaultAllocator, schema), 0, o.GroupRows, out}, nil
}

func (a *arrowFile) Write(r *Row) error {
	addRow(a.rows, r)
	if a.held++; a.held < a.group {
		return nil
	}
	return a.flush()
}

func (a *arrowFile) flush() error {
	if a.held == 0 {
		return nil
	}
	a.held = 0
	batch := a.rows.NewRecordBatch()
	defer batch.Release()
	return a.out.Write(batch)
}

func (a *arrowFile) Close() error {
	defer a.rows.Release()
	if err := a.flush(); err != nil {
		return err
	}
	return a.out.Close()
}
