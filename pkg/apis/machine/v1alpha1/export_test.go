// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// BoundsGrammar is the grammar of bounds as one expression, as the admission policy has it.
const BoundsGrammar = `^` + countPattern + `:` + countPattern + `(:(` +
	termPattern + `|` + amountPattern + `(,` + amountPattern + `)+|max\(` + termPattern + `(,` + termPattern + `)+\)))?$`

// AreBounds reports whether [ParseBounds] takes a text for bounds.
func AreBounds(text string) bool { return areBounds(strings.SplitN(text, ":", 3)) }
