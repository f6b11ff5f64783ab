import type { FlowBuilder, FlowNode } from '../../src/client/flow/flow.js'
import { MillraceError, StoreError } from '../../src/errors.js'
import type { After, EnqueueOptions, Handle } from '../../src/job/enqueue.js'
import { ON_PARENT_FAILURE } from '../../src/job/rules/links.js'
import type { Random } from '../../src/testing/simulation/random.js'
import type { CensusJob } from '../../src/store/census.js'
import { anyJob } from './any-job.js'
import { cancel, edit, forgetOne, isSettled, isStopped, isWaiting, pause, resume, retry } from './commands.js'
import { anyGroup } from './groups.js'
import { asTenant } from './shared-state.js'
import type { ScenarioClient } from './scenario.js'
import { inTransaction } from './transactions.js'

/** A step with parents and children. From a stream of its own, so that the rest of the scenario does not change. */
export async function linkStep(scenario: ScenarioClient): Promise<void> {
  const own = { ...scenario, random: scenario.linkRandom }
  const steps = [
    enqueueChild,
    enqueueChild,
    enqueueFamily,
    flow,
    addLate,
    makeRing,
    replaceParent,
    commandParent,
    commandParent,
    commandChild,
  ]
  await own.random.pick(steps)(own)
}

/** A job of any kind; its payload has its parents, as far as they are known, and its policy when one fails. */
function childOf(random: Random, given: readonly After[]): [string, object, EnqueueOptions] {
  // A key may name a job that is also named by its id: keys are last, so that the order of ids is known.
  const parents = [...given.filter((one) => !Array.isArray(one)), ...given.filter((one) => Array.isArray(one))]
  const [name, payload] = random.chance(0.4) ? ['joiner', { ms: random.int(0, 200) }] : anyJob(random)
  const policy = random.pick(ON_PARENT_FAILURE)
  const ids = parents.flatMap((parent) => (typeof parent === 'string' ? [parent] : 'id' in parent ? [parent.id] : []))
  const { group } = anyGroup(random)
  const options = {
    after: parents,
    onParentFailure: policy,
    ...(group === undefined ? {} : { group }),
    ...(random.chance(0.1) ? { in: random.int(1, 2_000) } : {}),
    ...(random.chance(0.05) ? { expires: random.int(100, 5_000) } : {}),
  }
  return [name, { ...payload, policy, after: ids, ...(group === undefined ? {} : { group }) }, options]
}

async function enqueueChild(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random, known } = scenario
  const parents = Array.from({ length: random.int(1, 3) }, () => anyParent(scenario)).filter((one) => one !== undefined)
  const [name, payload, options] = childOf(random, parents)
  const handle = await asTenant(scenario, random, (tenant) => mill.enqueue(name, { ...payload, tenant }, options))
  known.push(handle.id)
  sim.count(`children that ${options.onParentFailure}`)
}

/** A job in any state, by handle, by id or by key; it may be deleted, and then the call is refused. */
function anyParent({ sim, mill, random, known }: ScenarioClient): After | undefined {
  if (random.chance(0.15)) return ['steady', `key-${random.int(1, 3)}`]
  const kind = random.pick([
    isUnfinished,
    isUnfinished,
    isSuspect,
    isStopped,
    isPaused,
    isBlocked,
    isSettled,
    undefined,
  ])
  const found = kind === undefined ? [] : sim.census().jobs.filter(kind)
  const id = found.length > 0 ? random.pick(found).id : known.length > 0 ? random.pick(known) : undefined
  return id !== undefined && random.chance(0.3) ? mill.handle(id) : id
}

/** A parent by its key and children of it, in one transaction of the client. */
async function enqueueFamily(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const parents: After[] = [['steady', 'parent'], ...known(scenario)]
  await inTransaction(scenario, random.chance(0.3), (tx) => {
    const payload = { ms: random.int(0, 500), n: random.int(1, 9) }
    const parent = asTenant(scenario, random, (tenant) =>
      mill.enqueue('steady', { ...payload, tenant }, { tx, key: 'parent' }),
    )
    const children = Array.from({ length: random.int(1, 3) }, () => {
      const [name, given, options] = childOf(random, parents)
      return asTenant(scenario, random, (tenant) => mill.enqueue(name, { ...given, tenant }, { ...options, tx }))
    })
    return Promise.all([parent, ...children])
  })
  sim.count('families')
}

function known({ random, known: all }: ScenarioClient): string[] {
  return all.length > 0 && random.chance(0.3) ? [random.pick(all)] : []
}

/** A job that replaces its own parent, if there is one. */
async function replaceParent(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const key = random.chance(0.5) ? 'parent' : `key-${random.int(1, 3)}`
  const policy = random.pick(ON_PARENT_FAILURE)
  const payload = { ms: random.int(0, 300), n: random.int(1, 9), policy, after: [] }
  const options = { key, onDuplicate: 'replace', after: [['steady', key] as const], onParentFailure: policy } as const
  await asTenant(scenario, random, (tenant) => mill.enqueue('steady', { ...payload, tenant }, options))
  sim.count('children in the place of their parent')
}

/** A small graph: any, or one that fans out and in. */
async function flow(scenario: ScenarioClient): Promise<void> {
  const { sim, mill, random } = scenario
  const build = random.chance(0.5) ? fan : graph
  const make = (tx?: unknown): Promise<Handle<unknown>[]> =>
    asTenant(scenario, random, (tenant) =>
      mill.flow((f) => build(scenario, f, tenant), tx === undefined ? undefined : { tx }),
    )
  if (random.chance(0.3)) await inTransaction(scenario, random.chance(0.3), make)
  else scenario.known.push(...(await make()).map(({ id }) => id))
  sim.count('flows')
}

function graph(scenario: ScenarioClient, f: FlowBuilder, tenant: string | undefined): void {
  const { random } = scenario
  const nodes: FlowNode<unknown>[] = []
  for (let left = random.int(3, 9); left > 0; left -= 1) {
    const parents: After[] = nodes.filter(() => random.chance(0.3))
    const [name, payload, options] = childOf(random, [...parents, ...known(scenario)])
    const { after = [], ...rest } = options
    nodes.push(f.add(name, { ...payload, tenant }, rest).after(...after))
  }
}

function fan({ random }: ScenarioClient, f: FlowBuilder, tenant: string | undefined): void {
  const top = f.add('steady', { ms: random.int(0, 300), n: 0, tenant })
  const add = (parents: readonly After[]): FlowNode<unknown> => {
    const [name, payload, options] = childOf(random, parents)
    return f.add(name, { ...payload, tenant }, options)
  }
  const middle = Array.from({ length: random.int(5, 10) }, (_, n) =>
    random.chance(0.7)
      ? f.add('steady', { ms: n * 10, n, tenant, policy: 'wait', after: [top.id] }, { after: [top] })
      : add([top]),
  )
  add(middle)
}

async function addLate(scenario: ScenarioClient): Promise<void> {
  const parent = one(scenario, () => true)
  const child = one(scenario, isWaiting)
  if (parent !== undefined && child !== undefined && (await linkLate(scenario, parent.id, child)))
    scenario.sim.count('late links')
}

/** Tries to make a parent run after its child, which is refused. */
async function makeRing(scenario: ScenarioClient): Promise<void> {
  const { sim, random } = scenario
  const { links, jobs } = sim.census()
  const link = links.length > 0 ? random.pick(links) : undefined
  const parent = jobs.find(({ id }) => id === link?.parent)
  const child = jobs.find(({ seq }) => seq === link?.child)
  if (parent !== undefined && child !== undefined && isWaiting(parent)) await linkLate(scenario, child.id, parent)
}

/** Parents that it has already are not added again, so that the policy of each is known. */
async function linkLate({ sim, mill, random }: ScenarioClient, parent: string, child: CensusJob): Promise<boolean> {
  const policy = random.pick(ON_PARENT_FAILURE)
  const name = `${child.id} ${parent}`
  if (child.after.includes(parent) || sim.lateLinks.has(name)) return false
  sim.lateLinks.set(name, policy)
  try {
    return await mill.edit(child.id, { after: [parent], onParentFailure: policy })
  } catch (error) {
    // It was refused, and can be added with another policy later; after a failure of the store the outcome is unknown.
    if (error instanceof MillraceError && !(error instanceof StoreError)) sim.lateLinks.delete(name)
    throw error
  }
}

/** Sends a command to a job that others wait for. */
async function commandParent(scenario: ScenarioClient): Promise<void> {
  const parents = new Set(scenario.sim.census().links.map((link) => link.parent))
  await command(
    scenario,
    one(scenario, ({ id }) => parents.has(id)),
  )
}

async function commandChild(scenario: ScenarioClient): Promise<void> {
  await command(
    scenario,
    one(scenario, (job) => job.after.length > 0 && (job.state === 'blocked' || isStopped(job))),
  )
}

async function command(scenario: ScenarioClient, job: CensusJob | undefined): Promise<void> {
  if (job === undefined) return
  const verbs = isStopped(job) ? [retry, retry, forgetOne] : [cancel, cancel, pause, resume, edit, forgetOne]
  await scenario.random.pick(verbs)(scenario, job.id)
}

function one({ sim, random }: ScenarioClient, kind: (job: CensusJob) => boolean): CensusJob | undefined {
  const found = sim.census().jobs.filter(kind)
  return found.length === 0 ? undefined : random.pick(found)
}

function isUnfinished(job: CensusJob): boolean {
  return job.state === 'running' || isWaiting(job)
}

function isSuspect(job: CensusJob): boolean {
  return job.streak > 0
}

function isPaused(job: CensusJob): boolean {
  return job.state === 'paused'
}

function isBlocked(job: CensusJob): boolean {
  return job.state === 'blocked'
}
