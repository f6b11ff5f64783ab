import { setTimeout as sleep } from 'node:timers/promises'
import { COUNTRIES, SEED, TENANTS, randomOf } from './random.js'

const CYCLE_MS = 600_000
const BANK_DOWN_MS = 200_000

/** Of each ten minutes, the bank of Norway is down for the first three and a bit. */
export const isBankDown = () => Date.now() % CYCLE_MS < BANK_DOWN_MS

/** Orders, mails and photos, about eight jobs a second, until it is aborted. */
export async function keepTrading(mill, signal) {
  const random = randomOf(SEED + 1)
  let order = 5_000
  for (let second = 0; !signal.aborted; second += 1) {
    const isDown = isBankDown()
    const orders = Array.from({ length: random.between(1, 4) }, () => ({
      order: (order += 1),
      tenant: random.next() < 0.4 ? 'nordic' : random.pick(TENANTS),
      country: random.next() < (isDown ? 0.9 : 0.05) ? 'NO' : random.pick(COUNTRIES),
      amount: random.between(5, 400) + 0.9,
      card: '4111 1111 1111 1111',
      ms: random.between(80, 900),
    }))
    await mill.enqueueMany('charge', orders, (each) => ({ key: `order-${each.order}`, labels: ['billing'] }))
    const mails = Array.from({ length: 2 }, () => ({
      to: `${random.pick(TENANTS)}-${random.between(1, 9_999)}@example.com`,
      isSlow: random.next() < 0.04,
    }))
    await mill.enqueueMany('send-email', mails)
    await mill.enqueue('thumbs', { photo: `photo-${second}.jpg`, ms: random.between(200, 4_000) })
    if (second % 30 === 0) await mill.enqueue('secret-sync', { shop: second, card: '4111 1111 1111 1111' })
    if (second % 240 === 239) await mill.enqueue('export-pdf', { catalogue: `edition ${second}` })
    await sleep(1_000, undefined, { signal }).catch(() => {}) // Ctrl-C ends the loop
  }
}
