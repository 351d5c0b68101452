// SPDX-License-Identifier: Apache-2.0

// Package charts contains the charts of the extension.
package charts

import "embed"

const (
	// Extension is the folder of the chart for seeds, which gardenlet installs.
	Extension = "gardener-extension-evenkeel"
	// AdmissionRuntime and AdmissionApplication are the folders of the charts for the garden runtime
	// cluster and the virtual garden cluster, which gardener-operator installs.
	AdmissionRuntime     = "gardener-extension-admission-evenkeel-runtime"
	AdmissionApplication = "gardener-extension-admission-evenkeel-application"
)

// Files are the charts.
//
//go:embed all:gardener-extension-*
var Files embed.FS
