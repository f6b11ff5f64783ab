/** Marks our messages: the module of a handler may send messages of its own through the same channel. */
export const CHANNEL = 'millrace.attempt'
/** The code of the error for a verb that needs a connection of the worker. */
const CODE = 'E_ISOLATED'

/**
 * What a thread or a process of the pool executes. It is text, so that it also works in a bundle, where no file of this package
 * exists. It loads the module of its job once, and then runs one attempt at a time: the handler gets a context whose verbs are
 * messages to the worker.
 */
export const CHILD_PROGRAM = `
const { AsyncLocalStorage } = require('node:async_hooks')
const { inspect } = require('node:util')
const { isMainThread, parentPort, workerData, Worker } = require('node:worker_threads')
const channel = isMainThread ? process : parentPort
const send = isMainThread ? (message) => process.connected && process.send(message) : (m) => parentPort.postMessage(m)
const post = (message) => send({ '${CHANNEL}': message })
const listen = (receive) => channel.on('message', (message) => message?.['${CHANNEL}'] && receive(message['${CHANNEL}']))
const module = isMainThread ? process.argv.at(-1) : workerData.module
const inside = new AsyncLocalStorage()
const calls = new Map()
let current, count = 0

const field = (error, name) => { try { return error[name] } catch { return undefined } }
const isPlain = (value) => value === null || ['string', 'number', 'boolean'].includes(typeof value)
const describe = (error, depth = 0) => {
  if (!(error instanceof Error)) return { value: isPlain(error) || error === undefined ? error : inspect(error) }
  const own = Object.keys(error).filter((key) => key !== 'cause' && isPlain(field(error, key)))
  return {
    name: String(field(error, 'name')), message: String(field(error, 'message')), stack: String(field(error, 'stack')),
    type: error.constructor?.name, props: Object.fromEntries(own.map((key) => [key, field(error, key)])),
    isAbort: field(error, Symbol.for('millrace.abort')) === true,
    snooze: field(error, Symbol.for('millrace.snooze')) === true ? { delay: snoozeOf(field(error, 'delay')) } : undefined,
    cause: field(error, 'cause') === undefined || depth > 7 ? undefined : describe(field(error, 'cause'), depth + 1),
  }
}
const snoozeOf = (delay) => (typeof delay === 'object' && delay !== null && !(delay instanceof Date) ? String(delay) : delay)
const postOr = (message, otherwise) => { try { post(message) } catch (error) { post(otherwise(error)) } }
const call = (verb, args) => new Promise((resolve, reject) => {
  const id = (count += 1)
  calls.set(id, { resolve, reject })
  try { post({ call: id, verb, args }) } catch (error) { calls.delete(id); reject(error) }
})
const named = (job) => (typeof job === 'object' && job !== null && typeof job.name === 'string' ? job.name : job)
const stays = (verb) => () => {
  const error = new Error('ctx.' + verb + '() needs a connection of the process that claimed the job; give the job executor "loop", or return the result')
  error.code = '${CODE}'
  throw error
}
const handleOf = ({ id, isNew }) => ({ id, isNew, get: () => call('get', []), cancel: () => call('cancel', []), result: () => call('result', []) })
const contextOf = ({ queue, tick, ...rest }, signal) => ({
  ...rest, tick, signal,
  queue: { name: queue, pauseUntil: (when) => call('pauseUntil', [when]) },
  log: (...parts) => postOr({ log: parts }, () => ({ log: parts.map((part) => (typeof part === 'string' ? part : inspect(part))) })),
  progress: (done, total) => post({ progress: [done, total] }),
  enqueue: (job, payload, options) => call('enqueue', [named(job), payload, options]).then(handleOf),
  results: (parent) => call('results', [named(parent)]),
  settleIn: stays('settleIn'), transaction: stays('transaction'),
})
const handlerOf = async () => {
  const loaded = await import(module)
  for (const found of [loaded.default, loaded.run, loaded.default?.default, loaded.default?.run]) if (typeof found === 'function') return found
  throw new TypeError('the module must export its handler as default or as run; it exports ' + (Object.keys(loaded).join(', ') || 'nothing'))
}
const run = async ({ payload, context }) => {
  const attempt = (current = { controller: new AbortController() })
  try {
    const handler = await handlerOf()
    const value = await inside.run(attempt, () => handler(payload, contextOf(context, attempt.controller.signal)))
    if (current !== attempt) return
    current = undefined
    postOr({ returned: value }, (error) => ({ returned: undefined, unsent: error.message }))
  } catch (error) {
    if (current !== attempt) return
    current = undefined
    post({ threw: describe(error) })
  }
}
const receive = (message) => {
  if (message.run !== undefined) return void run(message.run)
  if (message.abort !== undefined) {
    const { name, message: text } = message.abort
    return current?.controller.abort(Object.assign(new Error(text), { name }))
  }
  const waiting = calls.get(message.answer)
  calls.delete(message.answer)
  if (message.error === undefined) return waiting?.resolve(message.value)
  const { name, message: text, code } = message.error
  waiting?.reject(Object.assign(new Error(text), { name }, code === undefined ? {} : { code }))
}
process.on('uncaughtException', (error) => {
  const attempt = inside.getStore()
  // An error that an earlier attempt left behind is not charged to the present one; the worker ends this child after it.
  if (attempt !== undefined && attempt !== current) return post({ stray: describe(error) })
  current = undefined
  post({ uncaught: describe(error) })
})
if (!isMainThread) listen(receive)
else {
  process.on('disconnect', () => process.exit())
  // A handler that blocks this process would outlive a worker that was killed: a thread ends the process then. It cannot start
  // while the handler blocks, so attempts wait for it.
  const guard = new Worker("const parent = process.ppid; setInterval(() => { if (process.ppid !== parent) process.kill(process.platform === 'win32' ? process.pid : -process.pid, 'SIGKILL') }, 1000); require('node:worker_threads').parentPort.postMessage('watching')", { eval: true, execArgv: [] })
  guard.once('message', () => listen(receive))
  guard.unref()
}
post({ ready: true })
`
