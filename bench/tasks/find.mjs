import { nowMs } from '../clock.mjs'
import { percentile } from '../figures.mjs'
import { jobsOf } from './fill-rare.mjs'

const TIMES = 5

/** The filters, each with its name in the table. */
export const FILTERS = {
  ...Object.fromEntries(
    'scheduled ready running retrying blocked paused parked done failed cancelled'
      .split(' ')
      .map((state) => [`state ${state}`, { state }]),
  ),
  'states failed, parked': { state: ['failed', 'parked'] },
  'job rare': { job: 'rare' },
  'queue few': { queue: 'few' },
  'job noop, state failed': { job: 'noop', state: 'failed' },
  'queue few, state scheduled': { queue: 'few', state: 'scheduled' },
  key: { key: 'k' },
  'key of none': { key: 'none' },
  group: { group: 'g' },
  label: { label: 'l' },
  'label of none': { label: 'none' },
}

/** The filters by time, by the times of the first job, the rare one in the middle and the last one. */
export const TIME_FILTERS = {
  'before all': ({ first }) => ({ createdBefore: first }),
  'after all': ({ last }) => ({ createdAfter: last }),
  'first half': ({ middle }) => ({ createdBefore: middle }),
  'second half': ({ middle }) => ({ createdAfter: middle }),
  'second half, state scheduled': ({ middle }) => ({ createdAfter: middle, state: 'scheduled' }),
  'first half, state failed': ({ middle }) => ({ createdBefore: middle, state: 'failed' }),
  'one millisecond': ({ middle }) => ({
    createdAfter: new Date(middle.getTime() - 1),
    createdBefore: new Date(middle.getTime() + 1),
  }),
}

/** The first job of each filter, in ms: the median of a few calls, in the slower order. */
export async function run(spec, { openMill }) {
  const mill = await openMill(spec, jobsOf)
  const figures = {}
  const times = {
    first: await createdAt(mill, { order: 'oldest' }),
    middle: await createdAt(mill, { key: 'k' }),
    last: await createdAt(mill, {}),
  }
  const timed = Object.entries(TIME_FILTERS).map(([name, filterOf]) => [name, filterOf(times)])
  for (const [name, filter] of [...Object.entries(FILTERS), ...timed]) {
    const medians = []
    for (const order of ['newest', 'oldest']) {
      const took = []
      for (let i = 0; i < TIMES; i += 1) took.push(await firstMs(mill, { ...filter, order, limit: 1 }))
      medians.push(percentile(took, 50))
    }
    figures[name] = Math.max(...medians)
  }
  await mill.close()
  return { ...figures, worst: Math.max(...Object.values(figures)) }
}

async function createdAt(mill, filter) {
  for await (const record of mill.find({ ...filter, limit: 1 })) return record.createdAt
  throw new Error(`no job matches ${JSON.stringify(filter)}`)
}

async function firstMs(mill, filter) {
  const began = nowMs()
  // eslint-disable-next-line no-unused-vars
  for await (const _ of mill.find(filter));
  return nowMs() - began
}
