import { setTimeout as sleep } from 'node:timers/promises'
import { Abort, job } from 'millrace'

/**
 * The jobs of the demo. They simulate the mail server, the bank and the photo's pixels by a pause. What they did
 * is passed to `tell`, so that the caller can print it.
 */
export function demoJobs(tell) {
  const sendEmail = job('send-email', {
    queue: 'mail',
    run: async ({ to }) => {
      await sleep(60 + Math.random() * 240)
      if (!to.includes('@')) throw new Abort(`${to} is no address`)
      tell({ kind: 'sent', to })
    },
  })

  const chargeCard = job('charge-card', {
    queue: 'billing',
    run: async ({ order, failures }, ctx) => {
      await sleep(40 + Math.random() * 60)
      if (ctx.attempt <= failures) {
        tell({ kind: 'refused', order, attempt: ctx.attempt })
        throw new Error('503: the bank is busy')
      }
      tell({ kind: 'charged', order, attempt: ctx.attempt })
    },
    retry: { limit: 5, backoff: { start: '250ms', factor: 2 } },
  })

  const remind = job('remind', async ({ order, asked }) => {
    tell({ kind: 'reminded', order, afterMs: Date.now() - asked })
  })

  return { sendEmail, chargeCard, remind }
}

/** Run by separate processes; the main one only enqueues it. */
export function photoJob(tell) {
  return job('resize-photo', {
    queue: 'photos',
    run: async ({ photo }, ctx) => {
      tell({ kind: 'began', id: ctx.id, photo })
      await sleep(900, undefined, { signal: ctx.signal })
      tell({ kind: 'resized', id: ctx.id, photo, attempt: ctx.attempt })
    },
  })
}
