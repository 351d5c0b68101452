// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ReserveNameFor returns the name of a Reserve that a controller creates for a MachineDeployment: its
// name after a prefix, or a hash of it if that is too long.
func ReserveNameFor(prefix, deployment string) string {
	name := prefix + deployment
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(deployment))
		return prefix + hex.EncodeToString(sum[:])
	}
	return name
}
