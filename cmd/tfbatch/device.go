package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/cuda"
	"tfbatch/jobs"
	"tfbatch/metal"
)

// devices is the only place that names one. Auto takes the first that opens.
var devices = map[string]func(jobs.Run, cpu.ISA) (backend.Device, error){
	cpuDevice: func(r jobs.Run, isa cpu.ISA) (backend.Device, error) {
		return cpu.Open(cpu.Options{Threads: r.Threads, ISA: isa})
	},
	"cuda":  func(jobs.Run, cpu.ISA) (backend.Device, error) { return cuda.Open() },
	"metal": func(jobs.Run, cpu.ISA) (backend.Device, error) { return metal.Open() },
}

const cpuDevice = "cpu"

// automatic is what auto stands for until the other devices are faster.
const automatic = cpuDevice

// jobDevice opens the device of a job, for its arithmetic.
func jobDevice(j *jobs.Job, isa string) (backend.Device, error) {
	if j.Arithmetic == jobs.FMA {
		return openDevice(j.Run, isa)
	}
	if name := j.Run.Device; name != cpuDevice && name != jobs.Auto {
		return nil, fmt.Errorf("device %q does not have arithmetic %s; only %s has", name, j.Arithmetic, cpuDevice)
	}
	set, err := parseISA(isa)
	if err != nil {
		return nil, err
	}
	return cpu.Open(cpu.Options{Threads: j.Run.Threads, ISA: set, Int8: true})
}

func openDevice(r jobs.Run, isa string) (backend.Device, error) {
	set, err := parseISA(isa)
	if err != nil {
		return nil, err
	}
	name := r.Device
	if name == jobs.Auto {
		name = automatic
	}
	open, ok := devices[name]
	if !ok {
		return nil, fmt.Errorf("device %q is not supported; there are auto, %s", name, strings.Join(slices.Sorted(maps.Keys(devices)), ", "))
	}
	return open(r, set)
}

func parseISA(name string) (cpu.ISA, error) {
	var names []string
	for isa := cpu.Auto; isa <= cpu.Portable; isa++ {
		if isa.String() == name {
			return isa, nil
		}
		names = append(names, isa.String())
	}
	return cpu.Auto, fmt.Errorf("--isa is %q, want one of %s", name, strings.Join(names, ", "))
}
