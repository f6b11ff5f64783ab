create sequence millrace.change_number as bigint;

create sequence millrace.job_number as bigint;

create table millrace.audit (
  number bigint generated always as identity not null,
  at bigint not null,
  actor text not null,
  role text,
  verb text not null,
  target text not null,
  count bigint not null,
  before text,
  after text,
  reason text,
  keep_until bigint
);

create table millrace.changes (
  number bigint default nextval('millrace.change_number'::regclass) not null,
  id uuid not null,
  lane integer not null,
  state text not null,
  at bigint not null
);

create table millrace.consumers (
  consumer text not null,
  reader text not null,
  "position" bigint not null
);

create table millrace.dead_workers (
  worker text not null,
  host text not null,
  pid integer not null,
  lease_ms bigint,
  started_at bigint not null,
  beat_at bigint,
  about text,
  died_at bigint not null
);

create table millrace.expiring (
  expires_at bigint not null,
  ref bigint not null
);

create table millrace.failures (
  queue text not null,
  name text not null,
  at bigint not null,
  fingerprint text not null,
  error text not null,
  place text not null,
  count bigint not null,
  first_seen bigint not null,
  last_seen bigint not null,
  samples text not null
) with (fillfactor=70);

create table millrace.group_counts (
  grp text not null,
  queue text not null,
  state text not null,
  members bigint not null
) with (fillfactor=50);

create table millrace.group_moves (
  grp text not null,
  queue text not null,
  state text not null,
  members integer not null
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=10000);

create table millrace.groups (
  grp text not null,
  sealed_at bigint,
  completed_at bigint,
  when_done text,
  empty_since bigint
);

create table millrace.history (
  ref bigint not null,
  settled_at bigint not null,
  started_at bigint,
  keep_until bigint,
  state text not null,
  attempt integer,
  retries integer,
  crashes integer,
  worker text,
  result text,
  result_bytes bytea,
  error text,
  reason text,
  log text,
  lane integer
) partition by RANGE (ref);

create table millrace.identity (
  token text not null
);

create table millrace.inbox (
  number bigint generated always as identity not null,
  ref bigint not null,
  kind text not null,
  name text,
  id text,
  payload text,
  bytes bytea,
  error text,
  sent_at bigint not null,
  taken boolean default false not null
);

create table millrace.items (
  number bigint generated always as identity not null,
  list bigint not null,
  idx integer not null,
  payload text,
  bytes bytea
);

create table millrace.jobs (
  ref bigint not null,
  id uuid not null,
  created_at bigint not null,
  due_at bigint not null,
  expires_at bigint,
  lane integer not null,
  priority integer not null,
  attempt integer,
  retries integer,
  crashes integer,
  streak integer,
  key text,
  payload text,
  bytes bytea,
  options text,
  error text,
  reason text,
  log text,
  after text,
  is_parent boolean,
  grp text,
  shape text,
  turn bigint,
  rate_turn bigint,
  weight integer
) partition by RANGE (ref);

create table millrace.keys (
  name text not null,
  key text not null,
  turn integer default 0 not null,
  ref bigint not null
);

create table millrace.labels (
  ref bigint not null,
  label text not null
) partition by RANGE (ref);

create table millrace.lanes (
  lane integer generated always as identity not null,
  queue text not null,
  name text not null
);

create table millrace.leases (
  fence bigint not null,
  worker text not null,
  quarantined integer not null,
  claimed_at bigint not null,
  starting integer not null,
  refs bigint[] not null,
  released bigint[] default '{}'::bigint[] not null,
  has_request boolean default false not null
);

create table millrace.leftovers (
  number bigint generated always as identity not null,
  ref bigint,
  run integer,
  list bigint,
  is_deleted boolean default false not null,
  due_at bigint not null
);

create table millrace.limit_claims (
  scope text not null,
  version bigint not null
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=1000);

create table millrace.link_todos (
  number bigint generated always as identity not null,
  parent bigint not null,
  id uuid,
  what text not null,
  ended_at bigint,
  result text,
  result_bytes bytea,
  error text
);

create table millrace.links (
  parent bigint not null,
  child bigint not null,
  on_failure text not null,
  keep_ms bigint
);

create table millrace.lists (
  list bigint generated always as identity not null,
  id uuid not null,
  total integer not null,
  made_at bigint not null
);

create table millrace.migrations (
  version integer not null,
  name text not null,
  applied_at timestamp with time zone default now() not null
);

create table millrace.outages (
  lane integer not null,
  state text not null,
  failures bigint not null,
  since bigint,
  probe_at bigint
) with (fillfactor=50);

create table millrace.pauses (
  queue text not null,
  until bigint,
  paused_at bigint not null
);

create table millrace.queue_limits (
  queue text not null,
  max bigint,
  rate_max bigint,
  rate_per bigint,
  set_at bigint not null
);

create table millrace.ready (
  lane bigint not null,
  sort bigint not null,
  ref bigint not null
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=10000);

create table millrace.receipts (
  id uuid not null,
  at bigint default ((EXTRACT(epoch FROM clock_timestamp()) * (1000)::numeric))::bigint not null,
  is_void boolean default false not null,
  answer text
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=10000);

create table millrace.reports (
  ref bigint not null,
  fence bigint not null,
  started_at bigint not null,
  progress text
);

create table millrace.requests (
  ref bigint not null,
  kind text not null,
  reason text not null,
  keep_ms bigint,
  requested_at bigint not null
);

create table millrace.revived (
  ref bigint not null
);

create table millrace.schedules (
  id text not null,
  revision bigint not null,
  spec text not null,
  created_at bigint not null,
  paused_at bigint,
  next_at bigint,
  last_at bigint,
  open text default '[]'::text not null,
  fired bigint default 0 not null
) with (fillfactor=50);

create table millrace.slots (
  bucket text not null,
  ref bigint not null,
  fence bigint not null
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=1000);

create table millrace.stats (
  queue text not null,
  name text not null,
  span bigint not null,
  at bigint not null,
  done bigint not null,
  failed bigint not null,
  retried bigint not null,
  wait text,
  run text
) with (fillfactor=70);

create table millrace.stats_moves (
  number bigint generated always as identity not null,
  queue text not null,
  name text not null,
  at bigint not null,
  done bigint not null,
  failed bigint not null,
  retried bigint not null,
  wait text,
  run text,
  failures text
) with (autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=10000);

create table millrace.steps (
  number bigint generated always as identity not null,
  ref bigint not null,
  run integer not null,
  address text not null,
  kind text not null,
  no integer,
  since integer default 0 not null,
  attempt integer default 0 not null,
  called_at bigint not null,
  answered_at bigint,
  until bigint,
  value text,
  bytes bytea,
  error text,
  note text
);

create table millrace.ticks (
  schedule text not null,
  at bigint not null,
  by_hand boolean not null,
  outcome text not null,
  reason text,
  job uuid,
  fired_at bigint not null
);

create table millrace.turns (
  lane integer not null,
  last bigint not null
) with (fillfactor=50);

create table millrace.uniques (
  name text not null,
  key text not null,
  ref bigint not null,
  id uuid not null,
  until bigint
);

create table millrace.waiting (
  ref bigint not null,
  lane integer not null,
  state text not null,
  due_at bigint not null,
  grp text,
  held boolean
);

create table millrace.windows (
  bucket text not null,
  step bigint not null,
  used bigint not null,
  until bigint not null
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.0, autovacuum_vacuum_threshold=1000);

create table millrace.workers (
  worker text not null,
  beat bigint default 0 not null,
  host text not null,
  pid integer not null,
  identity text,
  lease_ms bigint,
  started_at bigint not null,
  beat_at bigint,
  blocked_by bigint,
  about text
) with (fillfactor=50);

create table millrace.workflows (
  ref bigint not null,
  run integer default 0 not null,
  waits text,
  wake_at bigint,
  paused_from text,
  last_fence bigint,
  deadline_at bigint,
  forget_from integer,
  next_no integer default 0 not null,
  retried_at bigint
) with (fillfactor=50);

create table millrace.history_rest partition of millrace.history default;

create table millrace.jobs_rest partition of millrace.jobs default;

create table millrace.labels_rest partition of millrace.labels default;

alter table millrace.audit add constraint audit_pkey PRIMARY KEY (number);

alter table millrace.changes add constraint changes_pkey PRIMARY KEY (number);

alter table millrace.consumers add constraint consumers_pkey PRIMARY KEY (consumer);

alter table millrace.dead_workers add constraint dead_workers_pkey PRIMARY KEY (worker);

alter table millrace.expiring add constraint expiring_pkey PRIMARY KEY (expires_at, ref);

alter table millrace.failures add constraint failures_pkey PRIMARY KEY (queue, name, at, fingerprint);

alter table millrace.group_counts add constraint group_counts_pkey PRIMARY KEY (grp, queue, state);

alter table millrace.groups add constraint groups_check CHECK (((completed_at IS NULL) OR (sealed_at IS NOT NULL)));

alter table millrace.groups add constraint groups_pkey PRIMARY KEY (grp);

alter table millrace.history add constraint history_pkey PRIMARY KEY (ref);

alter table millrace.history add constraint history_state_check CHECK ((state = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])));

alter table millrace.identity add constraint identity_pkey PRIMARY KEY (token);

alter table millrace.inbox add constraint inbox_kind_check CHECK ((kind = ANY (ARRAY['event'::text, 'call'::text, 'cancel'::text])));

alter table millrace.inbox add constraint inbox_pkey PRIMARY KEY (number);

alter table millrace.items add constraint items_check CHECK (((payload IS NULL) <> (bytes IS NULL)));

alter table millrace.items add constraint items_pkey PRIMARY KEY (number);

alter table millrace.jobs add constraint jobs_check CHECK (((payload IS NULL) <> (bytes IS NULL)));

alter table millrace.jobs add constraint jobs_pkey PRIMARY KEY (ref);

alter table millrace.jobs add constraint jobs_shape_check CHECK ((shape = ANY (ARRAY['workflow'::text, 'sequence'::text])));

alter table millrace.keys add constraint keys_pkey PRIMARY KEY (name, key, turn);

alter table millrace.labels add constraint labels_pkey PRIMARY KEY (ref, label);

alter table millrace.lanes add constraint lanes_pkey PRIMARY KEY (lane);

alter table millrace.lanes add constraint lanes_queue_name_key UNIQUE (queue, name);

alter table millrace.leases add constraint leases_pkey PRIMARY KEY (fence);

alter table millrace.leftovers add constraint leftovers_pkey PRIMARY KEY (number);

alter table millrace.limit_claims add constraint limit_claims_pkey PRIMARY KEY (scope);

alter table millrace.link_todos add constraint link_todos_pkey PRIMARY KEY (number);

alter table millrace.link_todos add constraint link_todos_what_check CHECK ((what = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text, 'parked'::text, 'gone'::text, 'recheck'::text, 'wake'::text])));

alter table millrace.links add constraint links_on_failure_check CHECK ((on_failure = ANY (ARRAY['wait'::text, 'cancel'::text, 'run'::text, 'run-if-parked'::text, 'wake'::text])));

alter table millrace.links add constraint links_pkey PRIMARY KEY (parent, child);

alter table millrace.lists add constraint lists_id_key UNIQUE (id);

alter table millrace.lists add constraint lists_pkey PRIMARY KEY (list);

alter table millrace.migrations add constraint migrations_pkey PRIMARY KEY (version);

alter table millrace.outages add constraint outages_pkey PRIMARY KEY (lane);

alter table millrace.outages add constraint outages_state_check CHECK ((state = ANY (ARRAY['counting'::text, 'closed'::text, 'opening'::text])));

alter table millrace.pauses add constraint pauses_pkey PRIMARY KEY (queue);

alter table millrace.queue_limits add constraint queue_limits_pkey PRIMARY KEY (queue);

alter table millrace.ready add constraint ready_pkey PRIMARY KEY (lane, sort, ref);

alter table millrace.receipts add constraint receipts_pkey PRIMARY KEY (id);

alter table millrace.reports add constraint reports_pkey PRIMARY KEY (ref);

alter table millrace.requests add constraint requests_kind_check CHECK ((kind = ANY (ARRAY['cancel'::text, 'pause'::text])));

alter table millrace.requests add constraint requests_pkey PRIMARY KEY (ref);

alter table millrace.revived add constraint revived_pkey PRIMARY KEY (ref);

alter table millrace.schedules add constraint schedules_check CHECK (((paused_at IS NULL) OR (next_at IS NULL)));

alter table millrace.schedules add constraint schedules_pkey PRIMARY KEY (id);

alter table millrace.slots add constraint slots_pkey PRIMARY KEY (bucket, ref);

alter table millrace.stats add constraint stats_pkey PRIMARY KEY (queue, name, span, at);

alter table millrace.stats_moves add constraint stats_moves_pkey PRIMARY KEY (number);

alter table millrace.steps add constraint steps_check CHECK (((no IS NULL) = (answered_at IS NULL)));

alter table millrace.steps add constraint steps_pkey PRIMARY KEY (number);

alter table millrace.ticks add constraint ticks_check CHECK (((job IS NULL) = (outcome = 'skipped'::text)));

alter table millrace.ticks add constraint ticks_pkey PRIMARY KEY (schedule, at, by_hand);

alter table millrace.turns add constraint turns_pkey PRIMARY KEY (lane);

alter table millrace.uniques add constraint uniques_pkey PRIMARY KEY (name, key);

alter table millrace.waiting add constraint waiting_check CHECK (((held IS NULL) OR (state = 'retrying'::text)));

alter table millrace.waiting add constraint waiting_pkey PRIMARY KEY (ref);

alter table millrace.waiting add constraint waiting_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'scheduled'::text, 'retrying'::text, 'blocked'::text, 'paused'::text, 'parked'::text])));

alter table millrace.windows add constraint windows_pkey PRIMARY KEY (bucket, step);

alter table millrace.workers add constraint workers_pkey PRIMARY KEY (worker);

alter table millrace.workflows add constraint workflows_pkey PRIMARY KEY (ref);

CREATE INDEX audit_keep ON millrace.audit USING btree (keep_until) WHERE (keep_until IS NOT NULL);

CREATE INDEX consumers_position ON millrace.consumers USING btree ("position");

CREATE INDEX dead_workers_died ON millrace.dead_workers USING btree (died_at);

CREATE INDEX failures_fingerprint ON millrace.failures USING btree (fingerprint, at);

CREATE INDEX group_moves_group ON millrace.group_moves USING btree (grp);

CREATE INDEX history_failed ON ONLY millrace.history USING btree (lane) WHERE (state = 'failed'::text);

CREATE INDEX history_failure ON ONLY millrace.history USING btree (substr(error, 17, 16), ref) WHERE (error IS NOT NULL);

CREATE INDEX history_keep ON ONLY millrace.history USING btree (keep_until) WHERE ((keep_until - settled_at) < 86400000);

CREATE INDEX history_not_done ON ONLY millrace.history USING btree (state, ref) WHERE (state <> 'done'::text);

CREATE UNIQUE INDEX inbox_id ON millrace.inbox USING btree (ref, id) WHERE (id IS NOT NULL);

CREATE INDEX inbox_open ON millrace.inbox USING btree (ref, number) WHERE (NOT taken);

CREATE UNIQUE INDEX items_idx ON millrace.items USING btree (list, idx);

CREATE INDEX jobs_created ON ONLY millrace.jobs USING brin (created_at, ((ref + 0))) WITH (pages_per_range='64');

CREATE INDEX jobs_failure ON ONLY millrace.jobs USING btree (substr(error, 17, 16), ref) WHERE (error IS NOT NULL);

CREATE INDEX jobs_group ON ONLY millrace.jobs USING btree (grp, ref) WHERE (grp IS NOT NULL);

CREATE INDEX jobs_id ON ONLY millrace.jobs USING btree (id);

CREATE INDEX jobs_key ON ONLY millrace.jobs USING btree (key, ref) WHERE (key IS NOT NULL);

CREATE INDEX jobs_lane ON ONLY millrace.jobs USING btree (lane, ref);

CREATE INDEX jobs_shape ON ONLY millrace.jobs USING btree (ref) WHERE (shape IS NOT NULL);

CREATE INDEX labels_label ON ONLY millrace.labels USING btree (label, ref);

CREATE INDEX lanes_name ON millrace.lanes USING btree (name);

CREATE INDEX leases_worker ON millrace.leases USING btree (worker);

CREATE INDEX leftovers_due ON millrace.leftovers USING btree (due_at);

CREATE INDEX leftovers_list ON millrace.leftovers USING btree (list) WHERE (ref IS NULL);

CREATE INDEX link_todos_parent ON millrace.link_todos USING btree (parent);

CREATE INDEX links_child ON millrace.links USING btree (child);

CREATE INDEX pauses_until ON millrace.pauses USING btree (until);

CREATE INDEX schedules_next ON millrace.schedules USING btree (next_at) WHERE (next_at IS NOT NULL);

CREATE UNIQUE INDEX steps_address ON millrace.steps USING btree (ref, run, address);

CREATE INDEX waiting_due ON millrace.waiting USING btree (due_at) WHERE ((state = ANY (ARRAY['scheduled'::text, 'retrying'::text])) AND (held IS NOT TRUE));

CREATE INDEX waiting_held ON millrace.waiting USING btree (lane, ref) WHERE held;

CREATE INDEX waiting_state ON millrace.waiting USING btree (state, ref);

CREATE INDEX waiting_suspect ON millrace.waiting USING btree (lane) WHERE (state = 'ready'::text);

CREATE INDEX windows_until ON millrace.windows USING btree (until);

CREATE INDEX workflows_wake ON millrace.workflows USING btree (wake_at) WHERE ((wake_at IS NOT NULL) AND (paused_from IS NULL));

CREATE OR REPLACE FUNCTION millrace.add_job(name text, payload json, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, run_in interval DEFAULT NULL::interval, key text DEFAULT NULL::text, on_duplicate text DEFAULT 'return'::text, labels text[] DEFAULT NULL::text[], title text DEFAULT NULL::text, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_in interval DEFAULT NULL::interval, group_id text DEFAULT NULL::text, meta json DEFAULT NULL::json, retry_limit integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, after uuid[] DEFAULT NULL::uuid[], on_parent_failure text DEFAULT 'wait'::text, unique_by text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, unique_while text DEFAULT 'unfinished'::text, on_unique text DEFAULT 'ignore'::text)
 RETURNS uuid
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$select "millrace".add_job($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)$function$;

CREATE OR REPLACE FUNCTION millrace.add_job(name text, payload jsonb, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, run_in interval DEFAULT NULL::interval, key text DEFAULT NULL::text, on_duplicate text DEFAULT 'return'::text, labels text[] DEFAULT NULL::text[], title text DEFAULT NULL::text, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_in interval DEFAULT NULL::interval, group_id text DEFAULT NULL::text, meta json DEFAULT NULL::json, retry_limit integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, after uuid[] DEFAULT NULL::uuid[], on_parent_failure text DEFAULT 'wait'::text, unique_by text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, unique_while text DEFAULT 'unfinished'::text, on_unique text DEFAULT 'ignore'::text)
 RETURNS uuid
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$select "millrace".add_job($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)$function$;

CREATE OR REPLACE FUNCTION millrace.add_job(name text, payload text DEFAULT NULL::text, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, due_at timestamp with time zone DEFAULT NULL::timestamp with time zone, run_in interval DEFAULT NULL::interval, key text DEFAULT NULL::text, on_duplicate text DEFAULT 'return'::text, labels text[] DEFAULT NULL::text[], title text DEFAULT NULL::text, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_in interval DEFAULT NULL::interval, group_id text DEFAULT NULL::text, meta json DEFAULT NULL::json, retry_limit integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, after uuid[] DEFAULT NULL::uuid[], on_parent_failure text DEFAULT 'wait'::text, unique_by text[] DEFAULT NULL::text[], unique_for interval DEFAULT NULL::interval, unique_while text DEFAULT 'unfinished'::text, on_unique text DEFAULT 'ignore'::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  began constant timestamptz := clock_timestamp();
  now_ms constant bigint := (extract(epoch from began) * 1000)::bigint;
  written constant text := coalesce(regexp_replace(add_job.payload::json::text, E'([{,]\\s*")((?:[$]|\\\\u0024)+"\\s*:)', E'\\1$\\2', 'g'), '{"$":"undefined"}');
  stored constant json := json_strip_nulls(json_build_object('sql', true, 'title', add_job.title, 'labels', to_json(add_job.labels),
    'retry', case when add_job.retry_limit is not null then json_build_object('limit', add_job.retry_limit) end,
    'timeout', (extract(epoch from add_job.timeout) * 1000)::bigint,
    'meta', case when add_job.meta is not null then json_build_object('text', regexp_replace(add_job.meta::text, E'([{,]\\s*")((?:[$]|\\\\u0024)+"\\s*:)', E'\\1$\\2', 'g')) end,
    'unique', case when add_job.unique_by is not null then json_build_object(
      'key', "millrace".unique_text(coalesce(add_job.payload, '{"$":"undefined"}')::json, add_job.unique_by), 'while', add_job.unique_while) end));
  problems constant text[] := "millrace".job_problems(add_job.name, add_job.queue, add_job.priority, add_job.due_at, add_job.run_in,
    add_job.key, add_job.on_duplicate, add_job.labels, add_job.title, add_job.expires_at, add_job.expires_in, add_job.group_id, add_job.meta, add_job.retry_limit,
    add_job.timeout, add_job.after, add_job.on_parent_failure, add_job.unique_by, add_job.unique_for, add_job.unique_while,
    add_job.on_unique, coalesce(add_job.payload, written));
  made_id constant uuid := "millrace".new_job_id(now_ms);
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
  perform pg_advisory_xact_lock(1835625580, n)
  from (
    select distinct (hashtextextended(taken, 7) & 1023)::integer as n
    from unnest(array['key ' || add_job.name || chr(10) || add_job.key, 'slot ' || add_job.name || chr(10) || slot]) as taken
    where taken is not null
    order by 1) as locks;
  if add_job.key is not null then
    select j.id into holder
    from "millrace".keys k join "millrace".jobs j on j.ref = k.ref
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
    from "millrace".uniques u
    left join lateral (select j.ref, j.lane, j.due_at, j.priority, j.turn from "millrace".jobs j where j.ref = u.ref and j.id = u.id limit 1) j on true
    left join lateral (select h.ref from "millrace".history h where j.ref is null or h.ref = j.ref limit 1) h on true
    left join lateral (select w.ref from "millrace".waiting w where w.ref = j.ref limit 1) w on true
    left join lateral (
      select r.ref from "millrace".ready r
      where r.lane = coalesce(-(j.lane::bigint * 4294967296 + j.turn), j.lane) and r.sort = j.due_at - j.priority::bigint * 600000 and r.ref = j.ref
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
    from "millrace".jobs j
    where j.id = any(add_job.after) and not exists (select 1 from "millrace".history h where h.ref = j.ref and h.state = 'done')
    order by j.ref
    for key share;
    select json_agg(json_build_object('id', a.id, 'ref', j.ref, 'state', coalesce(h.state, 'recheck'), 'own', j.key = add_job.key and n.name = add_job.name,
      'open', h.state is null or (h.state <> 'done' and add_job.on_parent_failure <> 'run')) order by a.n) into parents
    from (select id, min(n) as n from unnest(add_job.after) with ordinality as u (id, n) group by id) as a
    left join lateral (select j.ref, j.key, j.lane from "millrace".jobs j where j.id = a.id limit 1) j on true
    left join "millrace".lanes n on n.lane = j.lane
    left join lateral (select h.state from "millrace".history h where h.ref = j.ref limit 1) h on true;
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
    insert into "millrace".groups (grp) values (add_job.group_id) on conflict (grp) do nothing;
    -- The lock of insertJobs: until this transaction ends, no other one seals, completes or deletes the group.
    select g.sealed_at, g.empty_since into sealed, emptied from "millrace".groups g where g.grp = add_job.group_id for share;
    if sealed is not null then
      raise exception 'add_job: the group % is sealed', quote_literal(add_job.group_id) using errcode = 'object_not_in_prerequisite_state';
    end if;
    if emptied is not null then
      update "millrace".groups set empty_since = null where grp = add_job.group_id;
    end if;
    insert into "millrace".group_moves (grp, queue, state, members)
    values (add_job.group_id, add_job.queue, its_state, 1);
  end if;
  select lane into its_lane from "millrace".lanes where queue = add_job.queue and name = add_job.name;
  if its_lane is null then
    insert into "millrace".lanes (queue, name) values (add_job.queue, add_job.name) on conflict (queue, name) do nothing;
    select lane into its_lane from "millrace".lanes where queue = add_job.queue and name = add_job.name;
  end if;
  -- The number is drawn under the lock of this insert, which the transaction that drops a day relies on (days.ts).
  insert into "millrace".jobs (ref, id, created_at, due_at, expires_at, lane, priority, key, payload, options, grp, after)
  values (((now_ms / 86400000) << 38) | nextval('"millrace".job_number'), made_id, now_ms, due,
    expires, its_lane, add_job.priority, add_job.key, written, nullif(stored::text, '{}'), add_job.group_id,
    (select json_agg(p.id)::text from json_to_recordset(parents) as p (id text)))
  returning ref into made_ref;
  if cardinality(add_job.labels) > 0 then
    insert into "millrace".labels (ref, label) select distinct made_ref, label from unnest(add_job.labels) as label;
  end if;
  if parents is not null then
    insert into "millrace".labels (ref, label) select made_ref, chr(1) || p.id from json_to_recordset(parents) as p (id text);
    insert into "millrace".links (parent, child, on_failure)
      select p.ref, made_ref, case when p.own and p.state = 'recheck' and add_job.on_parent_failure = 'wait' then 'run' else add_job.on_parent_failure end
      from json_to_recordset(parents) as p (ref bigint, state text, own boolean, open boolean)
      where p.open;
    -- Upkeep marks the parents, and sees the ends of those that have ended or end before this transaction commits.
    insert into "millrace".link_todos (parent, id, what)
      select p.ref, p.id, p.state from json_to_recordset(parents) as p (ref bigint, id uuid, state text, open boolean) where p.open;
  end if;
  if its_state = 'ready' then
    insert into "millrace".ready (lane, sort, ref) values (its_lane, due - add_job.priority::bigint * 600000, made_ref);
  else
    insert into "millrace".waiting (ref, lane, state, due_at, grp) values (made_ref, its_lane, its_state, due, add_job.group_id);
  end if;
  if slot is not null then
    insert into "millrace".uniques (name, key, ref, id, until)
    values (add_job.name, slot, made_ref, made_id, now_ms + (extract(epoch from add_job.unique_for) * 1000)::bigint)
    on conflict (name, key) do update set ref = excluded.ref, id = excluded.id, until = excluded.until;
  end if;
  if expires is not null then
    insert into "millrace".expiring (expires_at, ref) values (expires, made_ref);
  end if;
  if add_job.key is not null then
    insert into "millrace".keys (name, key, ref) values (add_job.name, add_job.key, made_ref);
  end if;
  perform pg_notify('millrace millrace', 'sql' || case when its_state = 'ready' then ' ready' else '' end
    || case when its_state <> 'ready' or expires is not null then ' due' else '' end);
  return made_id;
end$function$;

CREATE OR REPLACE FUNCTION millrace.canonical_text(value jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return case jsonb_typeof(value)
    when 'object' then '{' || coalesce((
      select string_agg(to_json(e.key)::text || ':' || "millrace".canonical_text(e.value), ',' order by e.key collate "C")
      from jsonb_each(value) as e), '') || '}'
    when 'array' then '[' || coalesce((
      select string_agg("millrace".canonical_text(e.value), ',' order by e.n)
      from jsonb_array_elements(value) with ordinality as e (value, n)), '') || ']'
    when 'number' then trim_scale((value #>> '{}')::numeric)::text
    else value::text
  end;
end$function$;

CREATE OR REPLACE FUNCTION millrace.job_problems(name text, queue text, priority integer, due_at timestamp with time zone, run_in interval, key text, on_duplicate text, labels text[], title text, expires_at timestamp with time zone, expires_in interval, group_id text, meta json, retry_limit integer, timeout interval, after uuid[], on_parent_failure text, unique_by text[], unique_for interval, unique_while text, on_unique text, payload text)
 RETURNS text[]
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select array_remove(array[
    "millrace".text_problem('name', name, 200),
    "millrace".text_problem('queue', queue, 200),
    case when key is not null then "millrace".text_problem('key', key, 500) end,
    case when priority is null or abs(priority::bigint) > 1000000
      then format('priority must be a whole number from -1000000 to 1000000, got %s', coalesce(priority::text, 'null')) end,
    case when due_at is not null and run_in is not null then 'due_at and run_in exclude each other: give one' end,
    case when expires_at is not null and expires_in is not null then 'expires_at and expires_in exclude each other: give one' end,
    case when not isfinite(due_at) then 'due_at must be a finite time' end,
    case when not isfinite(expires_at) then 'expires_at must be a finite time' end,
    case when run_in > interval '100 years' then 'run_in must be at most 100 years, got ' || run_in end,
    case when expires_in > interval '100 years' then 'expires_in must be at most 100 years, got ' || expires_in end,
    case when isfinite(due_at) and due_at > now() + interval '100 years' then 'due_at must be at most 100 years away, got ' || due_at end,
    case when isfinite(expires_at) and expires_at > now() + interval '100 years'
      then 'expires_at must be at most 100 years away, got ' || expires_at end,
    case when on_duplicate is null or on_duplicate not in ('return', 'reject')
      then format('on_duplicate must be ''return'' or ''reject'', got %s', coalesce(quote_literal(on_duplicate), 'null')) end,
    case when length(title) > 500 then format('title must have at most 500 characters, got %s', length(title)) end,
    case when cardinality(labels) > 16 then format('labels must be at most 16, got %s', cardinality(labels)) end,
    case when group_id is not null then "millrace".text_problem('group_id', group_id, 200) end,
    case when retry_limit not between 0 and 1000000
      then format('retry_limit must be a whole number from 0 to 1000000, got %s', retry_limit) end,
    case when timeout <= interval '0' or timeout > interval '100 years'
      then format('timeout must be longer than 0 and at most 100 years, got %s', timeout) end,
    case when octet_length(payload) > 1048576
      then format('payload has %s bytes and the limit is 1048576: store it elsewhere and pass a reference', octet_length(payload)) end,
    case when cardinality(after) > 20000 then format('after must name at most 20000 jobs, got %s', cardinality(after)) end,
    case when array_position(after, null) is not null then 'each of after must be the id of a job, got null' end,
    case when on_parent_failure is null or on_parent_failure not in ('wait', 'cancel', 'run')
      then format('on_parent_failure must be ''wait'', ''cancel'' or ''run'', got %s', coalesce(quote_literal(on_parent_failure), 'null')) end,
    case when unique_while is null or unique_while not in ('unfinished', 'waiting')
      then format('unique_while must be ''unfinished'' or ''waiting'', got %s', coalesce(quote_literal(unique_while), 'null')) end,
    case when on_unique is null or on_unique not in ('ignore', 'reject')
      then format('on_unique must be ''ignore'' or ''reject'', got %s', coalesce(quote_literal(on_unique), 'null')) end,
    case when unique_for <= interval '0' or unique_for > interval '100 years'
      then format('unique_for must be longer than 0 and at most 100 years, got %s', unique_for) end,
    case when unique_by is null and unique_for is not null then 'unique_for needs unique_by: an empty array means the whole payload' end,
    case when unique_by is not null and "millrace".unique_text(payload::json, unique_by) is null
      then format('payload must have each of unique_by (%s)', array_to_string(unique_by, ', ')) end
  ] || array(select "millrace".text_problem('each of labels', label, 100) from unnest(labels) as label), null)$function$;

CREATE OR REPLACE FUNCTION millrace.leave_long_work()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into "millrace".leftovers (ref, run, list, is_deleted, due_at)
  values (
    old.ref,
    coalesce((select run from "millrace".workflows where ref = old.ref), 0),
    (select list from "millrace".lists where id = old.id),
    true,
    0);
  return null;
end$function$;

CREATE OR REPLACE FUNCTION millrace.new_job_id(now_ms bigint)
 RETURNS uuid
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select (lpad(to_hex(now_ms), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid$function$;

CREATE OR REPLACE FUNCTION millrace.refs_within(created_from bigint, created_to bigint, ref_from bigint, ref_to bigint, most integer)
 RETURNS bigint[]
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'on'
 SET jit TO 'off'
AS $function$
begin
  if created_from >= created_to or ref_from >= ref_to then
    return '{}';
  end if;
  return array(
    select j.ref
    from "millrace".jobs j
    where j.created_at >= created_from and j.created_at < created_to and j.ref + 0 >= ref_from and j.ref + 0 < ref_to
    limit most);
end$function$;

CREATE OR REPLACE FUNCTION millrace.replace_labels()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  delete from "millrace".labels where ref = old.ref and (tg_op = 'DELETE' or left(label, 1) <> chr(1));
  if tg_op = 'UPDATE' then
    insert into "millrace".labels (ref, label)
    select distinct new.ref, value from json_array_elements_text(regexp_replace(new.options, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\u0001', 'gi')::json->'labels') as label (value);
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION millrace.text_problem(what text, value text, most integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select case
    when value is null then what || ' must be text, got null'
    when length(value) not between 1 and most then format('%s must have 1 to %s characters, got %s', what, most, length(value))
    when value ~ E'[\u0001-\u001f\u007f]' then what || ' must not have control characters'
  end$function$;

CREATE OR REPLACE FUNCTION millrace.unique_text(payload json, by text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select case when length(t) + (select count(*) from regexp_matches(t, E'[\U00010000-\U0010ffff]', 'g')) <= 200
    then t else 'sha256 ' || encode(sha256(convert_to(t, 'UTF8')), 'hex') end
  from (
    select case when cardinality(by) = 0 then "millrace".canonical_text(regexp_replace(payload::text, E'([{,]\\s*")((?:[$]|\\\\u0024)+"\\s*:)', E'\\1$\\2', 'g')::jsonb)
      else (
        select case when count(*) = count(text) then string_agg(field || ':' || text, ',' order by field collate "C") end
        from (
          select field, "millrace".canonical_text(regexp_replace((payload #> string_to_array(field, '.'))::text, E'([{,]\\s*")((?:[$]|\\\\u0024)+"\\s*:)', E'\\1$\\2', 'g')::jsonb) as text
          from (select distinct field from unnest(by) as field) as fields) as texts) end as t) as whole$function$;

CREATE TRIGGER jobs_labels_changed AFTER UPDATE OF options ON millrace.jobs FOR EACH ROW WHEN ((old.options IS DISTINCT FROM new.options)) EXECUTE FUNCTION millrace.replace_labels();

CREATE TRIGGER jobs_labels_deleted AFTER DELETE ON millrace.jobs FOR EACH ROW WHEN (((old.options ~~ '%"labels"%'::text) OR (old.after IS NOT NULL))) EXECUTE FUNCTION millrace.replace_labels();

CREATE TRIGGER jobs_long_work_deleted AFTER DELETE ON millrace.jobs FOR EACH ROW WHEN ((old.shape IS NOT NULL)) EXECUTE FUNCTION millrace.leave_long_work();
