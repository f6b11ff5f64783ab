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
    as ${literal(`select ${schema}.add_job($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`)}`,
  ),
]

const options = `queue text default 'default', priority integer default 0, due_at timestamptz default null,
    run_in interval default null, key text default null, on_duplicate text default 'return', labels text[] default null,
    title text default null, expires_at timestamptz default null, expires_in interval default null, group_id text default null,
    meta json default null, retry_limit integer default null, timeout interval default null`
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
      then format('payload has %s bytes and the limit is ${PAYLOAD_MAX_BYTES}: store it elsewhere and pass a reference', octet_length(payload)) end
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
  stored constant json := json_strip_nulls(json_build_object('title', add_job.title, 'labels', to_json(add_job.labels),
    'retry', case when add_job.retry_limit is not null then json_build_object('limit', add_job.retry_limit) end,
    'timeout', (extract(epoch from add_job.timeout) * 1000)::bigint,
    'meta', case when add_job.meta is not null then json_build_object('text', ${asWritten('add_job.meta')}) end));
  problems constant text[] := ${schema}.job_problems(add_job.name, add_job.queue, add_job.priority, add_job.due_at, add_job.run_in,
    add_job.key, add_job.on_duplicate, add_job.labels, add_job.title, add_job.expires_at, add_job.expires_in, add_job.group_id, add_job.meta, add_job.retry_limit,
    add_job.timeout, written);
  made_id constant uuid := ${schema}.new_job_id(now_ms);
  due bigint;
  expires bigint;
  made_ref bigint;
  holder uuid;
  its_lane integer;
  sealed bigint;
  emptied bigint;
begin
  if cardinality(problems) > 0 then
    raise exception 'add_job: %', array_to_string(problems, '; ') using errcode = 'invalid_parameter_value';
  end if;
  due := coalesce((extract(epoch from coalesce(add_job.due_at, began + add_job.run_in)) * 1000)::bigint, now_ms);
  expires := (extract(epoch from coalesce(add_job.expires_at, began + add_job.expires_in)) * 1000)::bigint;
  if add_job.key is not null then
    -- The lock of insertJobs: no other transaction takes this key before this one ends.
    perform pg_advisory_xact_lock(
      ${LOCK_CLASS}, (hashtextextended('key ' || add_job.name || chr(10) || add_job.key, 7) & ${LOCK_SLOTS - 1})::integer);
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
    values (add_job.group_id, add_job.queue, case when due <= now_ms then 'ready' else 'scheduled' end, 1);
  end if;
  select lane into its_lane from ${schema}.lanes where queue = add_job.queue and name = add_job.name;
  if its_lane is null then
    insert into ${schema}.lanes (queue, name) values (add_job.queue, add_job.name) on conflict (queue, name) do nothing;
    select lane into its_lane from ${schema}.lanes where queue = add_job.queue and name = add_job.name;
  end if;
  -- The number is drawn under the lock of this insert, which the transaction that drops a day relies on (days.ts).
  insert into ${schema}.jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, options, grp)
  values (((now_ms / ${DAY_MS}) << ${NUMBER_BITS}) | nextval('${schema.replaceAll(`'`, `''`)}.job_number'), made_id, now_ms, due,
    expires, its_lane, add_job.priority, add_job.key, written, nullif(stored::text, '{}'), add_job.group_id)
  returning ref into made_ref;
  if cardinality(add_job.labels) > 0 then
    insert into ${schema}.labels (ref, label) select distinct made_ref, label from unnest(add_job.labels) as label;
  end if;
  if due <= now_ms then
    insert into ${schema}.ready (lane, sort, ref) values (its_lane, due - add_job.priority::bigint * ${PRIORITY_STEP_MS}, made_ref);
  else
    insert into ${schema}.waiting (ref, lane, state, due_at, grp) values (made_ref, its_lane, 'scheduled', due, add_job.group_id);
  end if;
  if expires is not null then
    insert into ${schema}.expiring (expires_at, ref) values (expires, made_ref);
  end if;
  if add_job.key is not null then
    insert into ${schema}.keys (name, key, ref) values (add_job.name, add_job.key, made_ref);
  end if;
  perform pg_notify('${channel}', 'sql' || case when due <= now_ms then ' ready' else '' end
    || case when due > now_ms or expires is not null then ' due' else '' end);
  return made_id;
end`
