import { expect, test } from 'vitest'
import { Meter } from './meter.js'

test('nothing is known before something was measured', () => {
  expect(new Meter().averageMs).toBeUndefined()
})

test('the first measure is the average', () => {
  const meter = new Meter()
  meter.add(40)
  expect(meter.averageMs).toBe(40)
})

test('a steady pace is the average', () => {
  const meter = new Meter()
  for (let i = 0; i < 1_000; i += 1) meter.add(7)
  expect(meter.averageMs).toBeCloseTo(7)
})

test('one slow handler among many fast ones hardly moves it', () => {
  const meter = new Meter()
  for (let i = 0; i < 500; i += 1) meter.add(1)
  meter.add(101)
  expect(meter.averageMs).toBeCloseTo(3)
})

test('a new pace has taken over after a few hundred', () => {
  const meter = new Meter()
  for (let i = 0; i < 1_000; i += 1) meter.add(1)
  for (let i = 0; i < 300; i += 1) meter.add(1_000)
  expect(meter.averageMs).toBeGreaterThan(990)
})

test('large payloads raise the estimate, and later small ones lower it again', () => {
  const meter = new Meter()
  expect(meter.averageBytes).toBe(0)
  for (let i = 0; i < 500; i += 1) meter.addPayload('x'.repeat(4_000))
  expect(meter.averageBytes).toBeCloseTo(4_000, -1)
  for (let i = 0; i < 500; i += 1) meter.addPayload(new Uint8Array(20))
  expect(meter.averageBytes).toBeCloseTo(20, -1)
})
