// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// Frame draws one screen: as many lines as fit from offset on, and a last line that counts the
// rest. It returns the offset, limited to what there is to see.
func Frame(v overview.Overview, style screen.Style, columns, lines, offset int) (string, int) {
	if columns < screen.Narrowest || lines < 3 {
		return home + clearBelow + fmt.Sprintf("needs %dx3", screen.Narrowest), 0
	}
	content := screen.Status(v, style)
	room := lines - 1
	offset = max(0, min(offset, len(content)-room))
	shown := content[offset:min(len(content), offset+room)]
	var b strings.Builder
	b.WriteString(home)
	for _, line := range shown {
		b.WriteString(clearLine + line + "\r\n")
	}
	for range room - len(shown) {
		b.WriteString(clearLine + "\r\n")
	}
	b.WriteString(clearBelow + reverse + style.Fit(footer(v, offset, len(shown), len(content)), columns) + plain)
	return b.String(), offset
}

// Escape sequences: to the upper left corner, and to clear the rest of a line and of the screen. After a
// text that fills a line, the cursor is still on its last character, and many terminals would clear that.
const (
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// Escape sequences: dark letters on a light ground, and as usual.
const (
	reverse = "\x1b[7m"
	plain   = "\x1b[0m"
)

// footer lists the keys, the number of problems, the position, and first of all that is missing what is
// old.
func footer(v overview.Overview, offset, shown, all int) string {
	text := "q quit  w machines"
	if shown < all {
		text += fmt.Sprintf("  j k space scroll  %d-%d of %d", offset+1, offset+shown, all)
	}
	if n := len(v.Troubles); n > 0 {
		text = fmt.Sprintf("%d wrong  ", n) + text
	}
	if len(v.Missing) > 0 {
		text += "  " + v.Missing[0]
	}
	return text
}
