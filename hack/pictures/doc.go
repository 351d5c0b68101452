// SPDX-License-Identifier: Apache-2.0

// Package pictures draws the pictures of the documents: from each docs/pictures/NAME.txt, make
// generate renders docs/pictures/NAME.svg.
//
// A text has one statement a line, and comments that begin with #.
//
//	title TEXT                        heading of the picture
//	desc TEXT                         description for screen readers; can be repeated
//	source PAGE ...                   pages with the measured times; a test compares them
//	size WIDTH HEIGHT                 in pixels
//	scale linear|log X1 X2 T1 T2      from here on, X can be a time between T1 and T2, such as 49ms
//
//	box COLOR X1 Y1 X2 Y2 [TEXT]      a box with centered text; the first line is bold
//	machines COLOR X Y COUNT          a row of machines
//	line COLOR X Y X Y [X Y ...]      a line through these points
//	arrow X Y X Y [X Y ...]           the same, with a head at the end
//	text|bold|note ALIGN X Y TEXT     ALIGN is left, middle or right of X
//	ticks Y1 Y2 TIME ...              vertical lines with their times below
//	times COLOR Y TIME ... : TEXT     a name, the measured times in words, and a dot for each
//
// Text breaks at " / ". COLOR is serve, reserve, leave, fail or plain. Y of text is its baseline.
package pictures
