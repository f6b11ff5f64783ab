import { payloadsOf } from '../payloads.mjs'

const CHUNK = 10_000

/** Writes jobs in groups: `[{ count, queue, name }]`. With none it creates the tables. */
export async function run(spec, { openParty }) {
  const party = await openParty({ ...spec, durability: 'process', concurrency: 1 })
  for (const { count, queue, name } of spec.groups)
    for (let from = 0; from < count; from += CHUNK)
      await party.addMany(payloadsOf(spec.bytes, Math.min(CHUNK, count - from), from), { queue, name })
  await party.close()
}
