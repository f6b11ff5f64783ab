import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemVitals, versionFrom } from './vitals.js'

test('the version is that of the nearest package.json that has one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-vitals-'))
  try {
    const inner = join(folder, 'dist', 'bin')
    mkdirSync(inner, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"version":"1.42.0"}')
    writeFileSync(join(folder, 'dist', 'package.json'), '{"type":"module"}')
    expect(versionFrom(inner)).toBe('1.42.0')
    writeFileSync(join(inner, 'package.json'), '{ not json')
    expect(versionFrom(inner)).toBe('1.42.0')
    writeFileSync(join(folder, 'dist', 'package.json'), '{"version":"2.0.0"}')
    expect(versionFrom(inner)).toBe('2.0.0')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('memory is that of the process, and the delay of the event loop is never negative', () => {
  const vitals = systemVitals()
  for (const { memoryBytes, loopDelayMs } of [vitals.read(), vitals.read()]) {
    expect(memoryBytes).toBeGreaterThan(1_000_000)
    expect(loopDelayMs).toBeGreaterThanOrEqual(0)
  }
})
