// SPDX-License-Identifier: Apache-2.0

package release

import "k8s.io/client-go/tools/cache"

// Interpose puts something between the preview and the pods that it is shown.
func (p *Preview) Interpose(between func(cache.Indexer) cache.Indexer) {
	p.c.stores.pods = between(p.c.stores.pods)
}

// Fairly is how bounds are divided.
func Fairly(items []string, namespaceOf func(string) string, limit int) (taken, left []string) {
	return fairly(items, namespaceOf, limit)
}
