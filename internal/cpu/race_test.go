//go:build race

package cpu

const raced = true
