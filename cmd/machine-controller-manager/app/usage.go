// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/version"
)

// PrintUsage prints the help text.
func PrintUsage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprint(w, `Evenkeel's machine-controller-manager runs Gardener's controllers for MachineDeployments, MachineSets and machine safety,
unmodified, but they never act on a state older than their own writes. It replaces the stock binary: all stock flags have
the same meaning, and the lease is the same, so the two never work at the same time.

  machine-controller-manager --control-kubeconfig=control.yaml --target-kubeconfig=target.yaml --namespace=shoot--a--b
  machine-controller-manager --control-kubeconfig=inClusterConfig --target-kubeconfig=none

Flags:
`)
	fmt.Fprint(w, flags.FlagUsagesWrapped(120))
}

// Version returns the version on one line.
func Version() string { return version.Line(name) }
