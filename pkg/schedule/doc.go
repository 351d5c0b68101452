// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when a schedule is active. A [Cron] is a recurring time. A [Window]
// lasts from each start until the next end, or for a duration.
//
// All answers depend only on the text of the schedule and the given instant. The package remembers
// nothing, so a start that was missed during an outage counts at the next evaluation, for the time
// that is left.
//
// Laws. The tests cite them by number.
//
//  1. A cron time has five fields: minute, hour, day of the month, month, day of the week. Each is
//     *, a number, a name, a range, a list of these, or one of them with a step. If both days are
//     restricted, one of them is enough, as in cron.
//  2. A local time that the clock skips occurs at the moment of the clock change.
//  3. A local time that occurs twice counts the first time. If every hour matches, it counts both
//     times.
//  4. A window with an end is active from the latest start until the first end after it. If a start
//     and an end coincide, the start wins, unless the clock skips the time between them.
//  5. A window with a duration is active for that much elapsed time after each start, whatever
//     clocks do.
//  6. A window does not change between the given instant and the next change that is reported.
//  7. Every text is evaluated in bounded time. A date that never occurs is an error.
package schedule
