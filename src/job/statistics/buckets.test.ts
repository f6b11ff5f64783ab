import assert from 'node:assert/strict'
import { test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, spanAt, windowOf } from './buckets.js'

const NOW = Date.parse('2026-11-16T17:42:31Z')
const iso = (at: number): string => new Date(at).toISOString().slice(0, 16)

const shown = (from: number, to = NOW, now = NOW): string[] =>
  windowOf(from, to, now).ranges.map((range) => `${range.spanMs / MINUTE_MS} ${iso(range.from)} ${iso(range.to)}`)

test('the edges of a window round down to a bucket: a minute for a day, an hour for 90 days, then a day', () => {
  assert.deepEqual(shown(NOW - 2 * MINUTE_MS), ['1 2026-11-16T17:40 2026-11-16T17:43'])
  assert.deepEqual(shown(NOW - 30 * DAY_MS), [
    '60 2026-10-17T17:00 2026-10-18T00:00',
    '1440 2026-10-18T00:00 2026-11-16T00:00',
    '60 2026-11-16T00:00 2026-11-16T17:00',
    '1 2026-11-16T17:00 2026-11-16T17:43',
  ])
  assert.deepEqual(shown(NOW - 100 * DAY_MS)[0], '1440 2026-08-08T00:00 2026-11-16T00:00')
  assert.deepEqual(shown(-Infinity)[0], '1440 1970-01-01T00:00 2026-11-16T00:00')
})

test('ranges follow each other without a gap, in whole buckets that are still read', () => {
  for (let n = 1; n < 2_000; n += 1) {
    const from = NOW - Math.floor(1.013 ** (n % 1_000) * 977 * n) - n
    const to = from + (NOW - from) * ((n % 10) / 9)
    const window = windowOf(from, to, NOW)
    let at = window.from
    for (const range of window.ranges) {
      assert.equal(range.from, at)
      assert.ok(range.to > range.from)
      assert.equal(range.from % range.spanMs, 0)
      assert.equal(range.to % range.spanMs, 0)
      assert.ok(range.spanMs >= Math.min(spanAt(range.from, NOW), DAY_MS) || range.from >= NOW - DAY_MS)
      at = range.to
    }
    assert.equal(at, window.to)
    assert.ok(window.from <= Math.max(0, from) && window.to > to && window.to - to <= DAY_MS)
  }
})

test('at the edges of what is read', () => {
  assert.equal(spanAt(NOW - DAY_MS, NOW), MINUTE_MS)
  assert.equal(spanAt(NOW - DAY_MS - 1, NOW), HOUR_MS)
  assert.equal(spanAt(NOW - 90 * DAY_MS, NOW), HOUR_MS)
  assert.equal(spanAt(NOW - 90 * DAY_MS - 1, NOW), DAY_MS)
})
