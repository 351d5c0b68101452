// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the providerConfig of the extension evenkeel in a Shoot, of kind
// EvenkeelConfig. A field that this version does not know is an error.
package v1alpha1
