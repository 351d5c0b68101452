// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
)

// faint finds text with less contrast to what is behind it than WCAG's level AA asks: 4.5, or 3
// where it is large.
const faint = `(() => {
	const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});
	const rgba = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
		const v = c[i] / 255;
		return sum + weight * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	}, 0);
	const behind = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
	const found = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement, style = getComputedStyle(e);
		if (!walker.currentNode.data.trim() || e.closest("svg") || !e.checkVisibility()) continue;
		const [a, b] = [light(rgba(style.color)), light(behind(e))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5)) found.add(ratio.toFixed(2) + ": " + walker.currentNode.data.trim().slice(0, 40));
	}
	return [...found];
})()`

// Faint is text that is hard to read.
func (t *Tab) Faint(ctx context.Context) (found []string, err error) {
	return found, t.Evaluate(ctx, faint, &found)
}

// Nameless finds what a screen reader would come to and could not name: links, buttons, pictures,
// regions, tables' cells.
func (t *Tab) Nameless(ctx context.Context) ([]string, error) {
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			NodeID     string
		}
	}
	if err := t.browser.call(ctx, t.session, "Accessibility.getFullAXTree", object{}, &tree); err != nil {
		return nil, err
	}
	needed := map[string]bool{"link": true, "button": true, "image": true, "img": true, "region": true, "article": true, "columnheader": true, "rowheader": true, "RootWebArea": true}
	var found []string
	for _, n := range tree.Nodes {
		role := fmt.Sprint(n.Role.Value)
		if name, _ := n.Name.Value.(string); !n.Ignored && needed[role] && name == "" {
			found = append(found, role+" "+n.NodeID)
		}
	}
	return found, nil
}

// Press presses and lets go of a key without a character, such as Tab.
func (t *Tab) Press(ctx context.Context, key string, code int) error {
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		params := object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if err := t.browser.call(ctx, t.session, "Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}
