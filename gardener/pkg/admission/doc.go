// SPDX-License-Identifier: Apache-2.0

// Package admission checks the providerConfig of Shoots in the garden cluster, by the same function
// as the extension in the seed.
package admission
