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
var devices = map[string]func(cpu.Options) (backend.Device, error){
	cpuDevice: func(o cpu.Options) (backend.Device, error) { return cpu.Open(o) },
	"cuda":    func(cpu.Options) (backend.Device, error) { return cuda.Open() },
	"metal":   func(cpu.Options) (backend.Device, error) { return metal.Open() },
}

const cpuDevice = "cpu"

// automatic is what auto stands for until the other devices are faster.
const automatic = cpuDevice

// openDevice opens the device of a run for an arithmetic.
func openDevice(r jobs.Run, arithmetic jobs.Arithmetic, isa string) (backend.Device, error) {
	set, err := parseISA(isa)
	if err != nil {
		return nil, err
	}
	name := r.Device
	if name == jobs.Auto {
		name = automatic
	}
	open, ok := devices[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("device %q is not supported; there are auto, %s", name, strings.Join(slices.Sorted(maps.Keys(devices)), ", "))
	case arithmetic != jobs.FMA && name != cpuDevice:
		return nil, fmt.Errorf("device %q does not have arithmetic %s; only %s has", name, arithmetic, cpuDevice)
	}
	return open(cpu.Options{Threads: r.Threads, ISA: set, Int8: arithmetic == jobs.I8})
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
