import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from './postgres/shared-postgres.js'
import { Interleaver } from './postgres/interleave.js'
import { STANDINGS, VERBS } from './postgres/verbs.js'

/** `all`, which takes half an hour, or all with one verb, by its name. Otherwise a sample, spread over all. */
const ASKED = process.env['MILLRACE_INTERLEAVINGS']
const SHARE = 120

let database: Awaited<ReturnType<typeof freshDatabase>>
let house: Interleaver
beforeAll(async () => {
  database = await freshDatabase()
  house = await Interleaver.open(database.url)
}, 60_000)
afterAll(async () => {
  await house?.close()
  await database?.drop()
})

const names = Object.keys(VERBS)
const pairs = STANDINGS.flatMap((standing) =>
  names.flatMap((one) => names.map((two) => ({ standing, one, two }))),
).filter(({ one, two }, index) =>
  ASKED === undefined ? index % SHARE === 0 : ASKED === 'all' || [one, two].includes(ASKED),
)

for (const standing of STANDINGS)
  test(`a job that is ${standing}: two concurrent verbs are serializable`, { timeout: 1_200_000 }, async () => {
    const broken: string[] = []
    for (const { one, two } of pairs.filter((pair) => pair.standing === standing))
      broken.push(...(await tryAll(standing, one, two)))
    expect(broken.join('\n\n')).toBe('')
  })

async function tryAll(standing: (typeof STANDINGS)[number], one: string, two: string): Promise<string[]> {
  const [first, second] = [VERBS[one], VERBS[two]]
  if (first === undefined || second === undefined) throw new Error(`${one} and ${two}`)
  const turns = await house.inTurn(standing, first, second).catch((error: Error) => error)
  if (turns instanceof Error) return [`${standing}: ${one} and ${two}, one after the other: ${turns.message}`]
  const { outcomes, statements } = turns
  const broken: string[] = []
  for (let n = 1; n <= statements; n += 1) {
    const title = `${standing}: ${one}, with ${two} before statement ${n} of ${statements}`
    const outcome = await house.between(standing, first, second, n).catch((error: Error) => `${error.message}`)
    if (!outcomes.includes(outcome))
      broken.push(`${title}\n${outcome}\nbut one after the other:\n${outcomes.join('\nor\n')}`)
  }
  return broken
}
