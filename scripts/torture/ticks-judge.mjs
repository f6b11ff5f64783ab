/** How many ticks a run must have to prove anything, as a share of the kills. */
const TICKS_PER_KILL = 0.25

/** Judges the promises by the tables and the diary. */
export function judgeTicks(verdict, { kills, drained, tables, runs, schedules, options }) {
  const { ticks, jobs } = tables
  const bySchedule = grouped(ticks)
  console.log(`${kills.done} kills, ${kills.aimed} aimed at a tick, ${kills.young} at a process that was starting`)
  for (const [id, list] of bySchedule) console.log(`  ${id}: ${list.length} ticks, ${withJob(list).length} with a job`)
  verdict.expect('all kills were made in time', kills.done === options.cycles, `${kills.done} of ${options.cycles}`)
  verdict.expect('the remaining ticks were fired and run', drained.drained, drained.left)
  const known = Object.keys(schedules).sort()
  verdict.expect('upserts at every start made no second schedule', same(tables.schedules.sort(), known))
  verdict.none(
    'no tick was missed',
    known.flatMap((id) => gaps(id, bySchedule.get(id) ?? [], schedules[id])),
  )
  verdict.none('no tick was doubled: no two jobs are of one tick', doubled(jobs))
  verdict.none('each tick with a job has it, and each job has its tick', strays(ticks, jobs))
  const told = runs.map((line) => line.split(' '))
  const ran = new Set(told.filter(([word]) => word === 'ends').map(([, , , id]) => id))
  const parked = jobs.filter((job) => job.state === 'parked').length
  console.log(`  ${jobs.length} jobs, ${parked} parked`)
  const called = jobs.filter((job) => job.state === 'cancelled')
  verdict.none(
    'each job that is done has run',
    jobs.filter((job) => job.state === 'done' && !ran.has(job.id)).map(idOf),
  )
  verdict.none(
    'only a later tick cancels a job',
    called.filter((job) => job.schedule !== 'calling').map(idOf),
    `${called.length} were`,
  )
  verdict.none(
    'a tick that waits begins when the one before it has ended, or is parked',
    overlapping(told, jobs, schedules),
  )
  if (ticks.length < kills.done * TICKS_PER_KILL * known.length) verdict.void(`only ${ticks.length} ticks came`)
}

/** A tick a second, from the first to the last: with `once`, one may represent those before it, and says so. */
function gaps(id, list, { options }) {
  if (options.missed === 'once') return []
  const times = list.map((tick) => tick.at).sort((a, b) => a - b)
  return times.flatMap((at, i) =>
    i === 0 || at - times[i - 1] === 1000 ? [] : [`${id}: nothing between ${times[i - 1]} and ${at}`],
  )
}

/** Of jobs that wait for each other: those that began while an earlier one, which ended later, had not. */
function overlapping(told, jobs, schedules) {
  const states = new Map(jobs.map(({ id, state }) => [id, state]))
  return Object.keys(schedules)
    .filter((schedule) => schedules[schedule].options.overlap === 'wait')
    .flatMap((schedule) => {
      const open = new Map()
      return told
        .filter(([, of]) => of === schedule)
        .flatMap(([word, , at, id]) => {
          if (word === 'ends') return open.delete(id) ? [] : [`${id} ends and had not begun`]
          const before = [...open].find(([other, began]) => other !== id && Number(began) < Number(at))
          open.set(id, at)
          const isFree = before === undefined || states.get(before[0]) === 'parked'
          return isFree ? [] : [`${schedule} ${at}: ${id} began before ${before[0]} of ${before[1]} had ended`]
        })
    })
}

function doubled(jobs) {
  const seen = new Map()
  return jobs.flatMap(({ schedule, at, id }) => {
    const name = `${schedule} ${at}`
    const first = seen.get(name)
    seen.set(name, id)
    return first === undefined ? [] : [`${name}: ${first} and ${id}`]
  })
}

function strays(ticks, jobs) {
  const told = new Map(withJob(ticks).map((tick) => [tick.job, `${tick.schedule} ${tick.at}`]))
  const there = new Map(jobs.map(({ id, schedule, at }) => [id, `${schedule} ${at}`]))
  return [
    ...[...told].flatMap(([id, name]) => (there.get(id) === name ? [] : [`${name}: job ${id} is not there`])),
    ...[...there].flatMap(([id, name]) => (told.get(id) === name ? [] : [`${name}: job ${id} is in no ledger`])),
  ]
}

const idOf = (job) => job.id
const withJob = (ticks) => ticks.filter((tick) => tick.job !== null)
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

function grouped(ticks) {
  const groups = new Map(ticks.map((tick) => [tick.schedule, []]))
  for (const tick of ticks) groups.get(tick.schedule).push(tick)
  return groups
}
