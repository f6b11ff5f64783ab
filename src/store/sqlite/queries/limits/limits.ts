import { TURN_SPAN } from '../../../../job/limits/turns.js'

const isReady = `state = 'ready' and fence is null and streak < 2`

/** Claims under limits and rates, and the limits of queues. */
export const limitQueries = {
  /** The lanes that have ready jobs with a key, each found by one index lookup. */
  lanesWithTurns: `
    with recursive filled (turn) as (
      select min(lane)
      from millrace_live indexed by millrace_live_ready
      where lane < 0 and ${isReady}
      union all
      select (
        select min(l.lane)
        from millrace_live l indexed by millrace_live_ready
        where l.lane > -(-filled.turn / ${TURN_SPAN}) * ${TURN_SPAN} and l.lane < 0
          and l.state = 'ready' and l.fence is null and l.streak < 2)
      from filled
      where filled.turn is not null)
    select -turn / ${TURN_SPAN} as lane from filled where turn is not null`,
  /** Suspects with a key, nearly always none. */
  suspectTurns: `
    select distinct -lane / ${TURN_SPAN} as lane
    from millrace_live
    where lane < 0 and state = 'ready' and fence is null and streak >= 2`,
  /** The next turns with ready jobs between two numbers. */
  nextTurns: `
    with recursive filled (turn) as (
      select min(lane)
      from millrace_live indexed by millrace_live_ready
      where lane between ?1 and ?2 and ${isReady}
      union all
      select (
        select min(l.lane)
        from millrace_live l indexed by millrace_live_ready
        where l.lane > filled.turn and l.lane <= ?2 and l.state = 'ready' and l.fence is null and l.streak < 2)
      from filled
      where filled.turn is not null
      limit ?3)
    select turn from filled where turn is not null`,
  readTurn: `
    select l.seq as ref, l.lane as turn, l.sort, j.rate_turn as rateTurn, j.weight
    from millrace_live l indexed by millrace_live_ready
    cross join millrace_jobs j on j.seq = l.seq
    where l.lane = ? and l.state = 'ready' and l.fence is null and l.streak < 2
    order by l.sort, l.seq
    limit ?`,
  /** One job, if it is ready. */
  readCandidate: `
    select l.seq as ref, l.lane as turn, l.sort, j.rate_turn as rateTurn, j.weight
    from millrace_live l
    cross join millrace_jobs j on j.seq = l.seq
    where l.seq = ? and l.state = 'ready' and l.fence is null and l.streak < 2`,
  anySuspect: `
    select 1 as found
    from millrace_live
    where state = 'ready' and fence is null and streak >= 2
    limit 1`,
  limitedSuspects: `
    select l.seq as ref, l.lane as turn, l.sort, j.rate_turn as rateTurn, j.weight, j.lane as lane, l.streak
    from millrace_live l indexed by millrace_live_suspect
    cross join millrace_jobs j on j.seq = l.seq
    where l.lane between ? and ? and l.state = 'ready' and l.fence is null and l.streak >= 2
    order by l.streak, l.sort, l.seq
    limit ?`,
  lastTurns: `
    select lane, last
    from millrace_turns
    where lane in (select value from json_each(?))`,
  /** A slot counts while its job is under the fence of the claim that took it. */
  slotsInUse: `
    select s.bucket, count(*) as used
    from json_each(?) e
    cross join millrace_slots s on s.bucket = e.value
    cross join millrace_live l on l.seq = s.seq and l.fence = s.fence
    group by s.bucket`,
  windowsInUse: `
    select w.bucket, sum(w.used) as used, min(w.until) as freesAt, max(w.until) as lastsUntil
    from json_each(?) e
    cross join millrace_windows w on w.bucket = e.value
    where w.until > ?
    group by w.bucket`,
  takeSlots: `
    insert into millrace_slots (bucket, seq, fence)
    select value ->> 0, value ->> 1, ?
    from json_each(?)
    where true
    on conflict (bucket, seq) do update set fence = excluded.fence`,
  dropSlots: `
    delete from millrace_slots
    where not exists (
      select 1 from millrace_live l where l.seq = millrace_slots.seq and l.fence = millrace_slots.fence)`,
  useWindow: `
    insert into millrace_windows (bucket, step, used, until)
    values (?, ?, ?, ?)
    on conflict (bucket, step) do update
    set used = used + excluded.used, until = max(until, excluded.until)`,
  dropWindows: `
    delete from millrace_windows
    where until <= ?`,
  shortenWindows: `
    update millrace_windows
    set until = ?2
    where bucket = ?1 and until > ?2`,
  putTurn: `
    insert into millrace_turns (lane, last)
    values (?, ?)
    on conflict (lane) do update set last = excluded.last`,
  putQueueLimits: `
    insert into millrace_queue_limits (queue, max, rate_max, rate_per, set_at)
    values (?, ?, ?, ?, ?)
    on conflict (queue) do update
    set max = excluded.max, rate_max = excluded.rate_max, rate_per = excluded.rate_per, set_at = excluded.set_at`,
  dropQueueLimits: `
    delete from millrace_queue_limits
    where queue = ?`,
  readQueueLimits: `
    select queue, max, rate_max as rateMax, rate_per as ratePer
    from millrace_queue_limits`,
  /**
   * What a claim has to know before it reads jobs, in one statement that is nearly always empty: paused queues, queues
   * with limits, lanes whose attempts fail, and whether jobs with keys are ready.
   */
  claimNotes: `
    select 'pause' as kind, queue, until, paused_at as at from millrace_pauses
    union all
    select 'limits', queue, null, null from millrace_queue_limits
    union all
    select 'fails', null, null, lane from millrace_outages
    union all
    select * from (
      select 'turns', null, null, null from millrace_live indexed by millrace_live_ready where lane < 0 and ${isReady} limit 1)
    union all
    select * from (
      select 'turns', null, null, null from millrace_live indexed by millrace_live_suspect
      where lane < 0 and state = 'ready' and fence is null and streak >= 2 limit 1)`,
}
