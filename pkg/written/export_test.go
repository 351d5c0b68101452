// SPDX-License-Identifier: Apache-2.0

package written

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Held is how many answers a cache holds, those that are out of date included.
func Held[T metav1.Object](c *Cache[T]) int { return len(c.answers) }
