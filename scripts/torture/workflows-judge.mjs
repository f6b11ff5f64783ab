/** The operations of an order, each of which must be recorded once. */
const ORDER = [
  '/step:reserve#0',
  '/tx:book#0',
  '/all:#0/stock/step:look#0',
  '/all:#0/price/sleep:#0',
  '/all:#0/price/step:look#0',
  '/wait:approved#0',
  '/call:child#0',
  '/sleep:#0',
  '/step:same#0',
  '/step:same#1',
  '/step:same#2',
]
/** A step in hand at a kill runs again: at most so many of one process. */
const IN_HAND = 10 * 10
const PAGE = 1_000

/** Judges the promises by the record of each workflow and sequence, the diary of all acts and the table of bookings. */
export async function judgeWorkflows(verdict, { mill, kills, isDrained, diary, bookings, options }) {
  const of = (word) => diary.filter(([first]) => first === word)
  const acts = grouped(of('act'))
  const found = { open: [], log: [], lost: [], values: [], events: [] }
  const orders = []
  for await (const { id, payload, key } of mill.find({ job: 'order' })) orders.push([id, payload.n, key])
  const lost = of('order').filter(([, id]) => !orders.some(([known]) => known === id))
  let repeated = 0
  for (const [id, n, key] of orders) {
    const record = await mill.get(id)
    if (record?.state !== 'done') {
      found.open.push(`${id} is ${record?.state ?? 'gone'}: ${record?.reason ?? record?.error?.message ?? ''}`)
      continue
    }
    const steps = await mill.steps(id, { limit: PAGE })
    found.log.push(...differences(id, steps))
    const said = new Map((acts.get(id) ?? []).map(([, , step, word]) => [word, step]))
    repeated += said.size - steps.filter(({ kind }) => kind === 'step').length
    for (const { address, kind, result } of steps)
      if (kind === 'step' && !said.has(result)) found.lost.push(`${id}${address}: no act has given ${String(result)}`)
    found.values.push(...misread(id, record.result, steps, n))
    if (record.result.by !== key) found.events.push(`${id}: ${record.result.by}`)
  }
  const sequences = of('sequence')
  const wrongLists = []
  for (const [, id, total] of sequences) wrongLists.push(...(await judgeList(mill, id, Number(total))))
  const children = new Set(of('child').map(([, id]) => id)).size
  const sentTwice = of('sent').filter(([, , times]) => Number(times) > 1)

  console.log(`${kills} kills; ${orders.length} workflows, ${sequences.length} sequences, ${repeated} acts ran again`)
  verdict.expect('all kills were made in time', kills === options.kills, `${kills} of ${options.kills}`)
  verdict.expect('everything ended after the last kill', isDrained)
  verdict.none(
    'no process met an error',
    of('trouble').map((words) => words.join(' ')),
  )
  verdict.none(
    'no workflow that was enqueued is lost',
    lost.map(([, id]) => id),
  )
  verdict.none('every workflow is done', found.open, `${orders.length} workflows`)
  verdict.none('every operation is recorded once', found.log)
  verdict.none('every recorded result is that of an act', found.lost)
  verdict.none('the body got what is recorded, each branch its own', found.values)
  verdict.none('each event was taken by its workflow', found.events)
  verdict.none(
    'an event of one id is sent once',
    sentTwice.map(([, id]) => id),
  )
  verdict.none(
    'bookings and their steps are one commit',
    unlike(
      bookings,
      orders.map(([id]) => id),
    ),
  )
  verdict.expect('one child for each call', children === orders.length, `${children} of ${orders.length}`)
  verdict.none('every sequence has all its items, in order', wrongLists, `${sequences.length} sequences`)
  verdict.expect('acts run again only after a kill', repeated <= kills * IN_HAND, `${repeated} after ${kills} kills`)
  if (orders.length < kills) verdict.void(`only ${orders.length} workflows were enqueued`)
}

function differences(id, steps) {
  const recorded = steps.map(({ address }) => address)
  const open = steps.filter(({ state }) => state !== 'done').map(({ address }) => `${id}${address} is not answered`)
  return [...open, ...unlike(recorded, ORDER).map((what) => `${id}${what}`)]
}

/** What is missing in a list, or there twice or unexpected. */
function unlike(got, wanted) {
  const count = new Map(wanted.map((each) => [each, -1]))
  for (const each of got) count.set(each, (count.get(each) ?? 0) + 1)
  return [...count]
    .filter(([, times]) => times !== 0)
    .map(([each, times]) => `${each} ${times < 0 ? 'is missing' : 'is there too often'}`)
}

function misread(id, result, steps, n) {
  const at = new Map(steps.map(({ address, result: recorded }) => [address, recorded]))
  const pairs = [
    [result.first, at.get('/step:reserve#0')],
    [result.stock, at.get('/all:#0/stock/step:look#0')],
    [result.price, at.get('/all:#0/price/step:look#0')],
    [result.doubled, n * 2],
    ...result.said.map((word, i) => [word, at.get(`/step:same#${i}`)]),
  ]
  return pairs
    .filter(([got, recorded]) => got !== recorded)
    .map(([got, recorded]) => `${id}: ${got} is not ${recorded}`)
}

async function judgeList(mill, id, total) {
  const sequence = mill.sequence(id)
  const { state, done } = await sequence.progress()
  const output = await sequence.output({ limit: PAGE })
  const isWhole =
    state === 'done' &&
    done === total &&
    output.length === total &&
    output.every(
      ({ index, result }, i) => index === i && result.n === i && result.previous === (i === 0 ? null : i - 1),
    )
  return isWhole ? [] : [`${id}: ${state}, ${done} of ${total}, ${output.length} recorded`]
}

function grouped(lines) {
  const groups = new Map()
  for (const line of lines) groups.set(line[1], [...(groups.get(line[1]) ?? []), line])
  return groups
}
