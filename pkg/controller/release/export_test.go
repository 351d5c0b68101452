// SPDX-License-Identifier: Apache-2.0

package release

import "k8s.io/client-go/tools/cache"

// Interpose puts something between the preview and the pods that it is shown.
func (p *Preview) Interpose(between func(cache.Indexer) cache.Indexer) {
	p.c.stores.pods = between(p.c.stores.pods)
}
