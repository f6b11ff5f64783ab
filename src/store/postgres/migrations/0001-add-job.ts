import { AFTER_MAX } from '../../../job/definition/check-after.js'
import { KEY_TEXT_MAX } from '../../../job/rules/unique.js'
import { turnLane } from '../queries/sql-fragments.js'
import { PRIORITY_STEP_MS } from '../../rows/ordering.js'
import { DAY_MS, NUMBER_BITS, LOCK_CLASS, LOCK_SLOTS } from '../numbers.js'
import {
  KEY_MAX,
  LABEL_MAX,
  LABELS_MAX,
  NAME_MAX,
  PRIORITY_MAX,
  TITLE_MAX,
} from '../../../job/definition/check-options.js'

/** Retries that a caller may ask for; beyond, a job is retried without a limit by its definition. */
const RETRY_LIMIT_MAX = 1_000_000

/** Bytes as they are stored; the limit of the client. */
const PAYLOAD_MAX_BYTES = 1024 * 1024

/** The furthest time that the client accepts. */
const AWAY_MAX = '100 years'

/**
 * `add_job`: enqueueing from triggers and from other languages. It does what insertJobs does for one job, in the
 * caller's transaction and with the caller's privileges. It resolves names independently of the session's settings.
 */
export const addJob = (schema: string, channel: string): readonly string[] => [
  `create function ${schema}.new_job_id(now_ms bigint) returns uuid
    language sql volatile set search_path = pg_catalog, pg_temp
    as ${literal(newJobId)}`,
  `create function ${schema}.text_problem(what text, value text, most integer) returns text
    language sql immutable set search_path = pg_catalog, pg_temp
    as ${literal(textProblem)}`,
  `create function ${schema}.canonical_text(value jsonb) returns text
    language plpgsql immutable set search_path = pg_catalog, pg_temp
    as ${literal(canonicalText(schema))}`,
  `create function ${schema}.unique_text(payload json, by text[]) returns text
    language sql immutable set search_path = pg_catalog, pg_temp
    as ${literal(uniqueText(schema))}`,
  `create function ${schema}.job_problems(${optionTypes}, payload text) returns text[]
    language sql stable set search_path = pg_catalog, pg_temp
    as ${literal(jobProblems(schema))}`,
  `create function ${schema}.add_job(name text, payload text default null, ${options}) returns uuid
    language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
    as ${literal(body(schema, channel))}`,
  // For both JSON types, so that no caller needs a cast. A bare literal resolves to the function above.
  ...['json', 'jsonb'].map(
    (type) => `create function ${schema}.add_job(name text, payload ${type}, ${options}) returns uuid
    language sql volatile security invoker set search_path = pg_catalog, pg_temp
    as ${literal(`select ${schema}.add_job($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`)}`,
  ),
]

const options = `queue text default 'default', priority integer default 0, due_at timestamptz default null,
    run_in interval default null, key text default null, on_duplicate text default 'return', labels text[] default null,
    title text default null, expires_at timestamptz default null, expires_in interval default null, group_id text default null,
    meta json default null, retry_limit integer default null, timeout interval default null, after uuid[] default null,
    on_parent_failure text default 'wait', unique_by text[] default null, unique_for interval default null,
    unique_while text default 'unfinished', on_unique text default 'ignore'`
const optionTypes = `name text, ${options.replaceAll(/ default (?:null|0|'\w+')/g, '')}`

/** An escaped string literal, valid for any text and any setting of standard_conforming_strings. */
function literal(text: string): string {
  return `E'${text.replaceAll('\\', '\\\\').replaceAll(`'`, `''`)}'`
}

/** A UUIDv7: the time, the version, and the random rest of a version 4 with its variant. */
const newJobId = `
  select (lpad(to_hex(now_ms), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`

const textProblem = `
  select case
    when value is null then what || ' must be text, got null'
    when length(value) not between 1 and most then format('%s must have 1 to %s characters, got %s', what, most, length(value))
    when value ~ E'[\\u0001-\\u001f\\u007f]' then what || ' must not have control characters'
  end`

/** JSON in the form in which unique values are compared (codec/canonical.ts). */
const canonicalText = (schema: string): string => `
begin
  return case jsonb_typeof(value)
    when 'object' then '{' || coalesce((
      select string_agg(to_json(e.key)::text || ':' || ${schema}.canonical_text(e.value), ',' order by e.key collate "C")
      from jsonb_each(value) as e), '') || '}'
    when 'array' then '[' || coalesce((
      select string_agg(${schema}.canonical_text(e.value), ',' order by e.n)
      from jsonb_array_elements(value) with ordinality as e (value, n)), '') || ']'
    when 'number' then trim_scale((value #>> '{}')::numeric)::text
    else value::text
  end;
end`

/**
 * What a job is unique by, as an enqueue computes it (client/enqueue/unique-slot.ts): these fields of the payload, or all of
 * it; its digest where it is long. Null where a field is missing.
 */
const uniqueText = (schema: string): string => `
  select case when length(t) + (select count(*) from regexp_matches(t, E'[\\U00010000-\\U0010ffff]', 'g')) <= ${KEY_TEXT_MAX}
    then t else 'sha256 ' || encode(sha256(convert_to(t, 'UTF8')), 'hex') end
  from (
    select case when cardinality(by) = 0 then ${schema}.canonical_text(${asWritten('payload')}::jsonb)
      else (
        select case when count(*) = count(text) then string_agg(field || ':' || text, ',' order by field collate "C") end
        from (
          select field, ${schema}.canonical_text(${asWritten(`(payload #> string_to_array(field, '.'))`)}::jsonb) as text
          from (select distinct field from unnest(by) as field) as fields) as texts) end as t) as whole`

/** All problems of a call, reported together. */
const jobProblems = (schema: string): string => `
  select array_remove(array[
    ${schema}.text_problem('name', name, ${NAME_MAX}),
    ${schema}.text_problem('queue', queue, ${NAME_MAX}),
    case when key is not null then ${schema}.text_problem('key', key, ${KEY_MAX}) end,
    case when priority is null or abs(priority::bigint) > ${PRIORITY_MAX}
      then format('priority must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}, got %s', coalesce(priority::text, 'null')) end,
    case when due_at is not null and run_in is not null then 'due_at and run_in exclude each other: give one' end,
    case when expires_at is not null and expires_in is not null then 'expires_at and expires_in exclude each other: give one' end,
    case when not isfinite(due_at) then 'due_at must be a finite time' end,
    case when not isfinite(expires_at) then 'expires_at must be a finite time' end,
    case when run_in > interval '${AWAY_MAX}' then 'run_in must be at most ${AWAY_MAX}, got ' || run_in end,
    case when expires_in > interval '${AWAY_MAX}' then 'expires_in must be at most ${AWAY_MAX}, got ' || expires_in end,
    case when isfinite(due_at) and due_at > now() + interval '${AWAY_MAX}' then 'due_at must be at most ${AWAY_MAX} away, got ' || due_at end,
    case when isfinite(expires_at) and expires_at > now() + interval '${AWAY_MAX}'
      then 'expires_at must be at most ${AWAY_MAX} away, got ' || expires_at end,
    case when on_duplicate is null or on_duplicate not in ('return', 'reject')
      then format('on_duplicate must be ''return'' or ''reject'', got %s', coalesce(quote_literal(on_duplicate), 'null')) end,
    case when length(title) > ${TITLE_MAX} then format('title must have at most ${TITLE_MAX} characters, got %s', length(title)) end,
    case when cardinality(labels) > ${LABELS_MAX} then format('labels must be at most ${LABELS_MAX}, got %s', cardinality(labels)) end,
    case when group_id is not null then ${schema}.text_problem('group_id', group_id, ${NAME_MAX}) end,
    case when retry_limit not between 0 and ${RETRY_LIMIT_MAX}
      then format('retry_limit must be a whole number from 0 to ${RETRY_LIMIT_MAX}, got %s', retry_limit) end,
    case when timeout <= interval '0' or timeout > interval '${AWAY_MAX}'
      then format('timeout must be longer than 0 and at most ${AWAY_MAX}, got %s', timeout) end,
    case when octet_length(payload) > ${PAYLOAD_MAX_BYTES}
      then format('payload has %s bytes and the limit is ${PAYLOAD_MAX_BYTES}: store it elsewhere and pass a reference', octet_length(payload)) end,
    case when cardinality(after) > ${AFTER_MAX} then format('after must name at most ${AFTER_MAX} jobs, got %s', cardinality(after)) end,
    case when array_position(after, null) is not null then 'each of after must be the id of a job, got null' end,
    case when on_parent_failure is null or on_parent_failure not in ('wait', 'cancel', 'run')
      then format('on_parent_failure must be ''wait'', ''cancel'' or ''run'', got %s', coalesce(quote_literal(on_parent_failure), 'null')) end,
    case when unique_while is null or unique_while not in ('unfinished', 'waiting')
      then format('unique_while must be ''unfinished'' or ''waiting'', got %s', coalesce(quote_literal(unique_while), 'null')) end,
    case when on_unique is null or on_unique not in ('ignore', 'reject')
      then format('on_unique must be ''ignore'' or ''reject'', got %s', coalesce(quote_literal(on_unique), 'null')) end,
    case when unique_for <= interval '0' or unique_for > interval '${AWAY_MAX}'
      then format('unique_for must be longer than 0 and at most ${AWAY_MAX}, got %s', unique_for) end,
    case when unique_by is null and unique_for is not null then 'unique_for needs unique_by: an empty array means the whole payload' end,
    case when unique_by is not null and ${schema}.unique_text(payload::json, unique_by) is null
      then format('payload must have each of unique_by (%s)', array_to_string(unique_by, ', ')) end
  ] || array(select ${schema}.text_problem('each of labels', label, ${LABEL_MAX}) from unnest(labels) as label), null)`

/** JSON as the codec writes it; null for null. */
const asWritten = (json: string): string =>
  String.raw`regexp_replace(${json}::text, E'([{,]\\s*")((?:[$]|\\\\u0024)+"\\s*:)', E'\\1$\\2', 'g')`

/**
 * JSON is stored as the caller passed it. Only a key that the codec uses as a marker gets one "$" more, as the codec
 * writes it. A quote after a brace or a comma is never inside a JSON string, where a backslash would precede it.
 */
const body = (schema: string, channel: string): string => `
#variable_conflict use_column
declare
  began constant timestamptz := clock_timestamp();
  now_ms constant bigint := (extract(epoch from began) * 1000)::bigint;
  written constant text := coalesce(${asWritten('add_job.payload::json')}, '{"$":"undefined"}');
  stored constant json := json_strip_nulls(json_build_object('sql', true, 'title', add_job.title, 'labels', to_json(add_job.labels),
    'retry', case when add_job.retry_limit is not null then json_build_object('limit', add_job.retry_limit) end,
    'timeout', (extract(epoch from add_job.timeout) * 1000)::bigint,
    'meta', case when add_job.meta is not null then json_build_object('text', ${asWritten('add_job.meta')}) end,
    'unique', case when add_job.unique_by is not null then json_build_object(
      'key', ${schema}.unique_text(coalesce(add_job.payload, '{"$":"undefined"}')::json, add_job.unique_by), 'while', add_job.unique_while) end));
  problems constant text[] := ${schema}.job_problems(add_job.name, add_job.queue, add_job.priority, add_job.due_at, add_job.run_in,
    add_job.key, add_job.on_duplicate, add_job.labels, add_job.title, add_job.expires_at, add_job.expires_in, add_job.group_id, add_job.meta, add_job.retry_limit,
    add_job.timeout, add_job.after, add_job.on_parent_failure, add_job.unique_by, add_job.unique_for, add_job.unique_while,
    add_job.on_unique, coalesce(add_job.payload, written));
  made_id constant uuid := ${schema}.new_job_id(now_ms);
  due bigint;
  expires bigint;
  made_ref bigint;
  holder uuid;
  its_lane integer;
  sealed bigint;
  emptied bigint;
  slot constant text := stored #>> '{unique,key}';
  owner record;
  parents json;
  its_state text;
begin
  if cardinality(problems) > 0 then
    raise exception 'add_job: %', array_to_string(problems, '; ') using errcode = 'invalid_parameter_value';
  end if;
  due := coalesce((extract(epoch from coalesce(add_job.due_at, began + add_job.run_in)) * 1000)::bigint, now_ms);
  expires := (extract(epoch from coalesce(add_job.expires_at, began + add_job.expires_in)) * 1000)::bigint;
  -- The locks of insertJobs, in its order: no other transaction takes this key or this slot before this one ends.
  perform pg_advisory_xact_lock(${LOCK_CLASS}, n)
  from (
    select distinct (hashtextextended(taken, 7) & ${LOCK_SLOTS - 1})::integer as n
    from unnest(array['key ' || add_job.name || chr(10) || add_job.key, 'slot ' || add_job.name || chr(10) || slot]) as taken
    where taken is not null
    order by 1) as locks;
  if add_job.key is not null then
    select j.id into holder
    from ${schema}.keys k join ${schema}.jobs j on j.ref = k.ref
    where k.name = add_job.name and k.key = add_job.key
    order by k.turn desc
    limit 1;
    if holder is not null and add_job.on_duplicate = 'reject' then
      raise exception 'add_job: the key % of job % is held by an unfinished job', quote_literal(add_job.key), quote_literal(add_job.name)
        using errcode = 'unique_violation', detail = holder::text;
    end if;
    if holder is not null then
      return holder;
    end if;
  end if;
  if slot is not null then
    select u.id, u.until, h.ref is null as unfinished, r.ref is not null or w.ref is not null as waits into owner
    from ${schema}.uniques u
    left join lateral (select j.ref, j.lane, j.due_at, j.priority, j.turn from ${schema}.jobs j where j.ref = u.ref and j.id = u.id limit 1) j on true
    left join lateral (select h.ref from ${schema}.history h where j.ref is null or h.ref = j.ref limit 1) h on true
    left join lateral (select w.ref from ${schema}.waiting w where w.ref = j.ref limit 1) w on true
    left join lateral (
      select r.ref from ${schema}.ready r
      where r.lane = ${turnLane('j.lane', 'j.turn')} and r.sort = j.due_at - j.priority::bigint * ${PRIORITY_STEP_MS} and r.ref = j.ref
      limit 1) r on true
    where u.name = add_job.name and u.key = slot and (j.ref is not null or u.until > now_ms);
    if found and (owner.until > now_ms or (owner.unfinished and (add_job.unique_while = 'unfinished' or owner.waits))) then
      if add_job.on_unique = 'reject' then
        raise exception 'add_job: a job %, unique by the same value, is there already', quote_literal(add_job.name)
          using errcode = 'unique_violation', detail = owner.id::text;
      end if;
      return owner.id;
    end if;
  end if;
  if cardinality(add_job.after) > 0 then
    -- Those that are not done stay until this transaction ends: one that deletes them waits, and then sees the links.
    perform 1
    from ${schema}.jobs j
    where j.id = any(add_job.after) and not exists (select 1 from ${schema}.history h where h.ref = j.ref and h.state = 'done')
    order by j.ref
    for key share;
    select json_agg(json_build_object('id', a.id, 'ref', j.ref, 'state', coalesce(h.state, 'recheck'), 'own', j.key = add_job.key and n.name = add_job.name,
      'open', h.state is null or (h.state <> 'done' and add_job.on_parent_failure <> 'run')) order by a.n) into parents
    from (select id, min(n) as n from unnest(add_job.after) with ordinality as u (id, n) group by id) as a
    left join lateral (select j.ref, j.key, j.lane from ${schema}.jobs j where j.id = a.id limit 1) j on true
    left join ${schema}.lanes n on n.lane = j.lane
    left join lateral (select h.state from ${schema}.history h where h.ref = j.ref limit 1) h on true;
    if exists (select 1 from json_to_recordset(parents) as p (ref bigint) where p.ref is null) then
      raise exception 'add_job: there is no job with the id %', (
        select string_agg(p.id::text, ', ') from json_to_recordset(parents) as p (id uuid, ref bigint) where p.ref is null)
        using errcode = 'foreign_key_violation';
    end if;
    if add_job.on_parent_failure = 'wait' and exists (
      select 1 from json_to_recordset(parents) as p (own boolean, state text) where p.own and p.state <> 'recheck' and p.state <> 'done') then
      raise exception 'add_job: after names a job that failed under the same key, and can run again only when the new one has ended; give on_parent_failure => ''run'' or ''cancel'', or another key'
        using errcode = 'invalid_parameter_value';
    end if;
  end if;
  its_state := case
    when exists (select 1 from json_to_recordset(parents) as p (open boolean) where p.open) then 'blocked'
    when due <= now_ms then 'ready'
    else 'scheduled' end;
  if add_job.group_id is not null then
    insert into ${schema}.groups (grp) values (add_job.group_id) on conflict (grp) do nothing;
    -- The lock of insertJobs: until this transaction ends, no other one seals, completes or deletes the group.
    select g.sealed_at, g.empty_since into sealed, emptied from ${schema}.groups g where g.grp = add_job.group_id for share;
    if sealed is not null then
      raise exception 'add_job: the group % is sealed', quote_literal(add_job.group_id) using errcode = 'object_not_in_prerequisite_state';
    end if;
    if emptied is not null then
      update ${schema}.groups set empty_since = null where grp = add_job.group_id;
    end if;
    insert into ${schema}.group_moves (grp, queue, state, members)
    values (add_job.group_id, add_job.queue, its_state, 1);
  end if;
  select lane into its_lane from ${schema}.lanes where queue = add_job.queue and name = add_job.name;
  if its_lane is null then
    insert into ${schema}.lanes (queue, name) values (add_job.queue, add_job.name) on conflict (queue, name) do nothing;
    select lane into its_lane from ${schema}.lanes where queue = add_job.queue and name = add_job.name;
  end if;
  -- The number is drawn under the lock of this insert, which the transaction that drops a day relies on (days.ts).
  insert into ${schema}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, options, grp, after)
  values (((now_ms / ${DAY_MS}) << ${NUMBER_BITS}) | nextval('${schema.replaceAll(`'`, `''`)}.job_number'), made_id, now_ms, due,
    expires, its_lane, add_job.priority, add_job.key, written, nullif(stored::text, '{}'), add_job.group_id,
    (select json_agg(p.id)::text from json_to_recordset(parents) as p (id text)))
  returning ref into made_ref;
  if cardinality(add_job.labels) > 0 then
    insert into ${schema}.labels (ref, label) select distinct made_ref, label from unnest(add_job.labels) as label;
  end if;
  if parents is not null then
    insert into ${schema}.labels (ref, label) select made_ref, chr(1) || p.id from json_to_recordset(parents) as p (id text);
    insert into ${schema}.links (parent, child, on_failure)
      select p.ref, made_ref, case when p.own and p.state = 'recheck' and add_job.on_parent_failure = 'wait' then 'run' else add_job.on_parent_failure end
      from json_to_recordset(parents) as p (ref bigint, state text, own boolean, open boolean)
      where p.open;
    -- Upkeep marks the parents, and sees the ends of those that have ended or end before this transaction commits.
    insert into ${schema}.link_todos (parent, id, what)
      select p.ref, p.id, p.state from json_to_recordset(parents) as p (ref bigint, id uuid, state text, open boolean) where p.open;
  end if;
  if its_state = 'ready' then
    insert into ${schema}.ready (lane, sort, ref) values (its_lane, due - add_job.priority::bigint * ${PRIORITY_STEP_MS}, made_ref);
  else
    insert into ${schema}.waiting (ref, lane, state, due_at, grp) values (made_ref, its_lane, its_state, due, add_job.group_id);
  end if;
  if slot is not null then
    insert into ${schema}.uniques (name, key, ref, id, until)
    values (add_job.name, slot, made_ref, made_id, now_ms + (extract(epoch from add_job.unique_for) * 1000)::bigint)
    on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until;
  end if;
  if expires is not null then
    insert into ${schema}.expiring (expires_at, ref) values (expires, made_ref);
  end if;
  if add_job.key is not null then
    insert into ${schema}.keys (name, key, ref) values (add_job.name, add_job.key, made_ref);
  end if;
  perform pg_notify('${channel}', 'sql' || case when its_state = 'ready' then ' ready' else '' end
    || case when its_state <> 'ready' or expires is not null then ' due' else '' end);
  return made_id;
end`
