// SPDX-License-Identifier: Apache-2.0

// Package admission checks the providerConfig of Shoots in the garden cluster, before Gardener stores
// it. It decides by the same function as the extension in the seed.
package admission
