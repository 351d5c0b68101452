// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
)

// seedReserves is the CRD of Reserves in the chart of the Gardener extension.
const seedReserves = "gardener/charts/gardener-extension-evenkeel/templates/crd-reserves.yaml"

// generateSeedReserves copies the CRD of Reserves for seeds, where it stays when the extension leaves.
func generateSeedReserves(out string) error {
	text, err := os.ReadFile(filepath.Join(out, crds, "autoscaling.evenkeel.dev_reserves.yaml"))
	if err != nil {
		return err
	}
	const annotations = "  annotations:\n"
	kept := strings.Replace(string(text), annotations, annotations+"    resources.gardener.cloud/keep-object: \"true\"\n", 1)
	return writeFile(filepath.Join(out, seedReserves), []byte("# Made from "+crds+" by make generate.\n"+kept))
}
